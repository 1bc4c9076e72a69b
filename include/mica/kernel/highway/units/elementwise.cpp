// SPDX-License-Identifier: Apache-2.0
//
// Unit: what does not depend on a format.

#include "mica/kernel/highway/dispatch.hpp"

namespace mica::kernel::highway {
inline namespace MICA_KERNELS_ABI {

/// A function of kernel/highway.hpp: that of the best instruction set.
#define MICA_CHOOSE(name, Args) \
  HWY_EXPORT(name);             \
  void name(const Args& a) noexcept { HWY_DYNAMIC_DISPATCH(name)(a); }

MICA_CHOOSE(quantize, QuantizeArgs)
MICA_CHOOSE(rms_norm, RmsNormArgs)
MICA_CHOOSE(l2_norm, L2NormArgs)
MICA_CHOOSE(layer_norm, LayerNormArgs)
MICA_CHOOSE(rope, RopeArgs)
MICA_CHOOSE(gated, GatedArgs)
MICA_CHOOSE(add, AddArgs)
MICA_CHOOSE(scale, ScaleArgs)
MICA_CHOOSE(softcap, SoftcapArgs)
MICA_CHOOSE(causal_conv, CausalConvArgs)
MICA_CHOOSE(delta_rule, DeltaRuleArgs)
MICA_CHOOSE(attention_softmax, AttentionArgs)
MICA_CHOOSE(attention_finish, AttentionState)

HWY_EXPORT(attention_merge);
void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept {
  HWY_DYNAMIC_DISPATCH(attention_merge)(a, state);
}

std::int64_t compiled_targets() noexcept { return HWY_TARGETS; }

}  // namespace MICA_KERNELS_ABI
}  // namespace mica::kernel::highway
