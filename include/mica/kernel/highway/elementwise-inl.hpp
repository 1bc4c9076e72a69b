// SPDX-License-Identifier: Apache-2.0
//
// Per target: quantize, norms, rope, gates, what is done number by number, and the functions made of the
// exponential. Numbers at the end of a row that do not fill a vector go through the same operations one by
// one.

#if defined(MICA_KERNEL_HIGHWAY_ELEMENTWISE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ELEMENTWISE_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ELEMENTWISE_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ELEMENTWISE_INL_HPP
#endif

#include "mica/kernel/highway/ops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {
#if MICA_VECTORS

/// exp(x - n ln 2), n being nearest to x / ln 2.
HWY_INLINE VF exp_between_turns(VF x, VF n) {
  using C = ExpConstants;
  const DF d;
  VF r = hn::NegMulAdd(n, hn::Set(d, C::ln2_high), x);
  r = hn::NegMulAdd(n, hn::Set(d, C::ln2_low), r);
  VF p = hn::Set(d, C::taylor[7]);
  MICA_UNROLL
  for (std::size_t i = 7; i-- > 0;) p = hn::MulAdd(p, r, hn::Set(d, C::taylor[i]));
  return p;
}

/// kernel::exp, lane by lane.
HWY_INLINE VF exp_lanes(VF x) {
  using C = ExpConstants;
  const DF d;
  const VF top = hn::Set(d, C::highest);
  const VF clamped = hn::IfThenElse(hn::Gt(x, top), top, x);
  const VF n = hn::Round(hn::Mul(clamped, hn::Set(d, C::log2_e)));
  const VF p = exp_between_turns(clamped, n);
  const VI exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(DI(), n), hn::Set(DI(), 127)));
  const VF result = hn::Mul(p, hn::BitCast(d, exponent));
  const VF zeroed = hn::IfThenElse(hn::Lt(x, hn::Set(d, C::lowest)), hn::Zero(d), result);
  return hn::IfThenElse(hn::IsNaN(x), x, zeroed);
}

/// The same where no lane is above zero, in fewer steps: nothing is clamped, and 2^n, of which the result
/// stays a normal number, is added to the exponent. A NaN stays what it is.
HWY_INLINE VF exp_up_to_zero(VF x) {
  using C = ExpConstants;
  const DF d;
  const VI n = hn::NearestInt(hn::Mul(x, hn::Set(d, C::log2_e)));
  const VI p = hn::BitCast(DI(), exp_between_turns(x, hn::ConvertTo(d, n)));
  const VF result = hn::BitCast(d, hn::Add(p, hn::ShiftLeft<23>(n)));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, C::lowest)), hn::Zero(d), result);
}

/// kernel::quick_exp, lane by lane.
HWY_INLINE VF quick_exp_lanes(VF x) {
  using C = ExpConstants;
  const DF d;
  const VF y = hn::Mul(x, hn::Set(d, C::log2_e));
  const VF shifted = hn::Add(y, hn::Set(d, integer_magic)),
           r = hn::Sub(y, hn::Sub(shifted, hn::Set(d, integer_magic)));
  VF q = hn::Set(d, C::quick_power[3]);
  MICA_UNROLL
  for (std::size_t i = 3; i-- > 0;) q = hn::MulAdd(q, r, hn::Set(d, C::quick_power[i]));
  const VI exponent = hn::ShiftLeft<23>(hn::Add(hn::BitCast(DI(), shifted), hn::Set(DI(), 127)));
  const VF result =
      hn::Mul(q, hn::BitCast(d, exponent));  // not an addition to the exponent, which a NaN has too
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, C::lowest)), result);
}

/// 1 + exp(x).
HWY_INLINE VF one_plus_exp(VF x) { return hn::Add(hn::Set(DF(), 1.0f), exp_lanes(x)); }

/// kernel::silu, kernel::gelu_tanh, kernel::gelu_erf and kernel::tanh, lane by lane.
HWY_INLINE VF silu_lanes(VF x) { return hn::Div(x, one_plus_exp(hn::Neg(x))); }
HWY_INLINE VF gelu_tanh_lanes(VF x) {
  using C = GeluConstants;
  const VF slope = hn::MulAdd(hn::Mul(x, x), hn::Set(DF(), C::cubic), hn::Set(DF(), C::linear));
  return hn::Div(x, one_plus_exp(hn::Mul(x, slope)));
}
HWY_INLINE VF gelu_erf_lanes(VF x) {
  using C = ErfConstants;
  const DF d;
  const VF one = hn::Set(d, 1.0f), a = hn::Abs(x);
  VF p = hn::Set(d, C::log_of_half[10]);
  MICA_UNROLL
  for (std::size_t i = 10; i-- > 0;) p = hn::MulAdd(p, a, hn::Set(d, C::log_of_half[i]));
  const VI n = hn::NearestInt(p);
  const VF r = hn::Sub(p, hn::ConvertTo(d, n));
  VF q = hn::Set(d, C::power[5]);
  MICA_UNROLL
  for (std::size_t i = 5; i-- > 0;) q = hn::MulAdd(q, r, hn::Set(d, C::power[i]));
  // The result stays a normal number, so 2^-n is taken from the exponent. A NaN stays one: its n is -2^31.
  const VF power = hn::BitCast(d, hn::Sub(hn::BitCast(DI(), q), hn::ShiftLeft<23>(n)));
  const VF half = hn::IfThenZeroElse(hn::Gt(a, hn::Set(d, C::reach)), power);
  return hn::Mul(x, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(one, half), half));
}
HWY_INLINE VF tanh_lanes(VF x) {
  const DF d;
  return hn::Sub(hn::Set(d, 1.0f), hn::Div(hn::Set(d, 2.0f), one_plus_exp(hn::Mul(hn::Set(d, 2.0f), x))));
}

/// The largest magnitude of n values, a multiple of 32. Bits of magnitudes order like magnitudes, infinity
/// and NaN above all numbers.
template <class T>
HWY_INLINE float largest_magnitude(const T* x, std::size_t n) {
  VI largest = hn::Zero(DI());
  for (std::size_t k = 0; k < n; k += activation_group) {
    MICA_UNROLL
    for (std::size_t i = 0; i < activation_group; i += lanes)
      largest = hn::Max(largest, hn::BitCast(DI(), hn::Abs(load(x + k + i))));
  }
  return std::bit_cast<float>(static_cast<std::int32_t>(hn::ReduceMax(DI(), largest)));
}

/// How a group is coded by kernel/quantize.hpp; where inverse is 0, all codes are.
struct GroupScale {
  float scale;
  float inverse;
};
HWY_INLINE GroupScale scale_of(float largest) {
  if (!(largest < std::numeric_limits<float>::infinity())) return {std::bit_cast<float>(0x7FC00000u), 0};
  if (largest < activation_floor) return {0, 0};
  return {largest / 127.0f, 127.0f / largest};
}

/// Stores the codes of 16 values; the lanes of the answer add up to their sum.
HWY_INLINE VI encode_16(const float* x, VF inverse, std::int8_t* codes) {
  VI total = hn::Zero(DI());
  MICA_UNROLL
  for (std::size_t i = 0; i < 16; i += lanes) {
    const VI bits = rounded_bits(load(x + i), inverse);
    store_lowest_bytes(bits, codes + i);
    total = hn::Add(total, integers_of(bits));
  }
  return total;
}

/// Stores four sums: that of the lanes of each vector.
HWY_INLINE void store_sums(VI a, VI b, VI c, VI e, std::int16_t* sums) {
  const auto four = fold_halves(DI(), sum_blocks(a, b, c, e));
  const hn::Rebind<std::int16_t, hn::DFromV<decltype(four)>> d16;
  hn::StoreU(hn::DemoteTo(d16, four), d16, sums);
}

/// Codes and sums of `values` values, a multiple of 32.
HWY_INLINE void encode(const float* x, std::size_t values, VF inverse, std::int8_t* codes,
                       std::int16_t* sums) {
  std::size_t k = 0;
  for (; k + 64 <= values; k += 64) {
    VI total[4];
    MICA_UNROLL
    for (std::size_t i = 0; i < 4; ++i) total[i] = encode_16(x + k + 16 * i, inverse, codes + k + 16 * i);
    store_sums(total[0], total[1], total[2], total[3], sums + k / 16);
  }
  for (; k < values; k += 16)
    sums[k / 16] = static_cast<std::int16_t>(hn::ReduceSum(DI(), encode_16(x + k, inverse, codes + k)));
}

/// `group` values, which share a scale.
HWY_INLINE void quantize_group(const float* x, std::size_t group, std::int8_t* codes, float* scales,
                               std::int16_t* sums) {
  const GroupScale by = scale_of(largest_magnitude(x, group));
  std::fill_n(scales, group / activation_group, by.scale);
  if (by.inverse == 0) {
    std::fill_n(codes, group, std::int8_t{0});
    std::fill_n(sums, group / 16, std::int16_t{0});
    return;
  }
  encode(x, group, hn::Set(DF(), by.inverse), codes, sums);
}

inline void quantize(const QuantizeArgs& a) {
  const std::size_t cols = a.out.cols, group = scale_group(a.out);
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t k = 0; k < cols; k += group) {
      quantize_group(a.x[r].data() + k, HWY_MIN(group, cols - k), a.out.codes + r * cols + k,
                     a.out.scales + (r * cols + k) / 32, a.out.sums + (r * cols + k) / 16);
    }
  }
}

/// One step of sixteen chains: the sum of numbers, or of the squares of their distances from a mean.
template <bool squares>
HWY_INLINE VF extend_chain(VF x, VF mean, VF chain) {
  if constexpr (!squares) return hn::Add(chain, x);
  const VF distance = hn::Sub(x, mean);
  return hn::MulAdd(distance, distance, chain);
}

/// The sum of numbers, or of these squares, in sixteen chains and their tree.
template <bool squares>
inline float sum_in_chains(const float* x, std::size_t n, float mean = 0) {
  const VF means = hn::Set(DF(), mean);
  VF c[parts];
  for (std::size_t p = 0; p < parts; ++p) c[p] = hn::Zero(DF());
  std::size_t k = 0;
  for (; k + 16 <= n; k += 16) {
    MICA_UNROLL
    for (std::size_t p = 0; p < parts; ++p)
      c[p] = extend_chain<squares>(load(x + k + p * lanes), means, c[p]);
  }
  for (std::size_t p = 0; p < parts && k + p * lanes < n; ++p) {
    const std::size_t count = HWY_MIN(n - k - p * lanes, lanes);
    const VF v = load_first(x + k + p * lanes, count);
    c[p] = hn::IfThenElse(hn::FirstN(DF(), count), extend_chain<squares>(v, means, c[p]), c[p]);
  }
  return tree(c);
}
inline float sum_of_squares(const float* x, std::size_t n) { return sum_in_chains<true>(x, n); }

inline void rms_norm(const RmsNormArgs& a) {
  const DF d;
  const std::size_t cols = a.x.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    const float* const x = a.x[r].data();
    float* const y = a.y[r].data();
    const float scale = 1.0f / std::sqrt(sum_of_squares(x, cols) / static_cast<float>(cols) + a.epsilon);
    std::size_t k = 0;
    for (; k + lanes <= cols; k += lanes) {
      const VF normed = hn::Mul(load(x + k), hn::Set(d, scale));
      hn::StoreU(a.weight == nullptr ? normed : hn::Mul(normed, load(a.weight + k)), d, y + k);
    }
    for (; k < cols; ++k) y[k] = a.weight == nullptr ? x[k] * scale : (x[k] * scale) * a.weight[k];
  }
}

inline void layer_norm(const LayerNormArgs& a) {
  const DF d;
  const std::size_t cols = a.x.cols();
  const float numbers = static_cast<float>(cols);
  for (std::size_t r = a.first; r < a.last; ++r) {
    const float* const x = a.x[r].data();
    float* const y = a.y[r].data();
    const float mean = sum_in_chains<false>(x, cols) / numbers;
    const float squares = sum_in_chains<true>(x, cols, mean);
    const VF means = hn::Set(d, mean);
    const float scale = 1.0f / std::sqrt(squares / numbers + a.epsilon);
    std::size_t k = 0;
    for (; k + lanes <= cols; k += lanes) {
      const VF normed = hn::Mul(hn::Sub(load(x + k), means), hn::Set(d, scale)), weight = load(a.weight + k);
      hn::StoreU(a.bias == nullptr ? hn::Mul(normed, weight) : hn::MulAdd(normed, weight, load(a.bias + k)),
                 d, y + k);
    }
    for (; k < cols; ++k) {
      const float normed = (x[k] - mean) * scale;
      y[k] = a.bias == nullptr ? normed * a.weight[k] : std::fma(normed, a.weight[k], a.bias[k]);
    }
  }
}

/// y = x * factor; y may be x.
inline void scale_row(const float* x, std::size_t n, float factor, float* y) {
  std::size_t k = 0;
  for (; k + lanes <= n; k += lanes) hn::StoreU(hn::Mul(load(x + k), hn::Set(DF(), factor)), DF(), y + k);
  for (; k < n; ++k) y[k] = x[k] * factor;
}

inline void l2_norm(const L2NormArgs& a) {
  const std::size_t cols = a.x.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    const float* const x = a.x[r].data();
    scale_row(x, cols, a.scale / std::sqrt(sum_of_squares(x, cols) + a.epsilon), a.y[r].data());
  }
}

/// One vector of pairs (x, y) rotated.
HWY_INLINE void rotate(VF& x, VF& y, VF cos, VF sin) {
  const VF turned = hn::MulAdd(x, cos, hn::Neg(hn::Mul(y, sin)));
  y = hn::MulAdd(x, sin, hn::Mul(y, cos));
  x = turned;
}

inline void rope_head(float* head, std::size_t half, RopePairs pairs, const float* cos, const float* sin) {
  const DF d;
  const bool adjacent = pairs == RopePairs::adjacent;
  std::size_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    VF x, y;
    if (adjacent) {
      hn::LoadInterleaved2(d, head + 2 * i, x, y);
      rotate(x, y, load(cos + i), load(sin + i));
      hn::StoreInterleaved2(x, y, d, head + 2 * i);
    } else {
      x = load(head + i);
      y = load(head + half + i);
      rotate(x, y, load(cos + i), load(sin + i));
      hn::StoreU(x, d, head + i);
      hn::StoreU(y, d, head + half + i);
    }
  }
  for (; i < half; ++i) {
    float& first = head[adjacent ? 2 * i : i];
    float& second = head[adjacent ? 2 * i + 1 : i + half];
    const float x = first, y = second;
    first = std::fma(x, cos[i], -(y * sin[i]));
    second = std::fma(x, sin[i], y * cos[i]);
  }
}

inline void rope(const RopeArgs& a) {
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t h = 0; h < a.x.cols() / a.head_dim; ++h) {
      rope_head(a.x[r].data() + h * a.head_dim, a.dims / 2, a.pairs, a.cos[r].data(), a.sin[r].data());
    }
  }
}

/// scalar::gated, lane by lane.
template <Gate kind>
HWY_INLINE VF gated_lanes(VF g, VF u) {
  const DF d;
  if constexpr (kind == Gate::silu) return hn::Mul(silu_lanes(g), u);
  if constexpr (kind == Gate::gelu) return hn::Mul(gelu_tanh_lanes(g), u);
  if constexpr (kind == Gate::gelu_erf) return hn::Mul(gelu_erf_lanes(g), u);
  if constexpr (kind == Gate::sigmoid) return hn::Div(u, one_plus_exp(hn::Neg(g)));
  if constexpr (kind == Gate::clamped) {
    const VF top = hn::Set(d, ClampedGate::limit), bottom = hn::Set(d, -ClampedGate::limit);
    const VF x = hn::IfThenElse(hn::Gt(g, top), top, g);
    const VF y = hn::IfThenElse(hn::Gt(u, top), top, hn::IfThenElse(hn::Lt(u, bottom), bottom, u));
    const VF swish = hn::Div(x, one_plus_exp(hn::Mul(hn::Set(d, -ClampedGate::slope), x)));
    return hn::Mul(swish, hn::Add(y, hn::Set(d, 1.0f)));
  }
}

template <Gate kind>
void gated_rows(const GatedArgs& a) {
  const std::size_t cols = a.gate.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    const float* const gate = a.gate[r].data();
    const float* const up = a.up.rows() == 0 ? nullptr : a.up[r].data();
    float* const out = a.out[r].data();
    std::size_t k = 0;
    for (; k + lanes <= cols; k += lanes) {
      const VF factor = up == nullptr ? hn::Set(DF(), 1.0f) : load(up + k);
      hn::StoreU(gated_lanes<kind>(load(gate + k), factor), DF(), out + k);
    }
    for (; k < cols; ++k) out[k] = scalar::gated(kind, gate[k], up == nullptr ? 1.0f : up[k]);
  }
}

inline void gated(const GatedArgs& a) {
  switch (a.kind) {
    case Gate::silu:
      return gated_rows<Gate::silu>(a);
    case Gate::gelu:
      return gated_rows<Gate::gelu>(a);
    case Gate::gelu_erf:
      return gated_rows<Gate::gelu_erf>(a);
    case Gate::sigmoid:
      return gated_rows<Gate::sigmoid>(a);
    case Gate::clamped:
      return gated_rows<Gate::clamped>(a);
  }
}

inline void add(const AddArgs& a) {
  const DF d;
  const std::size_t cols = a.x.cols();
  const VF factor = hn::Set(d, a.scale);
  for (std::size_t r = a.first; r < a.last; ++r) {
    const float* const x = a.x[r].data();
    float* const y = a.y[r].data();
    std::size_t k = 0;
    for (; k + lanes <= cols; k += lanes) hn::StoreU(hn::MulAdd(load(x + k), factor, load(y + k)), d, y + k);
    for (; k < cols; ++k) y[k] = std::fma(x[k], a.scale, y[k]);
  }
}

inline void scale(const ScaleArgs& a) {
  for (std::size_t r = a.first; r < a.last; ++r)
    scale_row(a.x[r].data(), a.x.cols(), a.factor, a.x[r].data());
}

/// n numbers under one cap.
inline void softcap_run(float* x, std::size_t n, float cap) {
  const DF d;
  const float inverse = 1.0f / cap;
  std::size_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    const VF bent = tanh_lanes(hn::Mul(load(x + k), hn::Set(d, inverse)));
    hn::StoreU(hn::Mul(hn::Set(d, cap), bent), d, x + k);
  }
  for (; k < n; ++k) x[k] = cap * kernel::tanh(x[k] * inverse);
}

inline void softcap(const SoftcapArgs& a) {
  for (std::size_t r = a.first; r < a.last; ++r) softcap_run(a.x[r].data(), a.x.cols(), a.cap);
}

#else

inline void quantize(const QuantizeArgs& a) { scalar::quantize(a); }
inline void rms_norm(const RmsNormArgs& a) { scalar::rms_norm(a); }
inline void l2_norm(const L2NormArgs& a) { scalar::l2_norm(a); }
inline void layer_norm(const LayerNormArgs& a) { scalar::layer_norm(a); }
inline void rope(const RopeArgs& a) { scalar::rope(a); }
inline void gated(const GatedArgs& a) { scalar::gated(a); }
inline void add(const AddArgs& a) { scalar::add(a); }
inline void scale(const ScaleArgs& a) { scalar::scale(a); }
inline void softcap(const SoftcapArgs& a) { scalar::softcap(a); }

#endif  // MICA_VECTORS
}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif
