// SPDX-License-Identifier: Apache-2.0
//
// The vector kernels as a kernels policy: declarations only, no Highway header. Link the units in
// kernel/highway/units (CMake: mica_add_kernels), which are compiled once per instruction set and chosen at run
// time, or for one instruction set.
//
// A format with a vector codec that is not one of mica's own needs a unit of its own
// (kernel/highway/dispatch.hpp). One without needs nothing: its blocks are decoded or unpacked here and
// multiplied by the compiled kernels.
#pragma once

#include "mica/format/lists.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kernel/highway/abi.hpp"
#include "mica/kernel/highway/generic.hpp"
#include "mica/kernel/scalar/attention.hpp"

#include <cstdint>
#include <type_traits>

namespace mica::kernel {

namespace highway {
inline namespace MICA_KERNELS_ABI {

/// The functions behind the struct below, for the machine's best instruction set. The kernel units define
/// them: templates for the formats and elements of a unit (kernel/highway/dispatch.hpp). They have no
/// constraints (F is a WeightFormat, E is KvReadable), since only newer compilers write these into symbols.
template <class F>
void matmul(const MatmulArgs<F>& a) noexcept;
template <class E>
void attention_scores(const AttentionArgs& a) noexcept;
template <class E>
void attention_values(const AttentionArgs& a) noexcept;
template <class E>
void store(const StoreArgs& a) noexcept;
void quantize(const QuantizeArgs& a) noexcept;
void rms_norm(const RmsNormArgs& a) noexcept;
void l2_norm(const L2NormArgs& a) noexcept;
void layer_norm(const LayerNormArgs& a) noexcept;
void rope(const RopeArgs& a) noexcept;
void gated(const GatedArgs& a) noexcept;
void add(const AddArgs& a) noexcept;
void scale(const ScaleArgs& a) noexcept;
void softcap(const SoftcapArgs& a) noexcept;
void causal_conv(const CausalConvArgs& a) noexcept;
void delta_rule(const DeltaRuleArgs& a) noexcept;
void attention_softmax(const AttentionArgs& a) noexcept;
void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept;
void attention_finish(const AttentionState& state) noexcept;

/// The instruction sets that the units are compiled for, as Highway's bits.
[[nodiscard]] std::int64_t compiled_targets() noexcept;

}  // namespace MICA_KERNELS_ABI

/// Elements that have store<E>(): Q8_0, and the block elements of AllKv whose levels are integers.
template <class E>
inline constexpr bool stores = std::is_same_v<E, format::Q8_0>;
template <class F, bool rotates>
inline constexpr bool stores<format::BlockElement<F, rotates>> =
    format::AllKv::contains<format::BlockElement<F, rotates>>&&
        format::BlockElement<F, rotates>::has_integer_levels;

}  // namespace highway

/// Bit-equal to kernel::Scalar on every target.
struct Highway {
  using RoundedReader = Highway;  // kernel/fast8.hpp

  // Required by Kernels
  static constexpr std::string_view name = "highway";
  template <WeightFormat F>
  static void matmul(const MatmulArgs<F>& a) noexcept {
    if constexpr (F::vector_codec) {
      highway::matmul<F>(a);
    } else {
      highway::matmul_without_codec<F>(a);
    }
  }
  static void quantize(const QuantizeArgs& a) noexcept { highway::quantize(a); }
  static void rms_norm(const RmsNormArgs& a) noexcept { highway::rms_norm(a); }
  static void l2_norm(const L2NormArgs& a) noexcept { highway::l2_norm(a); }
  static void layer_norm(const LayerNormArgs& a) noexcept { highway::layer_norm(a); }
  static void rope(const RopeArgs& a) noexcept { highway::rope(a); }
  static void gated(const GatedArgs& a) noexcept { highway::gated(a); }
  static void add(const AddArgs& a) noexcept { highway::add(a); }
  static void scale(const ScaleArgs& a) noexcept { highway::scale(a); }
  static void softcap(const SoftcapArgs& a) noexcept { highway::softcap(a); }
  static void causal_conv(const CausalConvArgs& a) noexcept { highway::causal_conv(a); }
  static void delta_rule(const DeltaRuleArgs& a) noexcept { highway::delta_rule(a); }

  /// Limit: an element outside format::AllKv and format::TileKv runs at the speed of the specification.
  template <KvReadable E>
  static void attention_scores(const AttentionArgs& a) noexcept {
    if constexpr (has_kernels<E>) {
      highway::attention_scores<E>(a);
    } else {
      scalar::attention_scores<E>(a);
    }
  }
  static void attention_softmax(const AttentionArgs& a) noexcept { highway::attention_softmax(a); }
  template <KvReadable E>
  static void attention_values(const AttentionArgs& a) noexcept {
    if constexpr (has_kernels<E>) {
      highway::attention_values<E>(a);
    } else {
      scalar::attention_values<E>(a);
    }
  }
  static void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept {
    highway::attention_merge(a, state);
  }
  static void attention_finish(const AttentionState& state) noexcept { highway::attention_finish(state); }

  // Required by Stores
  template <class E>
  requires(highway::stores<E>) static void store(const StoreArgs& a) noexcept { highway::store<E>(a); }

 private:
  template <class E>
  static constexpr bool has_kernels = format::AllKv::contains<E> || format::TileKv::contains<E>;
};

static_assert(Kernels<Highway>);

}  // namespace mica::kernel
