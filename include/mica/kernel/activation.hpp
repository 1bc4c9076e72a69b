// SPDX-License-Identifier: Apache-2.0
//
// Contract: the exponential, and the functions that are made of it. Every + - * / rounds once, fma() rounds
// once.
//
//   exp(x):       n = round to nearest even(x * log2(e));  r = fma(n, -ln2_high, x);  r = fma(n, -ln2_low, r)
//                 p = the Taylor polynomial of degree 7 in r, by Horner with fma;  result = p * 2^n
//                 x < -87 gives 0, x > 88 counts as 88. |r| <= ln(2) / 2, so the next term is below 2^-27 of
//                 the result.
//   quick_exp(x): of x <= 0:  y = x * log2(e);  n = round to nearest even(y);  r = y - n;  q = the polynomial
//                 of degree 3 in r, by Horner with fma;  result = q * 2^n;  x < -87 gives 0. Within 1.1e-4 of
//                 itself: for weights that become integers of eight bits (kernel/attention.hpp)
//   sigmoid(x):   1 / (1 + exp(-x))
//   silu(x):      x / (1 + exp(-x))
//   gelu_tanh(x): x / (1 + exp(x * fma(x * x, cubic, linear))), linear = -2 sqrt(2 / pi), cubic = 0.044715
//                 linear: the tanh form of GELU (Hendrycks and Gimpel, arXiv 1606.08415), since
//                 (1 + tanh(z)) / 2 = sigmoid(2 z)
//   gelu_erf(x):  a = |x|;  p = the polynomial of degree 10 in a, by Horner with fma;  n = round to nearest
//                 even(p);  r = p - n;  q = the polynomial of degree 5 in r, by Horner with fma;
//                 h = q * 2^-n, 0 where a > 6;  result = x * (x > 0 ? 1 - h : h)
//                 the exact form of GELU, x (1 + erf(x / sqrt(2))) / 2, within 8e-8 and two roundings. h is
//                 erfc(a / sqrt(2)) / 2, within 3.1e-6 of itself and below 1e-9 where it ends; p is its
//                 negative log2, and q is 2^-r
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
  /// Of 2^r for |r| <= 1/2, with the least maximum of the relative error.
  static constexpr float quick_power[4] = {1.0f, 0.693282902f, 0.242209867f, 0.0550082251f};
};

/// The constants of gelu_tanh.
struct GeluConstants {
  static constexpr float linear = -1.59576912160573071f;   // -2 sqrt(2 / pi)
  static constexpr float cubic = -0.0713548162726002527f;  // 0.044715 times that
};

/// The constants of gelu_erf: fits with the least maximum of the error, for p weighted by max(h a, 0.1), so
/// that the error of the result counts. p(0) = 1 and q(0) = 1 are exact.
struct ErfConstants {
  static constexpr float reach = 6.0f;  // h is 0 beyond it
  static constexpr float log_of_half[11] = {1.0f,
                                            1.15111065f,
                                            0.459160775f,
                                            0.0526236333f,
                                            -0.00720843952f,
                                            0.000205684904f,
                                            0.000184479009f,
                                            -4.98944064e-05f,
                                            6.57827241e-06f,
                                            -4.63845168e-07f,
                                            1.39270586e-08f};
  static constexpr float power[6] = {1.0f,           -0.693147242f,  0.24022235f,
                                     -0.0555030853f, 0.00967183616f, -0.00134072232f};
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
[[nodiscard]] inline float quick_exp(float x) noexcept {
  using C = ExpConstants;
  if (x < C::lowest) return 0.0f;
  if (x != x) return x;
  const float y = x * C::log2_e, n = std::nearbyint(y), r = y - n;
  float q = C::quick_power[3];
  for (int i = 2; i >= 0; --i) q = std::fma(q, r, C::quick_power[i]);
  return q * std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23);
}
[[nodiscard]] inline float sigmoid(float x) noexcept { return 1.0f / (1.0f + exp(-x)); }
[[nodiscard]] inline float silu(float x) noexcept { return x / (1.0f + exp(-x)); }
[[nodiscard]] inline float gelu_tanh(float x) noexcept {
  return x / (1.0f + exp(x * std::fma(x * x, GeluConstants::cubic, GeluConstants::linear)));
}
[[nodiscard]] inline float gelu_erf(float x) noexcept {
  using C = ErfConstants;
  const float a = std::fabs(x);
  if (a > C::reach) return x * (x > 0 ? 1.0f : 0.0f);
  float p = C::log_of_half[10];
  for (int i = 9; i >= 0; --i) p = std::fma(p, a, C::log_of_half[i]);
  const float n = std::nearbyint(p), r = p - n;
  float q = C::power[5];
  for (int i = 4; i >= 0; --i) q = std::fma(q, r, C::power[i]);
  if (q != q) return q;
  const float h =
      q * std::bit_cast<float>(static_cast<std::uint32_t>(127 - static_cast<std::int32_t>(n)) << 23);
  return x * (x > 0 ? 1.0f - h : h);
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
