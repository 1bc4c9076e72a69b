// SPDX-License-Identifier: Apache-2.0
//
// A KV element of your own: eight-bit floats, as graphics processors store keys and values (the form
// E4M3: 1 sign, 4 exponent, 3 fraction bits; OCP 8-bit Floating Point Specification, 2023). No scales: a tile
// is 16 rows of head_dim bytes.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/format/concept.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

struct F8 {
  static constexpr std::string_view name = "F8";

  static std::size_t key_tile_bytes(std::size_t head_dim) noexcept {
    return mica::round_up<std::size_t>(16 * head_dim, 32);
  }
  static std::size_t value_tile_bytes(std::size_t head_dim) noexcept { return key_tile_bytes(head_dim); }

  static void store_key(std::byte* tile, std::size_t slot, std::size_t head_dim, const float* head) noexcept {
    for (std::size_t i = 0; i < head_dim; ++i) tile[slot * head_dim + i] = encode(head[i]);
  }
  static void load_key(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    for (std::size_t i = 0; i < head_dim; ++i) out[i] = decode(tile[slot * head_dim + i]);
  }
  static void store_value(std::byte* tile, std::size_t slot, std::size_t head_dim,
                          const float* head) noexcept {
    store_key(tile, slot, head_dim, head);
  }
  static void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    load_key(tile, slot, head_dim, out);
  }

  /// Rounds to nearest even. Numbers that are not finite, or round to more than 448, become NaN, so that the
  /// error is noticed.
  static std::byte encode(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), sign = bits >> 31 << 7;
    const float magnitude = std::fabs(value);
    if (!(magnitude <= 464.0f)) return static_cast<std::byte>(sign | nan);
    if (magnitude < 0x1p-6f)  // steps of 2^-9; eight of them are the smallest normal number
      return static_cast<std::byte>(sign | static_cast<std::uint32_t>(std::nearbyint(magnitude * 0x1p9f)));
    const std::uint32_t rounded = (bits & 0x7FFFFFFFu) + 0x7FFFFu + ((bits >> 20) & 1u);
    return static_cast<std::byte>(sign | ((rounded >> 20) - (120u << 3)));
  }
  static float decode(std::byte code) noexcept {
    const auto bits = std::to_integer<std::uint32_t>(code), magnitude = bits & 0x7Fu;
    const float value = magnitude == nan ? std::numeric_limits<float>::quiet_NaN()
                        : magnitude < 8  ? static_cast<float>(magnitude) * 0x1p-9f
                                         : std::bit_cast<float>((magnitude + (120u << 3)) << 20);
    return bits >= 0x80u ? -value : value;
  }

 private:
  static constexpr std::uint32_t nan = 0x7F;
};

static_assert(mica::KvElement<F8>);
