// SPDX-License-Identifier: Apache-2.0
//
// Checksums of weights: what is read is compared with what a packed directory says was written, and damage is refused by the names of the
// file, which has the layer in it, and of the tensor.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/alloc/refused.hpp"
#include "mica/base/bits.hpp"
#include "mica/io/checksum.hpp"
#include "mica/io/direct.hpp"
#include "mica/paging/concept.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace mica::paging {

/// "DIR/layer-003.bin: tensor 'blk.3.attn_q.weight' is damaged ..." for an extent whose bytes are not those of its checksum.
[[nodiscard]] inline std::string damage_text(const gguf::Document& document, const Extent& extent) {
  std::string name = "of this place", expert;
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    if (tensor.source != extent.source || extent.offset < tensor.offset) continue;
    const std::uint64_t behind = extent.offset - tensor.offset;
    const std::uint64_t part = tensor.parts == 1 ? behind : behind % tensor.stride;
    if (part != 0 || (tensor.parts == 1 ? 0 : behind / tensor.stride) >= tensor.parts) continue;
    name = join("'", escaped(tensor.name), "'");
    if (tensor.parts > 1) expert = join(", part ", behind / tensor.stride, " of ", tensor.parts, ",");
    break;
  }
  return join(document.sources()[extent.source].path(), ": tensor ", name, expert,
              " is damaged: its bytes are not those of the checksum in the manifest; pack the model again");
}

/// Whether bytes that were read are those of the extent; true where nothing is known of them.
[[nodiscard]] inline bool intact(const Extent& extent, std::span<const std::byte> bytes) {
  return !extent.checked || io::checksum(bytes) == extent.checksum;
}

/// Reads tensors that are not read otherwise, past the page cache, to compare them with their checksums. `which`: numbers in the table.
/// Raises ErrorCode::file for damage, budget for the buffer, and as io::DirectReader. Cost: one pass, through 2 MiB at most.
template <mica::Allocator A>
void check_extents(const Table& table, std::span<const std::size_t> which, A allocator, LogSink log) {
  std::uint64_t largest = 0;
  for (const std::size_t i : which) {
    if (table.tensors[i].checked) largest = std::max(largest, table.tensors[i].bytes);
  }
  if (largest == 0) return;
  constexpr std::size_t block = io::DirectReader::alignment, most = std::size_t{1} << 20;
  const auto piece =
      static_cast<std::size_t>(std::min<std::uint64_t>(most, round_up<std::uint64_t>(largest, block)));
  const std::size_t through = piece + io::DirectReader::least_bounce_bytes;
  auto buffer = alloc::Buffer<std::byte, A>::make(allocator, piece + through, block);
  MICA_CHECK(buffer, budget, "checking weights: ", piece + through, " bytes of a buffer ",
             alloc::refused(allocator, piece + through));
  if constexpr (!A::dry) {
    for (const std::size_t i : which) {
      const Extent& e = table.tensors[i];
      if (!e.checked) continue;
      const io::DirectReader reader(*table.document.sources()[e.source].file(), log);
      io::Checksum sum;
      for (std::uint64_t done = 0; done < e.bytes; done += piece) {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(piece, e.bytes - done));
        reader.read(e.offset + done, buffer->span().first(n), buffer->span().subspan(piece));
        sum.add(buffer->span().first(n));
      }
      MICA_CHECK(sum.value() == e.checksum, file, damage_text(table.document, e));
    }
  }
}

}  // namespace mica::paging
