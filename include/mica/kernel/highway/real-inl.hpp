// SPDX-License-Identifier: Apache-2.0
//
// Per target: products with formats of float arithmetic. Sixteen chains by k are the lanes of one to four vectors; a tile
// of rows times tokens keeps as many chains in registers as the machine has, so a weight is converted once per tile.

#if defined(MICA_KERNEL_HIGHWAY_REAL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_REAL_INL_HPP
#undef MICA_KERNEL_HIGHWAY_REAL_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_REAL_INL_HPP
#endif

#include "mica/kernel/highway/ops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {
#if MICA_VECTORS

/// Values [k, k + lanes) of a row of F32, F16 or BF16; other formats have an overload beside their codec.
template <class T>
HWY_INLINE VF values_at(const T* row, std::size_t k) {
  return load(row + k);
}

/// Vector `part` of the chains takes up to sixteen products; lanes past the last keep their chain.
template <class T>
HWY_INLINE VF extend_tail(const T* w, const float* x, std::size_t n, std::size_t part, VF c) {
  const std::size_t first = part * lanes;
  if (n <= first) return c;
  const std::size_t count = HWY_MIN(n - first, lanes);
  const VF longer = hn::MulAdd(load_first(w + first, count), load_first(x + first, count), c);
  return hn::IfThenElse(hn::FirstN(DF(), count), longer, c);
}

/// products[t][r] = rows w[r] times tokens x[t], each k long.
template <WeightFormat F, std::size_t rows, std::size_t tokens>
HWY_INLINE void real_tile(const typename F::Block* const (&w)[rows], const float* const (&x)[tokens],
                          std::size_t k, float (&products)[tokens][rows]) {
  static_assert(F::block_size == 1 || F::block_size % 16 == 0, "only single numbers may leave a tail");
  VF c[tokens][rows][parts];
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    MICA_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      MICA_UNROLL
      for (std::size_t p = 0; p < parts; ++p) c[t][r][p] = hn::Zero(DF());
    }
  }
  const std::size_t whole = k / 16 * 16;
  for (std::size_t i = 0; i < whole; i += 16) {
    MICA_UNROLL
    for (std::size_t p = 0; p < parts; ++p) {
      VF weights[rows];
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r) weights[r] = values_at(w[r], i + p * lanes);
      MICA_UNROLL
      for (std::size_t t = 0; t < tokens; ++t) {
        const VF values = load(x[t] + i + p * lanes);
        MICA_UNROLL
        for (std::size_t r = 0; r < rows; ++r) c[t][r][p] = hn::MulAdd(weights[r], values, c[t][r][p]);
      }
    }
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows; ++r) {
      if constexpr (F::block_size == 1) {
        for (std::size_t p = 0; p < parts; ++p)
          c[t][r][p] = extend_tail(w[r] + whole, x[t] + whole, k - whole, p, c[t][r][p]);
      }
      products[t][r] = tree(c[t][r]);
    }
  }
}

/// Up to rows x tokens outputs; those past the end repeat the last one and are dropped.
template <std::size_t rows, std::size_t tokens, WeightFormat F>
HWY_INLINE void real_outputs(const MatmulArgs<F>& a, std::size_t row, std::size_t token,
                             std::size_t token_end) {
  const typename F::Block* w[rows];
  const float* x[tokens];
  for (std::size_t r = 0; r < rows; ++r) w[r] = a.w.row(HWY_MIN(row + r, a.last - 1));
  for (std::size_t t = 0; t < tokens; ++t) x[t] = a.x.values[HWY_MIN(token + t, token_end - 1)].data();
  float products[tokens][rows];
  real_tile<F>(w, x, a.w.cols(), products);
  for (std::size_t t = 0; t < tokens && token + t < token_end; ++t) {
    float* const y = a.y[token + t].data() + row;
    for (std::size_t r = 0; r < rows && row + r < a.last; ++r)
      y[r] = a.add ? y[r] + products[t][r] : products[t][r];
  }
}

/// Tokens go in blocks whose activations stay in the second-level cache while the weights pass by.
template <WeightFormat F>
void matmul_real(const MatmulArgs<F>& a) {
  constexpr std::size_t rows = parts == 1 ? 4 : 2;
  constexpr std::size_t tokens = parts == 1 ? 4 : 2;
  constexpr std::size_t block_values = 65536;
  const std::size_t n = a.y.rows();
  const std::size_t block = HWY_MAX(tokens, block_values / (a.w.cols() + 1) / tokens * tokens);
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t end = HWY_MIN(first + block, n);
    for (std::size_t r = a.first; r < a.last; r += rows) {
      if (end - first == 1) {
        real_outputs<rows, 1>(a, r, first, end);
      } else {
        for (std::size_t t = first; t < end; t += tokens) real_outputs<rows, tokens>(a, r, t, end);
      }
    }
  }
}

inline void extend_chains(const float* w, const float* x, std::size_t n, float* c) {
  VF v[parts];
  for (std::size_t p = 0; p < parts; ++p) v[p] = load(c + p * lanes);
  const std::size_t whole = n / 16 * 16;
  for (std::size_t i = 0; i < whole; i += 16) {
    MICA_UNROLL
    for (std::size_t p = 0; p < parts; ++p)
      v[p] = hn::MulAdd(load(w + i + p * lanes), load(x + i + p * lanes), v[p]);
  }
  for (std::size_t p = 0; p < parts; ++p) {
    hn::StoreU(extend_tail(w + whole, x + whole, n - whole, p, v[p]), DF(), c + p * lanes);
  }
}

#else

inline void extend_chains(const float* w, const float* x, std::size_t n, float* c) {
  for (std::size_t i = 0; i < n; ++i) c[i % 16] = std::fma(w[i], x[i], c[i % 16]);
}

#endif  // MICA_VECTORS
}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif
