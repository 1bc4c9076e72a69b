// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are only there for some formats and elements, completed by others that are there for all.
#pragma once

#include "mica/kernel/concept.hpp"

#include <type_traits>

namespace mica::kernel {

/// Takes every operation from A, except products with formats for which A::computes<F> is false and attention
/// over elements for which A::attends<E> is false: those come from B.
template <class A, Kernels B>
struct Fallback : A {
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

}  // namespace mica::kernel
