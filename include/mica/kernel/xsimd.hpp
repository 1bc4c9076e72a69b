// SPDX-License-Identifier: Apache-2.0
//
// Kernels by xsimd: the instruction set is that of the compiler's flags, nothing is chosen at run time and
// nothing has to be linked. Products, attention over elements that decode to floats, norms, rotation, gates
// and the quantisation of activations are computed in vectors; the rest is the specification.
//
// Bit-equal to the specification. Without a fused multiply-add in the flags the specification is what runs.
#pragma once

#include "mica/kernel/scalar.hpp"
#include "mica/kernel/xsimd/attention.hpp"
#include "mica/kernel/xsimd/elementwise.hpp"
#include "mica/kernel/xsimd/integer.hpp"
#include "mica/kernel/xsimd/real.hpp"

namespace mica::kernel {

/// What xsimd computes for one of its architectures, which is part of the type: units with different flags
/// stay apart. The rest is the specification.
template <class Arch>
struct XsimdVectors : Scalar {
  static constexpr std::string_view name = "xsimd";
  static_assert(chains % xsimd::lanes<Arch> == 0, "mica::kernel::Xsimd: vectors of more than 16 floats");

  /// Whether products with F, and attention over E, are computed in vectors.
  template <WeightFormat F>
  static constexpr bool computes = F::arithmetic == format::Arithmetic::real || xsimd::multiplies<F, Arch>;
  template <KvReadable E>
  static constexpr bool attends = xsimd::attends<E>;

  // Required by Kernels
  template <WeightFormat F>
  static void matmul(const MatmulArgs<F>& a) noexcept {
    if constexpr (F::arithmetic == format::Arithmetic::real) {
      xsimd::matmul_real<Arch>(a);
    } else {
      xsimd::matmul_integer<Arch>(a);
    }
  }
  static void quantize(const QuantizeArgs& a) noexcept { xsimd::quantize<Arch>(a); }
  static void rms_norm(const RmsNormArgs& a) noexcept { xsimd::rms_norm<Arch>(a); }
  static void rope(const RopeArgs& a) noexcept { xsimd::rope<Arch>(a); }
  static void gated(const GatedArgs& a) noexcept { xsimd::gated<Arch>(a); }
  template <KvReadable E>
  static void attention_scores(const AttentionArgs& a) noexcept {
    xsimd::attention_scores<Arch, E>(a);
  }
  static void attention_softmax(const AttentionArgs& a) noexcept { xsimd::attention_softmax<Arch>(a); }
  template <KvReadable E>
  static void attention_values(const AttentionArgs& a) noexcept {
    xsimd::attention_values<Arch, E>(a);
  }
};

#if defined(__FMA__) || defined(__aarch64__)
/// Kernels by xsimd where they are computed in vectors, the specification elsewhere.
using Xsimd = Fallback<XsimdVectors<::xsimd::default_arch>, Scalar>;
#else
/// No fused multiply-add in the compiler's flags: the specification under its other name.
struct Xsimd : Scalar {
  static constexpr std::string_view name = "xsimd";
};
#endif

static_assert(Kernels<Xsimd>);

}  // namespace mica::kernel
