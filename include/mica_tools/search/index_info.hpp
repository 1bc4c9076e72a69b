// SPDX-License-Identifier: Apache-2.0
//
// The index of a search: rows of the passages of many files, and where these are. It has no text.
//
//   | head | rows: a passage each, file by file | zeros | description: info, files, passages | tail |
//   | 64   | passages x row_bytes               | to 64 |                                    | 64   |
//
// Numbers are little-endian. Every byte is covered by a checksum: that of the head, of the rows with the zeros,
// of the description, and of the tail. Written by index_writer.hpp, read by index_reader.hpp.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/type_list.hpp"
#include "mica/format/float.hpp"
#include "mica/format/q8_0.hpp"
#include "mica/tensor/any_matrix.hpp"
#include "mica_tools/search/cut_text.hpp"
#include "mica_tools/search/text_files.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::search {

/// Formats of rows. Rows of Q8_0 end with zeros, up to a multiple of 32 numbers.
using RowFormats = TypeList<format::F32, format::Q8_0>;
using RowMatrix = tensor::AnyMatrix<RowFormats>;

/// What the rows of an index were made with.
struct IndexInfo {
  std::uint64_t model = 0;             // gguf::fingerprint
  std::string arch;                    // name of the family
  std::string pooling;                 // "mean"
  std::string prefix;                  // before each passage
  std::uint64_t passage_tokens = 0;    // the maximum
  std::uint64_t width = 0;             // numbers of a row
  format::Id format{format::F32::id};  // of RowFormats

  friend bool operator==(const IndexInfo&, const IndexInfo&) = default;
};

/// A file of the index; one without text has no passages.
struct IndexedFile {
  FileState state;
  std::vector<Passage> passages = {};

  friend bool operator==(const IndexedFile&, const IndexedFile&) = default;
};

/// Numbers of a row as it is stored.
[[nodiscard]] constexpr std::size_t stored_width(const IndexInfo& info) noexcept {
  const auto width = static_cast<std::size_t>(info.width);
  return info.format == format::Q8_0::id ? round_up<std::size_t>(width, format::Q8_0::block_size) : width;
}
[[nodiscard]] constexpr std::size_t row_bytes(const IndexInfo& info) noexcept {
  return info.format == format::Q8_0::id
             ? stored_width(info) / format::Q8_0::block_size * sizeof(format::Q8_0::Block)
             : stored_width(info) * sizeof(float);
}

namespace detail {

inline constexpr std::array<char, 8> index_magic = {'m', 'i', 'c', 'a', 'F', 'I', 'N', 'D'};
inline constexpr std::uint32_t index_version = 1;
inline constexpr std::size_t index_alignment = 64;
inline constexpr std::uint64_t max_row_width = std::uint64_t{1} << 20;

/// The first bytes of an index.
struct IndexHead {
  std::array<char, 8> magic = index_magic;
  std::uint32_t version = index_version;
  std::uint32_t zeros[11] = {};
  std::uint64_t sum = 0;  // of the bytes before it
};
static_assert(sizeof(IndexHead) == index_alignment);

/// The last bytes.
struct IndexTail {
  std::uint64_t description_bytes = 0;
  std::uint64_t passages = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t rows = 0;         // checksum, with the zeros behind them
  std::uint64_t description = 0;  // checksum
  std::uint64_t zeros[2] = {};
  std::uint64_t sum = 0;  // of the bytes before it
};
static_assert(sizeof(IndexTail) == index_alignment);

}  // namespace detail
}  // namespace mica::search
