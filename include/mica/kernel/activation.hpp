// SPDX-License-Identifier: Apache-2.0
//
// Contract: the exponential, and the functions that are made of it. Every + - * / rounds once, fma() rounds
// once.
//
//   exp(x):       n = round to nearest even(x * log2(e));  r = fma(n, -ln2_high, x);  r = fma(n, -ln2_low, r)
//                 p = the Taylor polynomial of degree 7 in r, by Horner with fma;  result = p * 2^n
//                 x < -87 gives 0, x > 88 counts as 88. |r| <= ln(2) / 2, so the next term is below 2^-27 of
//                 the result.
//   sigmoid(x):   1 / (1 + exp(-x))
//   silu(x):      x / (1 + exp(-x))
//   gelu_tanh(x): x / (1 + exp(x * fma(x * x, cubic, linear))), linear = -2 sqrt(2 / pi), cubic = 0.044715
//                 linear: the tanh form of GELU (Hendrycks and Gimpel, arXiv 1606.08415), since
//                 (1 + tanh(z)) / 2 = sigmoid(2 z)
//   gelu_erf(x):  z = |x| * sqrt(1 / 2);  t = 1 / fma(0.3, z, 1);  q = the polynomial of degree 8 in t, by
//                 Horner with fma;  h = ((0.5 * t) * q) * exp(-(z * z));  result = x * (x > 0 ? 1 - h : h)
//                 the exact form of GELU, x (1 + erf(x / sqrt(2))) / 2. h is erfc(z) / 2: t q is the best fit of
//                 erfc(z) exp(z^2) for z in [0, 10], within 4e-8 of it
//   tanh(x):      1 - 2 / (1 + exp(2 * x)): within 5e-7 everywhere, absolute, not relative to a small result
//   softplus(x):  (x > 0 ? x : 0) + (2 s) p, where e = exp(-|x|), s = e / (2 + e), and p = 1 + s^2 / 3 + ...
//                 + s^14 / 15 by Horner with fma: log(1 + e) = 2 atanh(s), s <= 1 / 3, so the next term is
//                 below 2^-29 of the result
// NaN gives NaN. Since exp ends at 88, silu and gelu_tanh of -infinity are -infinity, and gelu_erf of it is
// NaN: what is not finite stays visible.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace mica::kernel {

/// The constants of exp, shared by the specification and the vector kernels.
struct ExpConstants {
  static constexpr float log2_e = 1.44269504088896341f;  // log2(e)
  static constexpr float ln2_high = 0.693359375f;        // 355 / 512: n * ln2_high is exact for |n| < 2^15
  static constexpr float ln2_low = -2.12194440054690583e-4f;  // ln(2) - 355 / 512
  static constexpr float lowest = -87.0f;                     // below it exp is 0
  static constexpr float highest = 88.0f;                     // above it exp is that of 88
  /// 1 / i!.
  static constexpr float taylor[8] = {1.0f,         1.0f,          1.0f / 2.0f,   1.0f / 6.0f,
                                      1.0f / 24.0f, 1.0f / 120.0f, 1.0f / 720.0f, 1.0f / 5040.0f};
};

/// The constants of gelu_tanh.
struct GeluConstants {
  static constexpr float linear = -1.59576912160573071f;   // -2 sqrt(2 / pi)
  static constexpr float cubic = -0.0713548162726002527f;  // 0.044715 times that
};

/// The constants of gelu_erf.
struct ErfConstants {
  static constexpr float root_half = 0.707106781186547524f;  // sqrt(1 / 2)
  static constexpr float slope = 0.3f;                       // of 1 / t
  /// Of the polynomial, least squares of the relative error with weights that make the errors even.
  static constexpr float fit[9] = {0.169188007f, 0.170715197f,  0.148339384f, 0.214925207f, -0.0946486946f,
                                   0.547717039f, -0.512275432f, 0.485561903f, -0.129522631f};
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

/// As specified above; NaN gives NaN.
[[nodiscard]] inline float sigmoid(float x) noexcept { return 1.0f / (1.0f + exp(-x)); }
[[nodiscard]] inline float silu(float x) noexcept { return x / (1.0f + exp(-x)); }
[[nodiscard]] inline float gelu_tanh(float x) noexcept {
  return x / (1.0f + exp(x * std::fma(x * x, GeluConstants::cubic, GeluConstants::linear)));
}
[[nodiscard]] inline float gelu_erf(float x) noexcept {
  using C = ErfConstants;
  const float z = std::fabs(x) * C::root_half, t = 1.0f / std::fma(C::slope, z, 1.0f);
  float q = C::fit[8];
  for (int i = 7; i >= 0; --i) q = std::fma(q, t, C::fit[i]);
  const float half = ((0.5f * t) * q) * exp(-(z * z));
  return x * (x > 0 ? 1.0f - half : half);
}
[[nodiscard]] inline float tanh(float x) noexcept { return 1.0f - 2.0f / (1.0f + exp(2.0f * x)); }

/// log(1 + e^x).
[[nodiscard]] inline float softplus(float x) noexcept {
  const float e = exp(-std::fabs(x));
  const float s = e / (2.0f + e), square = s * s;
  float p = 1.0f / 15.0f;
  for (int i = 13; i > 0; i -= 2) p = std::fma(p, square, 1.0f / static_cast<float>(i));
  return (x > 0 ? x : 0.0f) + 2.0f * s * p;
}

}  // namespace mica::kernel
