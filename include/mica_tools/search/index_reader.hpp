// SPDX-License-Identifier: Apache-2.0
//
// Reads an index: its description when it is opened, its rows in slices. Damage raises ErrorCode::file; that of
// rows is found after the last slice, so no result may be used before for_each_slice() returns.
#pragma once

#include "mica/base/bytes.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/io/checksum.hpp"
#include "mica/io/file.hpp"
#include "mica_tools/search/index_info.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::search {

namespace detail {

inline constexpr std::size_t slice_bytes = std::size_t{1} << 20;  // of rows that are read at once

[[nodiscard]] inline IndexInfo read_index_info(gguf::SpanReader& reader) {
  IndexInfo info;
  const auto number = [&](std::string_view what) { return reader.read<std::uint64_t>(what); };
  info.model = number("the model");
  info.arch = reader.text("the family");
  info.pooling = reader.text("the pooling");
  info.prefix = reader.text("the prefix");
  info.passage_tokens = number("the tokens of a passage");
  info.width = number("the width");
  const std::uint64_t format = number("the format");
  for (const format::Id id : {format::F32::id, format::Q8_0::id}) {
    if (id.value == format) info.format = id;
  }
  if (info.format.value != format || info.width == 0 || info.width > max_row_width)
    reader.refuse(ErrorCode::file, "rows of ", info.width, " numbers in format ", format);
  return info;
}

[[nodiscard]] inline IndexedFile read_indexed_file(gguf::SpanReader& reader) {
  const auto number = [&](std::string_view what) { return reader.read<std::uint64_t>(what); };
  IndexedFile file;
  file.state.path = reader.text("a path");
  file.state.size = number("a size");
  file.state.modified_ns = reader.read<std::int64_t>("a time");
  file.passages.resize(reader.count(sizeof(Passage), "passages"));
  for (Passage& passage : file.passages) {
    for (std::uint64_t* const value :
         {&passage.offset, &passage.bytes, &passage.first_line, &passage.last_line})
      *value = number("a passage");
    const bool inside =
        passage.offset <= file.state.size && passage.bytes <= file.state.size - passage.offset;
    if (!inside) reader.refuse(ErrorCode::file, "a passage beyond the end of ", escaped(file.state.path));
  }
  return file;
}

}  // namespace detail

/// Whether a file begins as an index does. Raises as io::File::open().
[[nodiscard]] inline bool is_index(const std::string& path) {
  const io::File file = io::File::open(path);
  std::array<char, 8> magic = {};
  if (file.size() >= magic.size()) file.read_at(0, writable_bytes_of(magic.data(), magic.size()));
  return magic == detail::index_magic;
}

/// An index in a file. One thread at a time.
class IndexReader {
 public:
  /// Reads the description. Raises ErrorCode::file when the file is missing, cut, damaged or no index;
  /// unsupported for a version that is not known, and without xxHash. Memory: some twice the bytes of the
  /// description.
  explicit IndexReader(std::string path) : file_(io::File::open(std::move(path))) {
    read_head();
    read_tail();
    read_description();
  }

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return file_.size(); }
  [[nodiscard]] const IndexInfo& info() const noexcept { return info_; }
  [[nodiscard]] std::span<const IndexedFile> files() const noexcept { return files_; }
  [[nodiscard]] std::size_t passages() const noexcept { return static_cast<std::size_t>(tail_.passages); }

  /// Calls f(first, rows) for all rows in order, a slice of whole rows each time. Raises ErrorCode::file at the
  /// end when one of them is damaged.
  template <class F>
  void for_each_slice(F&& f) const {
    const std::size_t each = row_bytes(info_), all = passages();
    const std::size_t of_slice = std::max<std::size_t>(1, detail::slice_bytes / each);
    std::vector<std::byte> bytes(std::min(of_slice, all) * each);
    io::Checksum sum;
    std::uint64_t at = sizeof(detail::IndexHead);
    const auto read = [&](std::span<std::byte> to) {
      file_.read_at(at, to);
      sum.add(to);
      at += to.size();
    };
    for (std::size_t first = 0; first < all; first += of_slice) {
      const std::span<std::byte> slice(bytes.data(), std::min(of_slice, all - first) * each);
      read(slice);
      f(first, std::span<const std::byte>(slice));
    }
    std::array<std::byte, detail::index_alignment> zeros;
    read(std::span(zeros).first(static_cast<std::size_t>(description_at() - at)));
    MICA_CHECK(sum.value() == tail_.rows, file, path(), ": the rows are damaged; ", way_out);
  }

 private:
  static constexpr std::string_view way_out = "delete the file, and it is made again";

  template <class Part>
  [[nodiscard]] Part read_part(std::uint64_t at, std::string_view name) const {
    Part part;
    const auto bytes = writable_bytes_of(&part, 1);
    file_.read_at(at, bytes);
    MICA_CHECK(part.sum == io::checksum(bytes.first(sizeof part - sizeof part.sum)), file, path(), ": the ",
               name, " ", sizeof part, " bytes are damaged; ", way_out);
    return part;
  }
  void read_head() const {
    constexpr std::size_t minimum = sizeof(detail::IndexHead) + sizeof(detail::IndexTail);
    std::array<char, 8> magic = {};
    if (file_.size() >= minimum) file_.read_at(0, writable_bytes_of(magic.data(), magic.size()));
    MICA_CHECK(magic == detail::index_magic, file, path(),
               ": is no index of mica search; name another file with --index");
    const auto head = read_part<detail::IndexHead>(0, "first");
    const bool zeros =
        std::all_of(std::begin(head.zeros), std::end(head.zeros), [](auto n) { return n == 0; });
    MICA_CHECK(head.version == detail::index_version && zeros, unsupported, path(), ": an index of version ",
               head.version, "; this program reads version ", detail::index_version, "; ", way_out);
  }
  void read_tail() {
    tail_ = read_part<detail::IndexTail>(file_.size() - sizeof tail_, "last");
    MICA_CHECK(tail_.file_bytes == file_.size() && tail_.zeros[0] == 0 && tail_.zeros[1] == 0, file, path(),
               ": has ", file_.size(), " bytes, ", tail_.file_bytes, " were written; ", way_out);
    MICA_CHECK(tail_.description_bytes <= file_.size() - sizeof(detail::IndexHead) - sizeof tail_, file,
               path(), ": a description of ", tail_.description_bytes, " bytes does not fit into ",
               file_.size());
  }
  [[nodiscard]] std::uint64_t description_at() const noexcept {
    return file_.size() - sizeof tail_ - tail_.description_bytes;
  }
  void read_description() {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tail_.description_bytes));
    const std::span all(bytes.data(), bytes.size());
    file_.read_at(description_at(), all);
    MICA_CHECK(tail_.description == io::checksum(all), file, path(), ": the description is damaged; ",
               way_out);
    gguf::SpanReader reader(path(), all);
    reader.enter("description");
    info_ = detail::read_index_info(reader);
    constexpr std::size_t of_file = 4 * sizeof(std::uint64_t);  // at least
    const std::size_t n = reader.count(of_file, "files");
    std::uint64_t passages = 0;
    for (std::size_t i = 0; i < n; ++i) {
      files_.push_back(detail::read_indexed_file(reader));
      passages += files_.back().passages.size();
    }
    const std::uint64_t rows = description_at() - sizeof(detail::IndexHead);
    const bool exact = reader.remaining() == 0 && passages == tail_.passages &&
                       rows == round_up<std::uint64_t>(passages * row_bytes(info_), detail::index_alignment);
    MICA_CHECK(exact, file, path(), ": ", passages, " passages of ", row_bytes(info_), " bytes, where ",
               tail_.passages, " and ", rows, " bytes are written; ", way_out);
  }

  io::File file_;
  detail::IndexTail tail_;
  IndexInfo info_;
  std::vector<IndexedFile> files_;
};

}  // namespace mica::search
