// SPDX-License-Identifier: Apache-2.0
//
// Writes an index file by file; rows go to the disk at once. The index appears when it is complete, or not at
// all. It can be read by its owner only, as the texts may be private.
#pragma once

#include "mica/base/bytes.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/io/checksum.hpp"
#include "mica_tools/search/index_info.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::search {

namespace detail {

/// The description as IndexReader reads it.
[[nodiscard]] inline std::vector<std::byte> describe_index(const IndexInfo& info,
                                                           std::span<const IndexedFile> files) {
  std::vector<std::byte> out;
  const auto number = [&](std::uint64_t value) { gguf::append_number(out, value); };
  number(info.model);
  gguf::append_text(out, info.arch);
  gguf::append_text(out, info.pooling);
  gguf::append_text(out, info.prefix);
  number(info.passage_tokens);
  number(info.width);
  number(info.format.value);
  number(files.size());
  for (const IndexedFile& file : files) {
    gguf::append_text(out, file.state.path);
    number(file.state.size);
    gguf::append_number(out, file.state.modified_ns);
    number(file.passages.size());
    for (const Passage& passage : file.passages) {
      for (const std::uint64_t value : {passage.offset, passage.bytes, passage.first_line, passage.last_line})
        number(value);
    }
  }
  return out;
}

}  // namespace detail

/// One thread at a time.
class IndexWriter {
 public:
  /// Begins the file, so that a folder that takes none is found before the work. Raises as io::AtomicFile, and
  /// ErrorCode::unsupported without xxHash.
  IndexWriter(std::string path, IndexInfo info)
      : info_(std::move(info)), file_(std::move(path), io::Access::owner) {
    detail::IndexHead head;
    head.sum = sum_before(head);
    file_.write(bytes_of(&head, 1));
  }

  /// Adds a file with rows in the format of the index: (passages, row_bytes). Raises ErrorCode::failed when the
  /// system cannot take them.
  void append(IndexedFile file, std::span<const std::byte> rows) {
    MICA_ASSERT(rows.size() == file.passages.size() * row_bytes(info_));
    append_rows(rows);
    append_file(std::move(file));
  }
  /// The same in two steps: all rows of files are added in the order of the files.
  void append_rows(std::span<const std::byte> rows) {
    rows_.add(rows);
    file_.write(rows);
  }
  void append_file(IndexedFile file) {
    passages_ += file.passages.size();
    files_.push_back(std::move(file));
  }
  /// Rows of numbers (n, width) in the format of the index. Raises ErrorCode::failed for one that is not finite.
  [[nodiscard]] std::vector<std::byte> encoded(std::span<const float> numbers) const {
    const std::size_t width = static_cast<std::size_t>(info_.width), n = numbers.size() / width;
    for (const float x : numbers) MICA_CHECK(std::isfinite(x), failed, "an embedding is not finite");
    const auto bytes = std::as_bytes(numbers);
    if (info_.format != format::Q8_0::id) return {bytes.begin(), bytes.end()};
    constexpr std::size_t block = format::Q8_0::block_size;
    std::vector<float> row(stored_width(info_));
    std::vector<format::Q8_0::Block> blocks(n * row.size() / block);
    for (std::size_t i = 0; i < n; ++i) {
      std::copy_n(numbers.data() + i * width, width, row.data());
      for (std::size_t b = 0; b < row.size() / block; ++b)
        format::Q8_0::encode(row.data() + b * block, blocks[i * row.size() / block + b]);
    }
    const auto encoded = bytes_of(blocks.data(), blocks.size());
    return {encoded.begin(), encoded.end()};
  }

  [[nodiscard]] const IndexInfo& info() const noexcept { return info_; }
  [[nodiscard]] std::uint64_t passages() const noexcept { return passages_; }  // of all files so far

  /// Ends the file and gives it its name. Raises ErrorCode::failed; the former file is then still in place.
  void commit() {
    MICA_ASSERT(file_.size() == sizeof(detail::IndexHead) + passages_ * row_bytes(info_));
    const std::vector<std::byte> zeros(static_cast<std::size_t>(
        round_up<std::uint64_t>(file_.size(), detail::index_alignment) - file_.size()));
    append_rows({zeros.data(), zeros.size()});
    const std::vector<std::byte> description = detail::describe_index(info_, files_);
    const auto bytes = bytes_of(description.data(), description.size());
    file_.write(bytes);
    detail::IndexTail tail;
    tail.description_bytes = bytes.size();
    tail.passages = passages_;
    tail.file_bytes = file_.size() + sizeof tail;
    tail.rows = rows_.value();
    tail.description = io::checksum(bytes);
    tail.sum = sum_before(tail);
    file_.write(bytes_of(&tail, 1));
    file_.commit();
  }

 private:
  /// Of a head or tail, which ends with it.
  template <class Part>
  [[nodiscard]] static std::uint64_t sum_before(const Part& part) {
    return io::checksum(bytes_of(&part, 1).first(sizeof part - sizeof part.sum));
  }

  IndexInfo info_;
  io::AtomicFile file_;
  io::Checksum rows_;
  std::vector<IndexedFile> files_;
  std::uint64_t passages_ = 0;
};

}  // namespace mica::search
