// SPDX-License-Identifier: Apache-2.0
//
// The header of one GGUF file, read and checked as a whole: keys and tensors occur once, and every tensor has
// a place of its own in the data. Models of several files are put together in reader.hpp.
#pragma once

#include "mica/gguf/detail/parser.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/gguf/source.hpp"
#include "mica/gguf/tensor_info.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace mica::gguf {

/// What stands before the data of a file.
struct Header {
  std::uint32_t version = 0;
  std::uint32_t alignment = 32;   ///< of every tensor's first byte
  std::uint64_t bytes = 0;        ///< of the header, without the padding after it
  std::uint64_t data_offset = 0;  ///< where the data begins
  Metadata metadata;              ///< a view of the source's memory, or owner of the bytes that were read
  std::vector<TensorInfo> tensors;
};

namespace detail {

[[nodiscard]] inline std::uint32_t read_alignment(const Metadata& metadata) {
  const auto alignment = metadata.get<std::uint32_t>("general.alignment").value_or(32);
  MICA_CHECK(std::has_single_bit(alignment) && alignment >= 8, file, metadata.file(),
             ": key 'general.alignment' is ", alignment, "; a power of two from 8 is needed");
  return alignment;
}

/// Turns offsets in the data into offsets in the file.
inline void place(TensorInfo& tensor, const Header& header, const Source& source) {
  const std::uint64_t data_bytes = source.size() - std::min(source.size(), header.data_offset);
  MICA_CHECK(tensor.offset % header.alignment == 0, file, source.path(), ": tensor '", escaped(tensor.name),
             "': offset ", tensor.offset, " is not a multiple of the alignment ", header.alignment);
  MICA_CHECK(tensor.offset <= data_bytes && tensor.bytes <= data_bytes - tensor.offset, file, source.path(),
             ": tensor '", escaped(tensor.name), "': ", tensor.bytes, " bytes at offset ", tensor.offset,
             " of the data reach past the end of the file, which has ", data_bytes,
             " bytes of data; it is truncated or damaged");
  tensor.offset += header.data_offset;
}

/// Requires placed tensors. Cost: n log n.
inline void refuse_overlaps(const std::vector<TensorInfo>& tensors, const Source& source) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::erase_if(order, [&](std::uint32_t i) { return tensors[i].empty(); });
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return tensors[a].offset != tensors[b].offset ? tensors[a].offset < tensors[b].offset : a < b;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& before = tensors[order[i - 1]];
    const TensorInfo& after = tensors[order[i]];
    MICA_CHECK(before.bytes <= after.offset - before.offset, file, source.path(), ": tensors '",
               escaped(before.name), "' and '", escaped(after.name), "' overlap: ", before.bytes,
               " bytes from byte ", before.offset, ", ", after.bytes, " bytes from byte ", after.offset);
  }
}

/// Reads a header without its data: the offsets of tensors still count from the beginning of the data.
[[nodiscard]] inline Header parse_header(const Source& source) {
  std::optional<HeaderBuffer> buffer;
  if (!source.in_memory()) buffer.emplace(source);
  SpanReader reader = buffer ? buffer->reader() : SpanReader(source.path(), source.memory());
  Parsed parsed = Parser(reader).parse();

  Header header;
  header.version = parsed.version;
  header.bytes = reader.offset();
  std::vector<std::byte> owned;
  if (buffer) owned = buffer->release(header.bytes);
  const std::span<const std::byte> bytes = buffer ? std::span<const std::byte>(owned) : source.memory();
  header.metadata = Metadata(source.path(), bytes, std::move(owned), std::move(parsed.entries));
  header.alignment = read_alignment(header.metadata);
  header.data_offset = round_up(header.bytes, std::uint64_t{header.alignment});
  header.tensors = std::move(parsed.tensors);
  return header;
}

}  // namespace detail

/// The key that the manifest of a packed directory has, and no model (gguf/manifest.hpp).
inline constexpr std::string_view packed_version_key = "mica.packed.version";

/// Reads a header, and nothing else. Requires that memory outlives the answer.
/// Raises ErrorCode::file, unsupported or limit, naming the key or tensor.
[[nodiscard]] inline Header read_header(const Source& source) {
  Header header = detail::parse_header(source);
  MICA_CHECK(!header.metadata.contains(packed_version_key), usage, source.path(), ": key '",
             packed_version_key, "': the manifest of a packed directory; name the directory instead");
  for (TensorInfo& tensor : header.tensors) detail::place(tensor, header, source);
  detail::refuse_overlaps(header.tensors, source);
  return header;
}

}  // namespace mica::gguf
