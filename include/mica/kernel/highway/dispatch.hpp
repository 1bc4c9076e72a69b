// SPDX-License-Identifier: Apache-2.0
//
// Compiles the vector kernels once per instruction set and defines the functions that choose between them. It
// costs seconds per file, so only units include it: a unit instantiates the functions that it names, and the
// linker finds them for all units.
//
//   #define MICA_USER_CODECS_INL "my_codec-inl.hpp"           // only for formats of your own
//   #include "mica/kernel/highway/dispatch.hpp"
//   MICA_INSTANTIATE_MATMUL(MyFormat)
//
// It must come before any Highway header. Flags may differ between units: MICA_ABI keeps them apart.
#pragma once

#if defined(HIGHWAY_HWY_FOREACH_TARGET_H_) || defined(HWY_HIGHWAY_INCLUDED)
#error "include mica/kernel/highway/dispatch.hpp before any Highway header, one pass per translation unit"
#endif

#include "mica/kernel/fast8.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/highway/abi.hpp"
#include "mica/kernel/highway/machine_options.hpp"
#include "mica/kernel/scalar.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

/// The instruction sets, if the flags of the unit name no others. On x86: SSE2, AVX2, AVX3, AVX3_DL, AVX3_SPR;
/// kernels for AVX3_ZEN4 were those for AVX3_DL, instruction for instruction. On Arm: NEON once, with and without
/// dots of four bytes; what Highway's other NEONs add is not used here, and SVE could only run the specification.
/// Elsewhere: those that Highway considers attainable.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL 1
#endif
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_ZEN4 | HWY_ALL_SVE | HWY_NEON | HWY_NEON_BF16)
#endif

// clang-format off
/// The file with the kernels, compiled for all other targets and then for the one that the flags name.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mica/kernel/highway/kernels-inl.hpp"
#include <hwy/foreach_target.h>
#include "mica/kernel/highway/kernels-inl.hpp"
// clang-format on

namespace mica::kernel::highway {
inline namespace MICA_ABI {

/// Calls the kernel of the best target. One table per instantiation, local to a template: inline functions
/// would name another table at namespace scope in every unit. The set of targets is part of the symbol.
template <WeightFormat F, long long = (HWY_TARGETS)>
void choose_matmul(const MatmulArgs<F>& a) noexcept {
  HWY_EXPORT_T(MicaMatmul, matmul<F>);
  HWY_DYNAMIC_DISPATCH_T(MicaMatmul)(a);
}
template <KvReadable E, long long = (HWY_TARGETS)>
void choose_attention_scores(const AttentionArgs& a) noexcept {
  HWY_EXPORT_T(MicaScores, attention_scores<E>);
  HWY_DYNAMIC_DISPATCH_T(MicaScores)(a);
}
template <KvReadable E, long long = (HWY_TARGETS)>
void choose_attention_values(const AttentionArgs& a) noexcept {
  HWY_EXPORT_T(MicaValues, attention_values<E>);
  HWY_DYNAMIC_DISPATCH_T(MicaValues)(a);
}
template <class E, long long = (HWY_TARGETS)>
void choose_store(const StoreArgs& a) noexcept {
  HWY_EXPORT_T(MicaStore, store<E>);
  HWY_DYNAMIC_DISPATCH_T(MicaStore)(a);
}

}  // namespace MICA_ABI
inline namespace MICA_KERNELS_ABI {

template <class F>
void matmul(const MatmulArgs<F>& a) noexcept {
  choose_matmul<F>(a);
}
template <class E>
void attention_scores(const AttentionArgs& a) noexcept {
  choose_attention_scores<E>(a);
}
template <class E>
void attention_values(const AttentionArgs& a) noexcept {
  choose_attention_values<E>(a);
}
template <class E>
void store(const StoreArgs& a) noexcept {
  choose_store<E>(a);
}

}  // namespace MICA_KERNELS_ABI
}  // namespace mica::kernel::highway

/// Compiles in this unit the products of a format, also of its packed rows, or the attention or the storing of
/// an element.
#define MICA_INSTANTIATE_MATMUL(F) \
  template void mica::kernel::highway::matmul<F>(const mica::kernel::MatmulArgs<F>&) noexcept;
#define MICA_INSTANTIATE_PACKED(F) \
  MICA_INSTANTIATE_MATMUL(F)       \
  MICA_INSTANTIATE_MATMUL(mica::tensor::Packed<F>)
#define MICA_INSTANTIATE_PACKED12(F) \
  MICA_INSTANTIATE_MATMUL(F)         \
  MICA_INSTANTIATE_MATMUL(mica::tensor::Packed12<F>)
#define MICA_INSTANTIATE_ATTENTION(E)                                                                    \
  template void mica::kernel::highway::attention_scores<E>(const mica::kernel::AttentionArgs&) noexcept; \
  template void mica::kernel::highway::attention_values<E>(const mica::kernel::AttentionArgs&) noexcept;
#define MICA_INSTANTIATE_STORE(E) \
  template void mica::kernel::highway::store<E>(const mica::kernel::StoreArgs&) noexcept;
