// SPDX-License-Identifier: Apache-2.0
//
// The specification as a kernels policy: plain loops, any format, any element, no dependency, no speed.
#pragma once

#include "mica/kernel/concept.hpp"
#include "mica/kernel/scalar/attention.hpp"
#include "mica/kernel/scalar/elementwise.hpp"
#include "mica/kernel/scalar/matmul.hpp"
#include "mica/kernel/scalar/recurrent.hpp"

namespace mica::kernel {

struct Scalar {
  using RoundedReader = Scalar;  // kernel/fast8.hpp

  // Required by Kernels
  static constexpr std::string_view name = "scalar";
  template <WeightFormat F>
  static void matmul(const MatmulArgs<F>& a) noexcept {
    scalar::matmul<F>(a);
  }
  static void quantize(const QuantizeArgs& a) noexcept { scalar::quantize(a); }
  static void rms_norm(const RmsNormArgs& a) noexcept { scalar::rms_norm(a); }
  static void l2_norm(const L2NormArgs& a) noexcept { scalar::l2_norm(a); }
  static void layer_norm(const LayerNormArgs& a) noexcept { scalar::layer_norm(a); }
  static void rope(const RopeArgs& a) noexcept { scalar::rope(a); }
  static void gated(const GatedArgs& a) noexcept { scalar::gated(a); }
  static void add(const AddArgs& a) noexcept { scalar::add(a); }
  static void scale(const ScaleArgs& a) noexcept { scalar::scale(a); }
  static void softcap(const SoftcapArgs& a) noexcept { scalar::softcap(a); }
  static void causal_conv(const CausalConvArgs& a) noexcept { scalar::causal_conv(a); }
  static void delta_rule(const DeltaRuleArgs& a) noexcept { scalar::delta_rule(a); }
  template <KvReadable E>
  static void attention_scores(const AttentionArgs& a) noexcept {
    scalar::attention_scores<E>(a);
  }
  static void attention_softmax(const AttentionArgs& a) noexcept { scalar::attention_softmax(a); }
  template <KvReadable E>
  static void attention_values(const AttentionArgs& a) noexcept {
    scalar::attention_values<E>(a);
  }
  static void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept {
    scalar::attention_merge(a, state);
  }
  static void attention_finish(const AttentionState& state) noexcept { scalar::attention_finish(state); }
};

static_assert(Kernels<Scalar>);

}  // namespace mica::kernel
