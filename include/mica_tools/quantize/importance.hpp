// SPDX-License-Identifier: Apache-2.0
//
// An importance matrix: for each matrix of a model, the mean squares of the inputs of its columns on some
// text. It has sums and counts, so that more text can be added. Files have two formats, both of
// llama-imatrix:
//
//   GGUF     general.type "imatrix"; NAME.in_sum2 (columns, experts) and NAME.counts (1, experts) in F32;
//            imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size. Other tensors are left alone.
//   legacy   i32 entries; for each: i32 length, name, i32 calls, i32 values, f32 value...; perhaps then
//            i32 chunks, i32 length, dataset. Values are means times calls. Read, not written.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/io/file.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::quantize {

/// Sums and counts of one matrix; of a stack of experts, one after the other.
struct ImportanceEntry {
  std::vector<float> sums;    // of squares, (experts, columns)
  std::vector<float> counts;  // rows that were summed, (experts); or one number for all of them

  /// The mean squares of an expert's columns. An expert without rows has 1 for every column. Raises
  /// ErrorCode::file, naming the tensor, when there are not `columns` numbers for each of `experts`.
  [[nodiscard]] std::vector<float> means(std::string_view name, std::size_t expert, std::size_t experts,
                                         std::size_t columns) const {
    const bool fits = sums.size() % experts == 0 && sums.size() / experts == columns &&
                      (counts.size() == experts || counts.size() == 1);
    MICA_CHECK(fits, file, "importance of '", escaped(name), "' has ", sums.size(), " sums and ",
               counts.size(), " counts; the tensor has ", columns, " columns of ", experts,
               " matrices: it is of another model");
    const float count = counts[counts.size() == 1 ? 0 : expert];
    std::vector<float> means(columns, 1.0F);
    for (std::size_t i = 0; count > 0 && i < columns; ++i) means[i] = sums[expert * columns + i] / count;
    return means;
  }
};

/// The entries of all matrices by tensor name, and the texts of the collection.
struct Importance {
  std::map<std::string, ImportanceEntry, std::less<>> entries;  // by the name of the tensor
  std::vector<std::string> datasets;                            // names of the texts
  std::uint32_t chunk_count = 0;                                // chunks of text that were read
  std::uint32_t chunk_size = 0;                                 // tokens

  /// Null for a tensor without an entry.
  [[nodiscard]] const ImportanceEntry* find(std::string_view name) const {
    const auto at = entries.find(name);
    return at == entries.end() ? nullptr : &at->second;
  }
};

namespace detail {

inline constexpr std::string_view sums_suffix = ".in_sum2";
inline constexpr std::string_view counts_suffix = ".counts";

inline void check_numbers(std::span<const float> numbers, std::string_view path, std::string_view name) {
  for (const float x : numbers) {
    MICA_CHECK(std::isfinite(x) && x >= 0, file, path, ": importance of '", escaped(name),
               "' holds a number that is negative or not finite: ", x);
  }
}

/// The numbers of an F32 tensor.
[[nodiscard]] inline std::vector<float> read_floats(const gguf::Document& document,
                                                    const gguf::TensorInfo& tensor) {
  MICA_CHECK(tensor.format.id == format::F32::id, file, document.path(), ": tensor '", escaped(tensor.name),
             "' is ", tensor.format.name, "; F32 is needed");
  std::vector<float> numbers(static_cast<std::size_t>(tensor.elements()));
  document.read(tensor, std::as_writable_bytes(std::span(numbers)));
  check_numbers(numbers, document.path(), tensor.name);
  return numbers;
}

[[nodiscard]] inline Importance importance_from(const gguf::Document& document) {
  const gguf::Metadata& metadata = document.metadata();
  const auto type = metadata.get<std::string>("general.type").value_or("");
  MICA_CHECK(type == "imatrix", file, document.path(), ": general.type is '", escaped(type),
             "'; an importance matrix has 'imatrix'");
  Importance out;
  out.chunk_count = metadata.get<std::uint32_t>("imatrix.chunk_count").value_or(0);
  out.chunk_size = metadata.get<std::uint32_t>("imatrix.chunk_size").value_or(0);
  if (const auto names = metadata.get<gguf::Array<std::string_view>>("imatrix.datasets")) {
    for (const std::string_view name : *names) out.datasets.emplace_back(name);
  }
  for (const gguf::TensorInfo& sums : document.tensors()) {
    if (!sums.name.ends_with(sums_suffix)) continue;
    const std::string name = sums.name.substr(0, sums.name.size() - sums_suffix.size());
    const gguf::TensorInfo& counts = document.tensor(name + std::string(counts_suffix));
    MICA_CHECK(counts.elements() == sums.rows(), file, document.path(), ": tensor '", escaped(counts.name),
               "' has ", counts.elements(), " counts for ", sums.rows(), " rows of sums");
    out.entries[name] = {read_floats(document, document.tensor(sums.name)), read_floats(document, counts)};
  }
  return out;
}

/// Takes numbers and texts off the front of a legacy file.
class LegacyReader {
 public:
  explicit LegacyReader(std::string path) : file_(io::File::open(std::move(path))) {}

  [[nodiscard]] bool at_end() const noexcept { return at_ == file_.size(); }
  /// A count of elements of `bytes` each: a count that exceeds the file is refused before any allocation.
  [[nodiscard]] std::size_t count(std::string_view what, std::size_t bytes) {
    std::int32_t n = 0;
    take(std::as_writable_bytes(std::span(&n, 1)));
    MICA_CHECK(n >= 0 && static_cast<std::uint64_t>(n) <= (file_.size() - at_) / bytes, file, file_.path(),
               ": this is no importance matrix, or it is damaged: ", n, " ", what, " at byte ",
               at_ - sizeof n, " of ", file_.size());
    return static_cast<std::size_t>(n);
  }
  [[nodiscard]] std::int32_t number() {
    std::int32_t n = 0;
    take(std::as_writable_bytes(std::span(&n, 1)));
    return n;
  }
  [[nodiscard]] std::string text(std::string_view what) {
    std::string out(count(what, 1), '\0');
    take(std::as_writable_bytes(std::span(out)));
    return out;
  }
  [[nodiscard]] std::vector<float> floats(std::string_view what) {
    std::vector<float> out(count(what, sizeof(float)));
    take(std::as_writable_bytes(std::span(out)));
    return out;
  }
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

 private:
  void take(std::span<std::byte> to) {
    file_.read_at(at_, to);
    at_ += to.size();
  }

  io::File file_;
  std::uint64_t at_ = 0;
};

[[nodiscard]] inline Importance read_legacy_importance(const std::string& path) {
  LegacyReader reader(path);
  Importance out;
  const std::size_t entries = reader.count("entries", 3 * sizeof(std::int32_t));
  for (std::size_t i = 0; i < entries; ++i) {
    const std::string name = reader.text("bytes of a name");
    const std::int32_t calls = reader.number();
    MICA_CHECK(calls >= 0, file, path, ": importance of '", escaped(name), "' was counted ", calls, " times");
    ImportanceEntry entry{reader.floats("values"), {static_cast<float>(calls)}};
    check_numbers(entry.sums, path, name);
    out.entries[name] = std::move(entry);
  }
  if (!reader.at_end()) out.chunk_count = static_cast<std::uint32_t>(std::max(0, reader.number()));
  if (!reader.at_end()) out.datasets.push_back(reader.text("bytes of a dataset's name"));
  return out;
}

}  // namespace detail

/// Reads either format. Raises ErrorCode::file when the file is neither, contradicts itself, is truncated, or
/// holds a number that is not finite or negative.
[[nodiscard]] inline Importance read_importance(const std::string& path) {
  const io::File file = io::File::open(path);
  std::array<char, 4> magic{};
  if (file.size() >= magic.size()) file.read_at(0, std::as_writable_bytes(std::span(magic)));
  Importance out = std::string_view(magic.data(), magic.size()) == "GGUF"
                       ? detail::importance_from(gguf::open(path))
                       : detail::read_legacy_importance(path);
  MICA_CHECK(!out.entries.empty(), file, path, ": this importance matrix has no entries");
  return out;
}

/// Writes the GGUF format; the file appears whole. Raises as io::AtomicFile.
inline void write_importance(const Importance& importance, std::string path) {
  gguf::Writer writer;
  writer.set("general.type", "imatrix");
  writer.set_array("imatrix.datasets", importance.datasets);
  writer.set("imatrix.chunk_count", importance.chunk_count);
  writer.set("imatrix.chunk_size", importance.chunk_size);
  for (const auto& [name, entry] : importance.entries) {
    const std::uint64_t experts = entry.counts.size();
    writer.add(name + std::string(detail::sums_suffix), format::F32::id,
               {entry.sums.size() / experts, experts}, std::as_bytes(std::span(entry.sums)));
    writer.add(name + std::string(detail::counts_suffix), format::F32::id, {1, experts},
               std::as_bytes(std::span(entry.counts)));
  }
  writer.write(std::move(path));
}

}  // namespace mica::quantize
