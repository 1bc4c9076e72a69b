// SPDX-License-Identifier: Apache-2.0
//
// The minimal Kernels: each operation passed on to the specification.

#pragma once

#include "mica/kernel/concept.hpp"
#include "mica/kernel/scalar.hpp"

namespace mica::archetype {

struct Kernels {
  // Required by Kernels
  static constexpr std::string_view name = "plain";

  template <WeightFormat F>
  static void matmul(const kernel::MatmulArgs<F>& a) noexcept {
    kernel::scalar::matmul<F>(a);
  }
  static void quantize(const kernel::QuantizeArgs& a) noexcept { kernel::scalar::quantize(a); }
  static void rms_norm(const kernel::RmsNormArgs& a) noexcept { kernel::scalar::rms_norm(a); }
  static void l2_norm(const kernel::L2NormArgs& a) noexcept { kernel::scalar::l2_norm(a); }
  static void layer_norm(const kernel::LayerNormArgs& a) noexcept { kernel::scalar::layer_norm(a); }
  static void rope(const kernel::RopeArgs& a) noexcept { kernel::scalar::rope(a); }
  static void gated(const kernel::GatedArgs& a) noexcept { kernel::scalar::gated(a); }
  static void add(const kernel::AddArgs& a) noexcept { kernel::scalar::add(a); }
  static void scale(const kernel::ScaleArgs& a) noexcept { kernel::scalar::scale(a); }
  static void softcap(const kernel::SoftcapArgs& a) noexcept { kernel::scalar::softcap(a); }
  static void causal_conv(const kernel::CausalConvArgs& a) noexcept { kernel::scalar::causal_conv(a); }
  static void delta_rule(const kernel::DeltaRuleArgs& a) noexcept { kernel::scalar::delta_rule(a); }
  template <KvReadable E>
  static void attention_scores(const kernel::AttentionArgs& a) noexcept {
    kernel::scalar::attention_scores<E>(a);
  }
  static void attention_softmax(const kernel::AttentionArgs& a) noexcept {
    kernel::scalar::attention_softmax(a);
  }
  template <KvReadable E>
  static void attention_values(const kernel::AttentionArgs& a) noexcept {
    kernel::scalar::attention_values<E>(a);
  }
  static void attention_merge(const kernel::AttentionArgs& a, const kernel::AttentionState& state) noexcept {
    kernel::scalar::attention_merge(a, state);
  }
  static void attention_finish(const kernel::AttentionState& state) noexcept {
    kernel::scalar::attention_finish(state);
  }
};
static_assert(mica::Kernels<Kernels>);

}  // namespace mica::archetype
