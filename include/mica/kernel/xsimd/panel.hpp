// SPDX-License-Identifier: Apache-2.0
//
// A chunk of sixteen rows in the form that tiles multiply (tiles.hpp), and a chunk of tokens beside it. A
// chunk is 256 values of a row: one block or several. Both are the same type for all formats; PanelShape says
// which parts of them a format has.
#pragma once

#include "mica/kernel/xsimd/dot.hpp"
#include "mica/kernel/xsimd/words.hpp"

#include <algorithm>

namespace mica::kernel::xsimd {

/// Values of a chunk.
inline constexpr std::size_t chunk_values = 256;

/// What the code of a product depends on. Formats of one shape share it.
struct PanelShape {
  std::size_t block_size;  // values
  std::size_t group;       // values, 16 or 32
  bool has_mins;
  bool has_scales;  // false: every integer scale is 1
  bool has_bias;    // codes are unsigned and have an offset, which sums begin with
  bool with_sign;   // codes are signed bytes
};

/// Whether products with the format can be computed in panels.
template <class F>
inline constexpr bool fits_panel = chunk_values % F::block_size == 0 && F::block_size % 32 == 0 &&
                                   (F::group == 16 || F::group == 32);

/// What sixteen rows multiply their integer sums by. What a shape does not have is not set.
struct PanelScales {
  alignas(64) float scale[chunk_values / 16][panel_rows];  // by group
  alignas(64) float min[chunk_values / 16][panel_rows];
  alignas(64) float d[chunk_values / 32][panel_rows];           // by block
  alignas(64) float minus_dmin[chunk_values / 32][panel_rows];  // -dmin
};

/// Sixteen rows: codes of four adjacent values in a line.
struct Panel {
  alignas(64) std::uint8_t lines[chunk_values / 4][panel_rows][4];
  PanelScales scales;
};

/// Tokens that are gathered together, or chunks of fewer tokens.
inline constexpr std::size_t gathered = 96;

/// One chunk of the activations of a token.
struct TokenChunk {
  alignas(64) std::int8_t codes[chunk_values];
  float scale[chunk_values / 32];
  float min_factor[chunk_values / 16];    // by group of weights: scale * sum of x codes
  std::int32_t start[chunk_values / 16];  // minus what offsets of codes add to a sum
};

/// Values [k, k + n) of a token, n a multiple of 32. offset: what is added to every weight's code.
template <PanelShape shape, class A>
void gather(const QuantizedRows& x, std::size_t token, std::size_t k, std::size_t n, std::int32_t offset,
            TokenChunk& out) noexcept {
  const float* const scales = x.row_scales(token) + k / 32;
  const std::int16_t* const sums = x.row_sums(token) + k / 16;
  std::copy_n(x.row_codes(token) + k, n, out.codes);
  std::copy_n(scales, n / 32, out.scale);
  for (std::size_t g = 0; (shape.has_mins || shape.has_bias) && g < n / shape.group; ++g) {
    const std::int32_t sum = shape.group == 16 ? sums[g] : sums[2 * g] + sums[2 * g + 1];
    if constexpr (shape.has_mins) out.min_factor[g] = scales[g * shape.group / 32] * static_cast<float>(sum);
    if constexpr (shape.has_bias) out.start[g] = -offset * sum;
  }
}

}  // namespace mica::kernel::xsimd
