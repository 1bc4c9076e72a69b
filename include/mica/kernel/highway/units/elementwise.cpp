// SPDX-License-Identifier: Apache-2.0
//
// Unit: what does not depend on a format.

#include "mica/kernel/highway/dispatch.hpp"

namespace mica::kernel::highway {

HWY_EXPORT(quantize);
HWY_EXPORT(rms_norm);
HWY_EXPORT(l2_norm);
HWY_EXPORT(rope);
HWY_EXPORT(gated);
HWY_EXPORT(add);
HWY_EXPORT(scale);
HWY_EXPORT(softcap);
HWY_EXPORT(causal_conv);
HWY_EXPORT(delta_rule);
HWY_EXPORT(attention_softmax);
HWY_EXPORT(attention_merge);
HWY_EXPORT(attention_finish);

void quantize(const QuantizeArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(quantize)(a); }
void rms_norm(const RmsNormArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(rms_norm)(a); }
void l2_norm(const L2NormArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(l2_norm)(a); }
void rope(const RopeArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(rope)(a); }
void gated(const GatedArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(gated)(a); }
void add(const AddArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(add)(a); }
void scale(const ScaleArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(scale)(a); }
void softcap(const SoftcapArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(softcap)(a); }
void causal_conv(const CausalConvArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(causal_conv)(a); }
void delta_rule(const DeltaRuleArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(delta_rule)(a); }
void attention_softmax(const AttentionArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(attention_softmax)(a); }
void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept {
  HWY_DYNAMIC_DISPATCH(attention_merge)(a, state);
}
void attention_finish(const AttentionState& state) noexcept { HWY_DYNAMIC_DISPATCH(attention_finish)(state); }

}  // namespace mica::kernel::highway
