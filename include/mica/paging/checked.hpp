// SPDX-License-Identifier: Apache-2.0
//
// Checksums of weights: bytes that are read are compared with the manifest of a packed directory, and damage
// is refused by the names of the file, which contains the layer, and of the tensor.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/bits.hpp"
#include "mica/io/checksum.hpp"
#include "mica/io/direct.hpp"
#include "mica/paging/concept.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mica::paging {

/// "DIR/layer-003.bin: tensor 'blk.3.attn_q.weight' is damaged ..." for an extent whose bytes are not those
/// of its checksum.
[[nodiscard]] inline std::string damage_text(const gguf::Document& document, const Extent& extent) {
  const std::string& path = document.sources()[extent.source].path();
  for (const gguf::PlacedTensor& part : gguf::parts_in_order(document.tensors(), extent.source)) {
    if (part.offset == extent.offset) return part.damage_text(path);
  }
  return join(path, ": damaged at byte ", extent.offset, "; pack the model again");
}

/// Whether bytes that were read have the checksum of the extent; true for an extent without one.
[[nodiscard]] inline bool intact(const Extent& extent, std::span<const std::byte> bytes) {
  return !extent.checked || io::checksum(bytes) == extent.checksum;
}

/// Reads tensors that are not read otherwise, past the page cache, to compare them with their checksums.
/// `which`: numbers in the table. Raises ErrorCode::file for damage, budget for the buffer, and as
/// io::DirectReader. Cost: one pass, through 2 MiB at most.
template <mica::Allocator A>
void check_extents(const Table& table, std::span<const std::size_t> which, A allocator, LogSink log) {
  std::uint64_t largest = 0;
  for (const std::size_t i : which) {
    if (table.tensors[i].checked) largest = std::max(largest, table.tensors[i].bytes);
  }
  if (largest == 0) return;
  constexpr std::size_t block = io::DirectReader::alignment, max = std::size_t{1} << 20;
  const auto piece =
      static_cast<std::size_t>(std::min<std::uint64_t>(max, round_up<std::uint64_t>(largest, block)));
  const std::size_t through = piece + io::DirectReader::min_bounce_bytes;
  auto buffer = alloc::Buffer<std::byte, A>::make(allocator, piece + through, block);
  MICA_CHECK(buffer, budget, "checking weights: ", piece + through, " bytes of a buffer ",
             alloc::refused(allocator, piece + through));
  const std::span<const gguf::Source> sources = readable<A>(table.document);
  for (const std::size_t i : which) {
    const Extent& e = table.tensors[i];
    if (!e.checked || sources.empty()) continue;
    const io::DirectReader reader(*sources[e.source].file(), log);
    io::Checksum sum;
    for (std::uint64_t done = 0; done < e.bytes; done += piece) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(piece, e.bytes - done));
      reader.read(e.offset + done, buffer->span().first(n), buffer->span().subspan(piece));
      sum.add(buffer->span().first(n));
    }
    MICA_CHECK(sum.value() == e.checksum, file, damage_text(table.document, e));
  }
}

}  // namespace mica::paging
