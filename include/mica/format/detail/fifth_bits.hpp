// SPDX-License-Identifier: Apache-2.0
//
// The fifth bits of 32 codes, in one word. In a file bit i belongs to value i; packed, bit j of byte c
// belongs to value 4 j + c, so that the bits of four adjacent values are at the same position of four bytes.
#pragma once

#include <cstdint>

namespace mica::format::detail {

[[nodiscard]] constexpr std::uint32_t pack_fifth_bits(std::uint32_t file) noexcept {
  std::uint32_t packed = 0;
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t four = (file >> (4 * j)) & 15;
    packed |= ((four * 0x00204081U) & 0x01010101U) << j;  // a copy of the four bits at 0, 7, 14 and 21
  }
  return packed;
}

[[nodiscard]] constexpr std::uint32_t unpack_fifth_bits(std::uint32_t packed) noexcept {
  std::uint32_t file = 0;
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t four = (packed >> j) & 0x01010101U;
    file |= ((four | (four >> 7) | (four >> 14) | (four >> 21)) & 15) << (4 * j);
  }
  return file;
}

static_assert(pack_fifth_bits(1U << 22) == 1U << 21 && unpack_fifth_bits(1U << 21) == 1U << 22);

}  // namespace mica::format::detail
