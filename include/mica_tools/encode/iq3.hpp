// SPDX-License-Identifier: Apache-2.0
//
// IQ3_XXS and IQ3_S: entries of four magnitudes, and signs.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/values.hpp"
#include "mica/format/iq3.hpp"
#include "mica_tools/encode/codebook_groups.hpp"
#include "mica_tools/encode/pack_pairs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mica::format {

namespace search {

/// 32 values share a scale; magnitudes are about odd integers.
template <const auto& entries, const auto& levels, Signs Rule>
struct Iq3Layout {
  using Codebook = SplitCodebook<entries, 3>;
  static constexpr Signs signs = Rule;
  static constexpr std::size_t group = 32, shifts = 1, shared = 1;
  static constexpr int scales = 16;
  static constexpr float step = levels[0] == 1 ? 1.0f : 0.25f;
  [[nodiscard]] static constexpr float level(std::size_t, std::size_t number) noexcept {
    return levels[number];
  }
  using Free = OddLevels<8>;
  static constexpr float free_step = levels[7] / 15.0f;
  static constexpr Reach reach = {0.8f, 2.6f};
  static constexpr Four spread = {{0.8f, 0.93f, 1.07f, 1.2f}};
  static constexpr float undone = 0;
};

}  // namespace search

/// Encodes IQ3_XXS.
template <>
struct Encoder<IQ3_XXS> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, IQ3_XXS::Block& block) noexcept {
    using Layout = search::Iq3Layout<codebook::iq3_xxs, codebook::iq3_xxs_levels, search::Signs::even>;
    const search::Values<256> all(values, weights);
    const auto parts = search::CodebookGroups<Layout>(all).find();
    block.d = parts.d;
    for (std::size_t j = 0; j < 64; ++j) block.entries[j] = static_cast<std::uint8_t>(parts.entry[j]);
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint32_t bits = parts.signs_and_scale(g);
      block.halves[2 * g] = static_cast<std::uint16_t>(bits & 0xFFFF);
      block.halves[2 * g + 1] = static_cast<std::uint16_t>(bits >> 16);
    }
  }
};

/// Encodes IQ3_S.
template <>
struct Encoder<IQ3_S> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, IQ3_S::Block& block) noexcept {
    using Layout = search::Iq3Layout<codebook::iq3_s, codebook::iq3_s_levels, search::Signs::all>;
    const search::Values<256> all(values, weights);
    const auto parts = search::CodebookGroups<Layout>(all).find();
    block = {};
    block.d = parts.d;
    for (std::size_t j = 0; j < 64; ++j) {
      block.low[j] = static_cast<std::uint8_t>(parts.entry[j] & 255);
      block.high[j / 8] = static_cast<std::uint8_t>(block.high[j / 8] | parts.entry[j] >> 8 << (j % 8));
    }
    std::copy_n(parts.signs, 32, block.signs);
    search::pack_adjacent_nibbles(parts.scale, block.scales);
  }
};

}  // namespace mica::format
