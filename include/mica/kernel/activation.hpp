// SPDX-License-Identifier: Apache-2.0
//
// Contract: the exponential and the gated activation of the feed-forward block.
//
//   exp(x):  n = round to nearest even(x * log2(e));  r = fma(n, -ln2_high, x);  r = fma(n, -ln2_low, r)
//            p = the Taylor polynomial of degree 7 in r, by Horner with fma;  result = p * 2^n
//            x < -87 gives 0, x > 88 counts as 88. |r| <= ln(2) / 2, so the next term is below 2^-27 of the result.
//   silu(x): x / (1 + exp(-x))
//   swiglu:  silu(gate) * up  (Shazeer, arXiv 2002.05202)
#pragma once

#include "mica/base/matrix_view.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace mica::kernel {

/// The constants of exp, shared by the specification and the vector kernels.
struct ExpConstants {
  static constexpr float log2_e = 1.44269504088896341f;
  static constexpr float ln2_high = 0.693359375f;  // 355 / 512: n * ln2_high is exact for |n| < 2^15
  static constexpr float ln2_low = -2.12194440054690583e-4f;  // ln(2) - 355 / 512
  static constexpr float lowest = -87.0f;
  static constexpr float highest = 88.0f;
  static constexpr float taylor[8] = {1.0f,         1.0f,          1.0f / 2.0f,   1.0f / 6.0f,
                                      1.0f / 24.0f, 1.0f / 120.0f, 1.0f / 720.0f, 1.0f / 5040.0f};
};

/// e^x as specified above; NaN gives NaN.
[[nodiscard]] inline float exp(float x) noexcept {
  using C = ExpConstants;
  if (x < C::lowest) return 0.0f;
  if (x > C::highest) x = C::highest;
  if (x != x) return x;
  const float n = std::nearbyint(x * C::log2_e);
  float r = std::fma(n, -C::ln2_high, x);
  r = std::fma(n, -C::ln2_low, r);
  float p = C::taylor[7];
  for (int i = 6; i >= 0; --i) p = std::fma(p, r, C::taylor[i]);
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  return p * std::bit_cast<float>(exponent);
}

[[nodiscard]] inline float silu(float x) noexcept { return x / (1.0f + exp(-x)); }

/// Rows [first, last): out = silu(gate) * up; out may be gate.
struct SwigluArgs {
  MatrixView<const float> gate;  // (n, k)
  MatrixView<const float> up;    // (n, k)
  MatrixView<float> out;         // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
