// SPDX-License-Identifier: Apache-2.0
//
// The header of one GGUF file, read and checked as a whole: keys and tensors occur once, and every tensor has
// a place of its own in the data. Models of several files are put together in reader.hpp.
#pragma once

#include "mica/base/bytes.hpp"
#include "mica/gguf/detail/parser.hpp"
#include "mica/gguf/document.hpp"

#include <algorithm>
#include <bit>

namespace mica::gguf {

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

/// Requires placed tensors, whose files are `sources`. Cost: n log n.
inline void refuse_overlaps(const std::vector<TensorInfo>& tensors, std::span<const Source> sources,
                            std::string_view way_out = {}) {
  const std::vector<PlacedTensor> parts = parts_in_order({tensors.data(), tensors.size()});
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const TensorInfo &before = *parts[i - 1].tensor, &after = *parts[i].tensor;
    const std::uint64_t first = parts[i - 1].offset, second = parts[i].offset;
    MICA_CHECK(before.source != after.source || before.part_bytes() <= second - first, file,
               sources[after.source].path(), ": tensors '", escaped(before.name), "' and '",
               escaped(after.name), "' overlap: ", before.part_bytes(), " bytes from byte ", first, ", ",
               after.part_bytes(), " bytes from byte ", second, way_out);
  }
}

/// Of a file, without leaving pages in the page cache, which would count towards a control group.
inline void read_past_cache(const Source& source, std::uint64_t offset, std::span<std::byte> to) {
  const io::File* const file = source.file();
  if (file == nullptr) return source.read_at(offset, to);
  file->read_ahead(false);
  source.read_at(offset, to);
  file->forget(0, offset + to.size());  // pages may come in larger pieces than reads
  file->read_ahead(true);
}

/// Reads a header without its data: the offsets of tensors still count from the beginning of the data.
[[nodiscard]] inline Header parse_header(const Source& source, format::Table formats) {
  std::vector<std::byte> owned;  // the front of a file, as far as the reader has come
  const auto load = [&](std::uint64_t count) -> std::span<const std::byte> {
    MICA_CHECK(count <= max_header_bytes, limit, source.path(), ": a header of more than ", max_header_bytes,
               " bytes is refused; this one has come to ", count);
    const std::size_t had = owned.size();
    const std::uint64_t wanted = std::max(count, had + source.next_bytes(had));
    owned.resize(static_cast<std::size_t>(std::min({wanted, source.size(), max_header_bytes})));
    read_past_cache(source, had, {owned.data() + had, owned.size() - had});
    return {owned.data(), owned.size()};
  };
  SpanReader reader = source.in_memory() ? SpanReader(source.path(), source.memory())
                                         : SpanReader(source.path(), source.size(), load);
  Parsed parsed = Parser(reader, formats).parse();

  Header header;
  header.formats = formats;
  header.version = parsed.version;
  header.bytes = reader.offset();
  if (!source.in_memory()) owned.resize(static_cast<std::size_t>(header.bytes));
  owned = std::vector<std::byte>(owned);  // without room for more
  const auto bytes = source.in_memory() ? source.memory() : bytes_of(owned.data(), owned.size());
  header.metadata = Metadata(source.path(), bytes, std::move(owned), std::move(parsed.entries));
  header.alignment = read_alignment(header.metadata);
  header.data_offset = round_up(header.bytes, std::uint64_t{header.alignment});
  header.tensors = std::move(parsed.tensors);
  return header;
}

}  // namespace detail

/// The key that the manifest of a packed directory has, and no model (gguf/manifest.hpp).
inline constexpr std::string_view packed_version_key = "mica.packed.version";

/// Reads a header, and nothing else, of a file whose tensors have formats of that table. Requires that memory
/// outlives the answer.
/// Raises ErrorCode::file, unsupported or limit, naming the key or tensor.
[[nodiscard]] inline Header read_header(const Source& source, format::Table formats) {
  Header header = detail::parse_header(source, formats);
  MICA_CHECK(!header.metadata.contains(packed_version_key), usage, source.path(), ": key '",
             packed_version_key, "': the manifest of a packed directory; name the directory instead");
  for (TensorInfo& tensor : header.tensors) detail::place(tensor, header, source);
  detail::refuse_overlaps(header.tensors, {&source, 1});
  return header;
}

}  // namespace mica::gguf
