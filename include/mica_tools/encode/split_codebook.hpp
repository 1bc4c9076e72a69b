// SPDX-License-Identifier: Apache-2.0
//
// A codebook (format/detail/codebooks.hpp) arranged for a search: its entries by their upper halves. There
// are few halves: 81 of four numbers with three levels, and 64 of two numbers with eight.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mica::format::search {

/// A codebook of entries of eight numbers of two bits, or of four numbers of three bits. A half of an entry
/// is two quarters, of two numbers or of one.
template <const auto& entries, unsigned bits>
struct SplitCodebook {
  static_assert(bits == 2 || bits == 3);
  static constexpr std::size_t size = entries.size();
  static constexpr std::size_t numbers = bits == 2 ? 8 : 4;   // of an entry
  static constexpr std::size_t levels = bits == 2 ? 3 : 8;    // that a number chooses from
  static constexpr std::size_t quarters = bits == 2 ? 9 : 8;  // choices for a quarter
  static constexpr std::size_t halves = quarters * quarters;  // choices for a half

  /// Number i of an entry: the place of its level.
  [[nodiscard]] static constexpr std::size_t number(std::size_t entry, std::size_t i) noexcept {
    return entries[entry] >> (bits * i) & ((1u << bits) - 1);
  }

  /// Entries ascend, so those with upper half h are adjacent: from first[h] to first[h + 1].
  struct Lists {
    std::array<std::uint16_t, halves + 1> first;
    std::array<std::uint8_t, size> lower;  // the lower half of each entry
  };
  static constexpr Lists lists = [] {
    Lists out = {};
    for (std::size_t e = 0; e < size; ++e) {
      std::size_t half[2] = {};
      for (std::size_t i = numbers; i-- > 0;) {
        std::size_t& digits = half[i / (numbers / 2)];
        digits = levels * digits + number(e, i);
      }
      out.lower[e] = static_cast<std::uint8_t>(half[0]);
      out.first[half[1] + 1] = static_cast<std::uint16_t>(e + 1);
    }
    for (std::size_t h = 0; h < halves; ++h) {
      if (out.first[h + 1] == 0) out.first[h + 1] = out.first[h];
    }
    return out;
  }();
};

}  // namespace mica::format::search
