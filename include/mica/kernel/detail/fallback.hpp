// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are only there for some formats and elements, completed by others that are there for all.
#pragma once

#include "mica/kernel/concept.hpp"

namespace mica::kernel {

/// Takes every operation from A, except products with formats for which A::computes<F> is false and attention
/// over elements for which A::attends<E> is false: those come from B.
template <class A, Kernels B>
struct Fallback {
  static constexpr std::string_view name = A::name;

  template <WeightFormat F>
  static void matmul(const MatmulArgs<F>& a) noexcept {
    if constexpr (A::template computes<F>) {
      A::template matmul<F>(a);
    } else {
      B::template matmul<F>(a);
    }
  }
  static void quantize(const QuantizeArgs& a) noexcept { A::quantize(a); }
  static void rms_norm(const RmsNormArgs& a) noexcept { A::rms_norm(a); }
  static void l2_norm(const L2NormArgs& a) noexcept { A::l2_norm(a); }
  static void rope(const RopeArgs& a) noexcept { A::rope(a); }
  static void gated(const GatedArgs& a) noexcept { A::gated(a); }
  static void add(const AddArgs& a) noexcept { A::add(a); }
  static void scale(const ScaleArgs& a) noexcept { A::scale(a); }
  static void softcap(const SoftcapArgs& a) noexcept { A::softcap(a); }
  static void causal_conv(const CausalConvArgs& a) noexcept { A::causal_conv(a); }
  static void delta_rule(const DeltaRuleArgs& a) noexcept { A::delta_rule(a); }
  template <KvReadable E>
  static void attention_scores(const AttentionArgs& a) noexcept {
    if constexpr (A::template attends<E>) {
      A::template attention_scores<E>(a);
    } else {
      B::template attention_scores<E>(a);
    }
  }
  static void attention_softmax(const AttentionArgs& a) noexcept { A::attention_softmax(a); }
  template <KvReadable E>
  static void attention_values(const AttentionArgs& a) noexcept {
    if constexpr (A::template attends<E>) {
      A::template attention_values<E>(a);
    } else {
      B::template attention_values<E>(a);
    }
  }
  static void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept {
    A::attention_merge(a, state);
  }
  static void attention_finish(const AttentionState& state) noexcept { A::attention_finish(state); }
};

}  // namespace mica::kernel
