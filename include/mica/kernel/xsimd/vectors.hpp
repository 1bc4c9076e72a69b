// SPDX-License-Identifier: Apache-2.0
//
// Vectors of one architecture of xsimd, and the few operations on floats that kernels share. Everything takes
// the architecture as a type, so that units with different flags stay apart.
#pragma once

#include "mica/base/half.hpp"
#include "mica/base/type_list.hpp"
#include "mica/format/float.hpp"
#include "mica/kernel/activation.hpp"
#include "mica/kernel/matmul.hpp"

#include <xsimd/xsimd.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace mica::kernel::xsimd {

template <class A>
using VF = ::xsimd::batch<float, A>;
template <class A>
using VI = ::xsimd::batch<std::int32_t, A>;
template <class A>
using VU = ::xsimd::batch<std::uint32_t, A>;
template <class A>
using VI8 = ::xsimd::batch<std::int8_t, A>;
template <class A>
using VU8 = ::xsimd::batch<std::uint8_t, A>;

/// Floats of a vector.
template <class A>
inline constexpr std::size_t lanes = VF<A>::size;

/// Calls f with constants, 0 .. n - 1 in the second form, so that arrays of vectors stay in registers.
template <std::size_t... i, class F>
[[gnu::always_inline]] inline void unrolled(std::index_sequence<i...>, const F& f) {
  (f(std::integral_constant<std::size_t, i>()), ...);
}
template <std::size_t n, class F>
[[gnu::always_inline]] inline void unrolled(const F& f) {
  unrolled(std::make_index_sequence<n>(), f);
}

template <class A>
[[gnu::always_inline]] inline VF<A> load(const float* p) noexcept {
  return VF<A>::load_unaligned(p);
}

/// Rounds once. The architecture avxvnni of xsimd 13 has no such operation of its own, its machines do.
template <class A>
[[gnu::always_inline]] inline VF<A> fma(VF<A> a, VF<A> b, VF<A> c) noexcept {
  using Fused = std::conditional_t<std::is_same_v<A, ::xsimd::avxvnni>, ::xsimd::fma3<::xsimd::avx2>, A>;
  return ::xsimd::fma(VF<Fused>(a.data), VF<Fused>(b.data), VF<Fused>(c.data)).data;
}

/// Rounded correctly: on NEON xsimd multiplies by an estimate of 1 / b.
template <class A>
VF<A> divide(VF<A> a, VF<A> b) noexcept {
#if defined(__aarch64__)
  float x[lanes<A>], y[lanes<A>];
  a.store_unaligned(x);
  b.store_unaligned(y);
  for (std::size_t i = 0; i < lanes<A>; ++i) x[i] /= y[i];
  return load<A>(x);
#else
  return a / b;
#endif
}

/// kernel::exp, lane by lane.
template <class A>
VF<A> exp(VF<A> x) noexcept {
  using C = ExpConstants;
  using V = VF<A>;
  const V clamped = ::xsimd::select(x > V(C::highest), V(C::highest), x);
  const V n = ::xsimd::nearbyint(clamped * V(C::log2_e));
  V r = fma(n, V(-C::ln2_high), clamped);
  r = fma(n, V(-C::ln2_low), r);
  V p(C::taylor[7]);
  for (std::size_t i = 7; i-- > 0;) p = fma(p, r, V(C::taylor[i]));
  const VI<A> exponent = (::xsimd::batch_cast<std::int32_t>(n) + VI<A>(127)) << 23;
  const V result = p * ::xsimd::bitwise_cast<float>(exponent);
  return ::xsimd::select(x != x, x, ::xsimd::select(x < V(C::lowest), V(0.0f), result));
}

/// The numbers in the upper halves of lanes, as to_float() makes them.
template <class A>
VF<A> widened(VI<A> high, Half) noexcept {
  using I = VI<A>;
  constexpr std::int32_t infinity = 0x7F800000, sign = std::numeric_limits<std::int32_t>::min();
  const I magnitude = (high & I(0x7FFF0000)) >> 3;  // a float whose exponent is 112 too small
  // Of a subnormal number: 2^-14 (1 + f / 1024) - 2^-14. No denormal is made: executors read those as zero.
  const VF<A> small = ::xsimd::bitwise_cast<float>(magnitude + I(113 << 23)) - VF<A>(0x1p-14f);
  const I finite = ::xsimd::select(magnitude < I(1 << 23), ::xsimd::bitwise_cast<std::int32_t>(small),
                                   magnitude + I(112 << 23));
  const I bits = ::xsimd::select(magnitude >= I(31 << 23), magnitude | I(infinity), finite);
  return ::xsimd::bitwise_cast<float>(bits | (high & I(sign)));
}
template <class A>
VF<A> widened(VI<A> high, Bfloat) noexcept {
  return ::xsimd::bitwise_cast<float>(high);
}

/// Whether a format or element is F32, F16 or BF16, the blocks of which are numbers.
template <class F>
inline constexpr bool is_plain = TypeList<format::F32, format::F16, format::BF16>::contains<F>;

/// values[0, n) are the numbers, exactly.
template <class A, class T>
void widen(const T* numbers, std::size_t n, float* values) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    std::copy_n(numbers, n, values);
  } else {
    static_assert(std::endian::native == std::endian::little);
    std::size_t i = 0;
    for (; i + 2 * lanes<A> <= n; i += 2 * lanes<A>) {
      const VI<A> pairs = ::xsimd::bitwise_cast<std::int32_t>(
          ::xsimd::batch<std::uint16_t, A>::load_unaligned(&numbers[i].bits));
      const VF<A> even = widened(pairs << 16, T()), odd = widened((pairs >> 16) << 16, T());
      ::xsimd::zip_lo(even, odd).store_unaligned(values + i);
      ::xsimd::zip_hi(even, odd).store_unaligned(values + i + lanes<A>);
    }
    for (; i < n; ++i) values[i] = to_float(numbers[i]);
  }
}

/// Continues sixteen chains by n products; the first is number 0 of its chain.
template <class A>
void extend_chains(const float* w, const float* x, std::size_t n, float* c) noexcept {
  const std::size_t whole = n / chains * chains;
  for (std::size_t lane = 0; lane < chains; lane += lanes<A>) {
    VF<A> sum = load<A>(c + lane);
    for (std::size_t i = lane; i < whole; i += chains) sum = fma(load<A>(w + i), load<A>(x + i), sum);
    sum.store_unaligned(c + lane);
  }
  for (std::size_t i = whole; i < n; ++i) c[i % chains] = std::fma(w[i], x[i], c[i % chains]);
}

}  // namespace mica::kernel::xsimd
