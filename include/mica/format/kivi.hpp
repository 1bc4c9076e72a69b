// SPDX-License-Identifier: Apache-2.0
//
// Keys and values that are encoded a tile at a time: keys with a scale and a zero for each channel over the
// sixteen tokens, values with a scale and a zero for 32 numbers of one token (Z. Liu et al., KIVI, 2024).
// Large keys sit in the same channels of all tokens, so that a channel's own scale costs the others nothing.
// Two and four bits a code.
//
//   keys     | codes: planes of sixteen bytes, of 8 / bits neighbouring channels | ranges [channel] |
//   values   | codes: blocks of sixteen bytes, of every sixteenth number | ranges [group of 32][16 tokens] |
//
// Ranges of keys are filled up to a multiple of sixteen, values to a whole block.
#pragma once

#include "mica/format/q4_s.hpp"
#include "mica/format/tiling.hpp"

#include <algorithm>
#include <cmath>

namespace mica::format {

/// The scale and the zero of a group, as they lie in memory: | scale, one byte | zero, one signed byte |
struct KiviRange {
  std::uint8_t scale = 0;  // the bits of Q4_S::scale_of
  std::int8_t zero = 0;    // in scales

  [[nodiscard]] float factor() const noexcept { return Q4_S::scale_of(scale); }  // the scale as a float
  /// What code 0 stands for. Exact: four bits times eight.
  [[nodiscard]] float minimum() const noexcept { return factor() * static_cast<float>(zero); }
};
static_assert(sizeof(KiviRange) == 2);

/// Numbers that share a scale and a zero point: value = scale * (step * code + zero). The scale is one of
/// Q4_S's eight bits. The zero counts scales, and a code of two bits is worth four of them, so that it moves by
/// a quarter of a step. Numbers far from zero that differ little keep what they differ by, until they are 30
/// times larger than that (100 times with four bits).
template <int bits>
struct KiviGroup {
  static_assert(bits == 2 || bits == 4);
  static constexpr int code_max = (1 << bits) - 1;  // codes begin at 0
  static constexpr int step = bits == 2 ? 4 : 1;    // scales

  /// Codes of n numbers, n a multiple of 16 and at most 32, and what they share. The least squared error of
  /// twelve candidates. What F16 could not hold makes the scale no number, so that it cannot hide behind
  /// small codes.
  static KiviRange encode(const float* values, std::size_t n, std::uint8_t* codes) noexcept {
    std::fill_n(codes, n, std::uint8_t{0});
    const auto [low, high] = std::minmax_element(values, values + n);
    const bool fits = std::all_of(values, values + n, [](float x) { return std::fabs(x) <= 65504.0f; });
    if (!fits) return {Q4_S::no_number, 0};
    // The least scale whose codes span the numbers and whose zero reaches the lowest.
    const float needed =
        std::max((*high - *low) / static_cast<float>(code_max * step), std::fabs(*low) / max_zero);
    const int about = Q4_S::nearest_scale(needed);
    if (about == 0) return {};
    KiviRange best;
    float min = std::numeric_limits<float>::infinity();
    for (int scale = std::max(about - 2, 1); scale <= std::min(about + 1, Q4_S::no_number - 1); ++scale) {
      const float factor = Q4_S::scale_of(static_cast<std::uint8_t>(scale)), inverse = 1.0f / factor;
      const float middle = (*low + *high) * 0.5f * inverse - static_cast<float>(code_max * step) * 0.5f;
      for (int beside = -1; beside <= 1; ++beside) {
        const float zero = std::clamp(std::nearbyint(middle) + static_cast<float>(beside), -127.0f, 127.0f);
        const float e = error(values, n, inverse, zero) * factor * factor;
        if (!(e < min)) continue;
        min = e;
        best = {static_cast<std::uint8_t>(scale), static_cast<std::int8_t>(zero)};
      }
    }
    const float inverse = 1.0f / best.factor();
    for (std::size_t i = 0; i < n; ++i)
      codes[i] = static_cast<std::uint8_t>(code_of(values[i] * inverse, best.zero));
    return best;
  }

  /// The number of a code.
  [[nodiscard]] static float value(KiviRange range, int code) noexcept {
    return range.factor() * static_cast<float>(step * code + range.zero);
  }

 private:
  static constexpr int max_zero = 127;

  /// The code of a number that has been divided by its scale.
  [[nodiscard]] static int code_of(float scaled, float zero) noexcept {
    const float code = (scaled - zero) * (1.0f / step);
    return static_cast<int>(std::clamp(code, 0.0f, static_cast<float>(code_max)) + 0.5f);
  }
  /// In units of the scale, squared; in sixteen sums, which compilers turn into vectors.
  [[nodiscard]] static float error(const float* values, std::size_t n, float inverse, float zero) noexcept {
    float sums[16] = {};
    for (std::size_t first = 0; first < n; first += 16) {
      for (std::size_t i = 0; i < 16; ++i) {
        const float scaled = values[first + i] * inverse;
        const float off = scaled - zero - static_cast<float>(step * code_of(scaled, zero));
        sums[i] += off * off;
      }
    }
    float sum = 0;
    for (const float s : sums) sum += s;
    return sum;
  }
};

template <int bits>
struct Kivi {
  using Group = KiviGroup<bits>;  // encodes and decodes the numbers of a range
  static constexpr std::string_view name = bits == 2 ? "KIVI2" : "KIVI4";
  static constexpr std::size_t per_byte = 8 / bits;         // codes in a byte
  static constexpr std::size_t group_size = 32;             // numbers of a value that share a range
  static constexpr std::size_t block_size = 16 * per_byte;  // numbers of a value in sixteen bytes
  static constexpr std::size_t groups_per_block = block_size / group_size;  // ranges
  /// Where the codes are in a tile of keys, and in one of values.
  using Keys = CodeTiling<Tiling<tile_tokens, Columns<0, per_byte>, Rows<>>, Columns<per_byte>>;
  using Values =
      CodeTiling<Tiling<tile_tokens, Columns<0, block_size>, Rows<>, Columns<16>>, Columns<per_byte, 16>>;

  // Required by KvTileElement
  static std::size_t key_tile_bytes(std::size_t head_dim) noexcept {
    return round_up<std::size_t>(Keys::size(head_dim) + round_up<std::size_t>(head_dim, 16) * 2, 32);
  }
  static std::size_t value_tile_bytes(std::size_t head_dim) noexcept {
    return Values::size(head_dim) + blocks(head_dim) * groups_per_block * tile_tokens * sizeof(KiviRange);
  }
  static void store_keys(std::byte* tile, std::size_t head_dim, const float* heads) noexcept {
    std::fill_n(tile, key_tile_bytes(head_dim), std::byte{0});
    auto* const ranges = const_cast<KiviRange*>(key_ranges(tile, head_dim));
    for (std::size_t channel = 0; channel < head_dim; ++channel) {
      float values[tile_tokens];
      std::uint8_t codes[tile_tokens];
      for (std::size_t slot = 0; slot < tile_tokens; ++slot) values[slot] = heads[slot * head_dim + channel];
      ranges[channel] = Group::encode(values, tile_tokens, codes);
      for (std::size_t slot = 0; slot < tile_tokens; ++slot) Keys::set(tile, slot, channel, codes[slot]);
    }
  }
  /// A group that is not full is encoded with its first numbers again.
  static void store_values(std::byte* tile, std::size_t head_dim, const float* heads) noexcept {
    std::fill_n(tile, value_tile_bytes(head_dim), std::byte{0});
    for (std::size_t first = 0; first < head_dim; first += group_size) {
      const std::size_t count = std::min(group_size, head_dim - first);
      auto* const ranges = const_cast<KiviRange*>(value_ranges(tile, head_dim, first / group_size));
      for (std::size_t slot = 0; slot < tile_tokens; ++slot) {
        float values[group_size];
        std::uint8_t codes[group_size];
        for (std::size_t i = 0; i < group_size; ++i) values[i] = heads[slot * head_dim + first + i % count];
        ranges[slot] = Group::encode(values, group_size, codes);
        for (std::size_t i = 0; i < count; ++i) Values::set(tile, slot, first + i, codes[i]);
      }
    }
  }
  static void load_key(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    const KiviRange* const ranges = key_ranges(tile, head_dim);
    for (std::size_t i = 0; i < head_dim; ++i) out[i] = Group::value(ranges[i], Keys::get(tile, slot, i));
  }
  static void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    for (std::size_t i = 0; i < head_dim; ++i) {
      const KiviRange range = value_ranges(tile, head_dim, i / group_size)[slot];
      out[i] = Group::value(range, Values::get(tile, slot, i));
    }
  }

  // Specific to Kivi: where what lies
  /// Planes of a tile of keys, and blocks of sixteen bytes of one token's values.
  [[nodiscard]] static constexpr std::size_t planes(std::size_t head_dim) noexcept {
    return ceil_div(head_dim, per_byte);
  }
  [[nodiscard]] static constexpr std::size_t blocks(std::size_t head_dim) noexcept {
    return ceil_div(head_dim, block_size);
  }
  /// Ranges of the channels of a tile of keys.
  [[nodiscard]] static const KiviRange* key_ranges(const std::byte* tile, std::size_t head_dim) noexcept {
    return reinterpret_cast<const KiviRange*>(tile + Keys::size(head_dim));
  }
  /// Ranges of a group of a tile of values, (16).
  [[nodiscard]] static const KiviRange* value_ranges(const std::byte* tile, std::size_t head_dim,
                                                     std::size_t group) noexcept {
    return reinterpret_cast<const KiviRange*>(tile + blocks(head_dim) * tile_tokens * 16) +
           group * tile_tokens;
  }
};

using KIVI4 = Kivi<4>;  // 5 bits for a number of keys, 4.5 for one of values, if head_dim is a multiple of 32
using KIVI2 = Kivi<2>;  // 3 and 2.5 bits, if head_dim is a multiple of 64

/// Whether E is one of them.
template <class E>
inline constexpr bool is_kivi = false;
template <int bits>
inline constexpr bool is_kivi<Kivi<bits>> = true;

static_assert(KvTileElement<KIVI4> && KvTileElement<KIVI2> && !KvElement<KIVI4>);

}  // namespace mica::format
