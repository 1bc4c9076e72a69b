// SPDX-License-Identifier: Apache-2.0
//
// A block with one scale and one offset: value = d * code + m, d and m half floats, codes 0 to High.
#pragma once

#include "mica/format/encode/line.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/encode/values.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format::search {

/// The fields of such a block beside its codes.
struct HalfLine {
  Half d = {};
  Half m = {};
};

/// Finds d, m and codes. The search runs on deviations from the mean, so that an offset far larger than the
/// spread costs no digits; once m is rounded, what is left is to choose d. `values` become deviations from m.
template <int High, Effort effort = Effort::thorough, std::size_t N>
[[nodiscard]] HalfLine find_half_line(Values<N>& values, std::uint8_t* codes) noexcept {
  float mean = 0;
  for (const float x : values.x) mean += x / static_cast<float>(N);
  for (float& x : values.x) x -= mean;
  const Line line = find_line<High, Offset::any, effort>(values.x, values.w, N);
  HalfLine out;
  out.m = finite_half((line.offset + mean) * values.unit);
  const float shift = mean - values.loaded(out.m);
  for (float& x : values.x) x += shift;
  out.d = effort == Effort::quick ? values.stored(line.scale)
                                  : choose_half<Integers<0, High>>(values, line.scale);
  take_nearest<Integers<0, High>>(values, out.d, 0, codes);
  return out;
}

}  // namespace mica::format::search
