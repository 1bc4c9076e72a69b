// SPDX-License-Identifier: Apache-2.0
//
// Per target: everything that is chosen at run time. dispatch.hpp has it included once per instruction set.

#if defined(MICA_KERNEL_HIGHWAY_KERNELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_KERNELS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_KERNELS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_KERNELS_INL_HPP
#endif

#include "mica/kernel/highway/attention-inl.hpp"
#include "mica/kernel/highway/decode_codebooks-inl.hpp"
#include "mica/kernel/highway/decode_k-inl.hpp"
#include "mica/kernel/highway/decode_levels-inl.hpp"
#include "mica/kernel/highway/decode_one_scale-inl.hpp"
#include "mica/kernel/highway/elementwise-inl.hpp"
#include "mica/kernel/highway/fast8-inl.hpp"
#include "mica/kernel/highway/integer-inl.hpp"
#include "mica/kernel/highway/packed-inl.hpp"
#include "mica/kernel/highway/real-inl.hpp"
#include "mica/kernel/highway/recurrent-inl.hpp"

// Products with floats, after the codecs that they use.
#include "mica/kernel/highway/packed12-inl.hpp"

// Codecs of the user, after everything they may use.
#ifdef MICA_USER_CODECS_INL
#include MICA_USER_CODECS_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

#if MICA_VECTORS

/// The same product for a machine with dots of four bytes.
template <IntegerFormat F>
HWY_INLINE MatmulArgs<Dotted<F>> dotted(const MatmulArgs<F>& a) {
  return {{a.w.row(0), a.w.rows(), a.w.cols()}, a.x, a.y, a.first, a.last, a.add};
}
template <IntegerFormat F>
HWY_INLINE MatmulArgs<tensor::Packed<Dotted<F>>> dotted(const MatmulArgs<tensor::Packed<F>>& a) {
  const auto* const blocks = reinterpret_cast<const typename F::Block*>(a.w.panel(0));
  return {{blocks, a.w.rows(), a.w.cols()}, a.x, a.y, a.first, a.last, a.add};
}

template <IntegerFormat F>
HWY_INLINE MatmulArgs<tensor::Rounded<Dotted<F>>> dotted(const MatmulArgs<tensor::Rounded<F>>& a) {
  const auto* const blocks = reinterpret_cast<const typename F::Block*>(a.w.panel(0));
  return {{blocks, a.w.rows(), a.w.cols()}, a.x, a.y, a.first, a.last, a.add};
}

template <class Args>
HWY_INLINE void matmul_by_layout(const Args& a) {
  if constexpr (tensor::is_packed<typename decltype(a.w)::Format>) {
    matmul_packed(a);
  } else {
    matmul_integer(a);
  }
}

template <WeightFormat F>
void matmul(const MatmulArgs<F>& a) {
  if constexpr (tensor::is_packed12<F>) {
    matmul_packed12(a);
  } else if constexpr (F::arithmetic == format::Arithmetic::real) {
    if constexpr (can_be_fast8<F>) {
      if (is_fast8(a)) return matmul_real_fast8(a);
    }
    matmul_real(a);
  } else {
    if constexpr (MICA_QUADS == MICA_QUADS_MAYBE) {
      if (ByteDots::used()) return matmul_by_layout(dotted(a));
    }
    matmul_by_layout(a);
  }
}

#else

template <WeightFormat F>
void matmul(const MatmulArgs<F>& a) {
  scalar::matmul<F>(a);
}

#endif  // MICA_VECTORS

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif
