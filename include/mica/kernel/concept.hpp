// SPDX-License-Identifier: Apache-2.0
//
// The concept of a kernels policy: the operations of a step, each on a slice, each without allocation. The
// contracts (and the exact arithmetic) are in the headers beside this one; kernel/scalar.hpp is the
// specification in code.
#pragma once

#include "mica/format/float.hpp"
#include "mica/format/q8_0.hpp"
#include "mica/kernel/activation.hpp"
#include "mica/kernel/attention.hpp"
#include "mica/kernel/elementwise.hpp"
#include "mica/kernel/matmul.hpp"
#include "mica/kernel/quantize.hpp"
#include "mica/kernel/recurrent.hpp"

#include <concepts>
#include <string_view>
#include <type_traits>

namespace mica {

/// A backend. All members are static; calls from several threads on disjoint slices are safe.
// clang-format off
template <class K>
concept Kernels = requires(const kernel::MatmulArgs<format::F32>& real, const kernel::MatmulArgs<format::Q8_0>& integer,
                           const kernel::QuantizeArgs& quantize, const kernel::RmsNormArgs& norm,
                           const kernel::L2NormArgs& length, const kernel::LayerNormArgs& layer,
                           const kernel::RopeArgs& rope,
                           const kernel::GatedArgs& gated, const kernel::AddArgs& add, const kernel::ScaleArgs& scale,
                           const kernel::SoftcapArgs& softcap, const kernel::CausalConvArgs& conv,
                           const kernel::DeltaRuleArgs& delta, const kernel::AttentionArgs& attention,
                           const kernel::AttentionState& state) {
  { K::name } -> std::convertible_to<std::string_view>;               // for tables of results
  { K::template matmul<format::F32>(real) } noexcept;                 // kernel/matmul.hpp, for all formats
  { K::template matmul<format::Q8_0>(integer) } noexcept;             // of a model
  { K::quantize(quantize) } noexcept;                                 // kernel/quantize.hpp
  { K::rms_norm(norm) } noexcept;                                     // these eight: kernel/elementwise.hpp
  { K::l2_norm(length) } noexcept;
  { K::layer_norm(layer) } noexcept;
  { K::rope(rope) } noexcept;
  { K::gated(gated) } noexcept;
  { K::add(add) } noexcept;
  { K::scale(scale) } noexcept;
  { K::softcap(softcap) } noexcept;
  { K::causal_conv(conv) } noexcept;                                  // these two: kernel/recurrent.hpp
  { K::delta_rule(delta) } noexcept;
  { K::template attention_scores<format::F32>(attention) } noexcept;  // these five: kernel/attention.hpp,
  { K::attention_softmax(attention) } noexcept;                       // for each KvReadable of a cache
  { K::template attention_values<format::F32>(attention) } noexcept;
  { K::attention_merge(attention, state) } noexcept;  // takes the chunk in `attention` into `state`
  { K::attention_finish(state) } noexcept;            // O / L
};
// clang-format on

namespace kernel {

/// Takes every operation from A, except products with formats for which A::computes<F> is false and attention
/// over elements for which A::attends<E> is false: those come from B.
template <class A, Kernels B>
struct Fallback : A {
  // Required by Kernels
  template <WeightFormat F>
  static void matmul(const MatmulArgs<F>& a) noexcept {
    std::conditional_t<A::template computes<F>, A, B>::template matmul<F>(a);
  }
  template <KvReadable E>
  static void attention_scores(const AttentionArgs& a) noexcept {
    std::conditional_t<A::template attends<E>, A, B>::template attention_scores<E>(a);
  }
  template <KvReadable E>
  static void attention_values(const AttentionArgs& a) noexcept {
    std::conditional_t<A::template attends<E>, A, B>::template attention_values<E>(a);
  }
};

}  // namespace kernel
}  // namespace mica
