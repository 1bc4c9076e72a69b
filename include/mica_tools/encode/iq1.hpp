// SPDX-License-Identifier: Apache-2.0
//
// IQ1_S and IQ1_M: entries of -1, 0 and 1 that are shifted by one eighth up or down.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/values.hpp"
#include "mica/format/iq1.hpp"
#include "mica_tools/encode/codebook_groups.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

namespace search {

/// Levels are eighths.
template <std::size_t Group, std::size_t Shared>
struct Iq1Layout {
  using Codebook = SplitCodebook<codebook::iq1, 2>;
  static constexpr Signs signs = Signs::of_levels;
  static constexpr std::size_t group = Group, shifts = 2, shared = Shared;
  static constexpr int scales = 8;
  static constexpr float step = 0.125f;
  [[nodiscard]] static constexpr float level(std::size_t shift, std::size_t number) noexcept {
    return codebook::iq1_levels[shift][number];
  }
  using Free = Integers<-1, 1>;
  static constexpr float free_step = 8;
  static constexpr Reach reach = {1, 4};
  static constexpr Four spread = {{0.7f, 0.87f, 1.07f, 1.3f}};
  static constexpr float undone = 0.75f;
};

}  // namespace search

/// 32 values share a scale and a shift.
template <>
struct Encoder<IQ1_S> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, IQ1_S::Block& block) noexcept {
    const search::Values<256> all(values, weights);
    const auto parts = search::CodebookGroups<search::Iq1Layout<32, 4>>(all).find();
    block.d = parts.d;
    for (std::size_t g = 0; g < 8; ++g) {
      unsigned bits = unsigned{parts.scale[g]} << 12 | unsigned{parts.shift[4 * g]} << 15;
      for (std::size_t j = 0; j < 4; ++j) {
        const unsigned entry = parts.entry[4 * g + j];
        block.low[4 * g + j] = static_cast<std::uint8_t>(entry & 255);
        bits |= entry >> 8 << (3 * j);
      }
      block.high[g] = static_cast<std::uint16_t>(bits);
    }
  }
};

/// 16 values share a scale, and eight a shift.
template <>
struct Encoder<IQ1_M> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, IQ1_M::Block& block) noexcept {
    const search::Values<256> all(values, weights);
    const auto parts = search::CodebookGroups<search::Iq1Layout<16, 1>>(all).find();
    block = {};
    for (std::size_t j = 0; j < 32; ++j) {
      const unsigned entry = parts.entry[j] | unsigned{parts.shift[j]} << 11;
      block.low[j] = static_cast<std::uint8_t>(entry & 255);
      block.high[j / 2] = static_cast<std::uint8_t>(block.high[j / 2] | entry >> 8 << (j % 2 * 4));
    }
    for (std::size_t g = 0; g < 16; ++g) {
      std::uint16_t& bits = block.scales[g / 4];
      bits = static_cast<std::uint16_t>(bits | unsigned{parts.scale[g]} << (g % 4 * 3));
    }
    IQ1_M::set_scale(block, parts.d);
  }
};

}  // namespace mica::format
