// SPDX-License-Identifier: Apache-2.0
//
// An open table of ids that finds a value by its content. The values are elsewhere, by id; nothing is
// removed.
#pragma once

#include "mica/constraint/byte_set.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mica::constraint::detail {

/// Mixes one more word into a hash.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15U;  // 2^64 / golden ratio
  return hash ^ hash >> 32;
}
[[nodiscard]] constexpr std::uint64_t hash_of(const ByteSet& bytes) noexcept {
  std::uint64_t hash = 7;
  for (const std::uint64_t word : bytes.words()) hash = mix(hash, word);
  return hash;
}

/// Ids by the content of their values.
class InternTable {
 public:
  /// The id for which equal(id) holds, or else the one that add() returns. hash: that of the content.
  template <class Equal, class Add>
  std::uint32_t find_or_add(std::uint64_t hash, Equal&& equal, Add&& add) {
    if ((used_ + 1) * 4 > slots_.size() * 3) grow();
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].id != free; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].tag == tag_of(hash) && equal(slots_[at].id)) return slots_[at].id;
    }
    const std::uint32_t id = add();
    slots_[at] = {tag_of(hash), id};
    ++used_;
    return id;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }

 private:
  static constexpr std::uint32_t free = 0xFFFF'FFFFU;
  struct Slot {
    std::uint32_t tag;  // the low half of the hash: where the slot belongs in a table of any size
    std::uint32_t id = free;
  };
  [[nodiscard]] static std::uint32_t tag_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash);
  }

  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 64 : slots_.size() * 2, Slot{0, free});
    for (const Slot& slot : slots_) {
      if (slot.id == free) continue;
      std::size_t at = slot.tag & (larger.size() - 1);
      while (larger[at].id != free) at = (at + 1) & (larger.size() - 1);
      larger[at] = slot;
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;  // a power of two, at most three quarters used
  std::size_t used_ = 0;
};

}  // namespace mica::constraint::detail
