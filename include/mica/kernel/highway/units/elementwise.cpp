// SPDX-License-Identifier: Apache-2.0
//
// Unit: what does not depend on a format.

#include "mica/kernel/highway/dispatch.hpp"

namespace mica::kernel::highway {

HWY_EXPORT(quantize);
HWY_EXPORT(rms_norm);
HWY_EXPORT(rope);
HWY_EXPORT(attention_softmax);
HWY_EXPORT(attention_merge);
HWY_EXPORT(attention_finish);

void quantize(const QuantizeArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(quantize)(a); }
void rms_norm(const RmsNormArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(rms_norm)(a); }
void rope(const RopeArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(rope)(a); }
void attention_softmax(const AttentionArgs& a) noexcept { HWY_DYNAMIC_DISPATCH(attention_softmax)(a); }
void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept {
  HWY_DYNAMIC_DISPATCH(attention_merge)(a, state);
}
void attention_finish(const AttentionState& state) noexcept { HWY_DYNAMIC_DISPATCH(attention_finish)(state); }

}  // namespace mica::kernel::highway
