// SPDX-License-Identifier: Apache-2.0
//
// IQ2_XXS, IQ2_XS and IQ2_S: entries of eight magnitudes, and signs.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/values.hpp"
#include "mica/format/iq2.hpp"
#include "mica_tools/encode/codebook_groups.hpp"
#include "mica_tools/encode/pack_pairs.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

namespace search {

/// Magnitudes are about 1, 3 and 5 times 8.6.
template <const auto& entries, std::size_t Group, Signs Rule>
struct Iq2Layout {
  using Codebook = SplitCodebook<entries, 2>;
  static constexpr Signs signs = Rule;
  static constexpr std::size_t group = Group, shifts = 1, shared = 1;
  static constexpr int scales = 16;
  static constexpr float step = 0.125f;
  [[nodiscard]] static constexpr float level(std::size_t, std::size_t number) noexcept {
    return codebook::iq2_levels[number];
  }
  using Free = OddLevels<3>;
  static constexpr float free_step = 8.6f;
  static constexpr Reach reach = {0.8f, 2.6f};
  static constexpr Four spread = {{0.7f, 0.87f, 1.07f, 1.3f}};
  static constexpr float undone = 0.75f;
};

}  // namespace search

/// Encodes IQ2_XXS.
template <>
struct Encoder<IQ2_XXS> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, IQ2_XXS::Block& block) noexcept {
    using Layout = search::Iq2Layout<codebook::iq2_xxs, 32, search::Signs::even>;
    const search::Values<256> all(values, weights);
    const auto parts = search::CodebookGroups<Layout>(all).find();
    block.d = parts.d;
    for (std::size_t g = 0; g < 8; ++g) {
      IQ2_XXS::Group& group = block.groups[g];
      for (std::size_t j = 0; j < 4; ++j)
        group.entries[j] = static_cast<std::uint8_t>(parts.entry[4 * g + j]);
      const std::uint32_t bits = parts.signs_and_scale(g);
      group.low = static_cast<std::uint16_t>(bits & 0xFFFF);
      group.high = static_cast<std::uint16_t>(bits >> 16);
    }
  }
};

/// Encodes IQ2_XS.
template <>
struct Encoder<IQ2_XS> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, IQ2_XS::Block& block) noexcept {
    using Layout = search::Iq2Layout<codebook::iq2_xs, 16, search::Signs::even>;
    const search::Values<256> all(values, weights);
    const auto parts = search::CodebookGroups<Layout>(all).find();
    block.d = parts.d;
    for (std::size_t j = 0; j < 32; ++j)
      block.words[j] = static_cast<std::uint16_t>(parts.entry[j] | (parts.signs[j] & 127u) << 9);
    search::pack_adjacent_nibbles(parts.scale, block.scales);
  }
};

/// Encodes IQ2_S.
template <>
struct Encoder<IQ2_S> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, IQ2_S::Block& block) noexcept {
    using Layout = search::Iq2Layout<codebook::iq2_s, 16, search::Signs::all>;
    const search::Values<256> all(values, weights);
    const auto parts = search::CodebookGroups<Layout>(all).find();
    block = {};
    block.d = parts.d;
    for (std::size_t j = 0; j < 32; ++j) {
      block.low[j] = static_cast<std::uint8_t>(parts.entry[j] & 255);
      block.signs[j] = parts.signs[j];
      std::uint8_t& high = block.high[j / 4];
      high = static_cast<std::uint8_t>(high | parts.entry[j] >> 8 << (j % 4 * 2));
    }
    search::pack_adjacent_nibbles(parts.scale, block.scales);
  }
};

}  // namespace mica::format
