// SPDX-License-Identifier: Apache-2.0
//
// Sets of tensors in memory of our own, packed as a Resident packs them. Each set has a block to itself, so
// that it comes and goes without the others:
//
//   | layer 0 |   | layer 1 |             | layer 3 |        layer 2 has been given back
#pragma once

#include "mica/paging/resident.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace mica::paging {

/// Blocks of 2 MiB and more lie on huge pages, where the allocator has them. One thread.
template <mica::Allocator A, Layout layout>
class ResidentTensors {
 public:
  using Block = Resident<A, layout>;
  static constexpr bool packs = Block::packs;
  /// What reading a set takes beside it, unless sixteen rows of a matrix are larger than Block::panels_bytes.
  static constexpr std::size_t reading_bytes = Block::bounce_bytes + Block::panels_bytes;

  /// No set yet. The document and the tensors of the table outlive this.
  ResidentTensors(const Table& table, std::size_t sets, A allocator, LogSink log)
      : table_(table), allocator_(allocator), log_(log), blocks_(sets), places_(table.tensors.size()) {}

  /// Reads a set that is not there. Raises ErrorCode::budget, file or failed as Resident does, and nothing
  /// has changed.
  void keep(std::size_t set, std::span<const std::size_t> tensors);
  /// Gives the memory of a set back.
  void drop(std::size_t set, std::span<const std::size_t> tensors) noexcept {
    blocks_[set].reset();
    for (const std::size_t tensor : tensors) places_[tensor] = {};
  }
  [[nodiscard]] bool has(std::size_t set) const noexcept { return blocks_[set].has_value(); }

  [[nodiscard]] bool has_tensor(std::size_t tensor) const noexcept { return places_[tensor].resident; }
  /// Of a tensor that is there.
  [[nodiscard]] const std::byte* data(std::size_t tensor) const noexcept { return places_[tensor].data; }
  [[nodiscard]] bool packed(std::size_t tensor) const noexcept { return places_[tensor].packed; }

 private:
  struct Place {
    const std::byte* data = nullptr;
    bool packed = false;
    bool resident = false;
  };

  Table table_;
  A allocator_;
  LogSink log_;
  std::vector<std::optional<Block>> blocks_;  // by set
  std::vector<Place> places_;                 // by tensor
};

template <mica::Allocator A, Layout L>
void ResidentTensors<A, L>::keep(std::size_t set, std::span<const std::size_t> tensors) {
  if (tensors.empty()) return;
  std::vector<Extent> extents;
  for (const std::size_t tensor : tensors) extents.push_back(table_.tensors[tensor]);
  Table part{table_};
  part.tensors = extents;
  const Block& block = blocks_[set].emplace(part, allocator_, log_);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    places_[tensors[i]] = {block.data(i), block.packed(i), true};
}

}  // namespace mica::paging
