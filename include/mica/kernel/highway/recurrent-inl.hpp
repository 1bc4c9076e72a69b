// SPDX-License-Identifier: Apache-2.0
//
// Per target: the causal convolution, channels in lanes, and the delta rule, columns of the state in lanes.
// What does not fill a vector goes to the specification.

#if defined(MICA_KERNEL_HIGHWAY_RECURRENT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_RECURRENT_INL_HPP
#undef MICA_KERNEL_HIGHWAY_RECURRENT_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_RECURRENT_INL_HPP
#endif

#include "mica/kernel/highway/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {
#if MICA_VECTORS

// ---- causal convolution

/// Channels whose weights are turned and kept while all tokens pass: 2 KiB of every row.
inline constexpr std::size_t conv_channels = 512;

/// Weights of n channels, whole vectors, as (taps, conv_channels).
HWY_INLINE void turn_weights(const float* weight, std::size_t taps, std::size_t n, float* turned) {
  const DF d;
  if (taps == 4) {  // what models have
    for (std::size_t c = 0; c < n; c += lanes) {
      VF w[4];
      hn::LoadInterleaved4(d, weight + 4 * c, w[0], w[1], w[2], w[3]);
      for (std::size_t j = 0; j < 4; ++j) hn::Store(w[j], d, turned + j * conv_channels + c);
    }
    return;
  }
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t j = 0; j < taps; ++j) turned[j * conv_channels + c] = weight[c * taps + j];
  }
}

/// Channels [first, first + n), whole vectors, at most conv_channels.
inline void conv_block(const CausalConvArgs& a, std::size_t first, std::size_t n) {
  const DF d;
  const std::size_t tokens = a.x.rows(), before = a.taps - 1;
  alignas(64) float w[max_taps * conv_channels];
  turn_weights(a.weight + first * a.taps, a.taps, n, w);
  const auto in = [&](std::size_t row) -> const float* {
    return (row < before ? a.state[row].data() : a.x[row - before].data()) + first;
  };
  const float* rows[max_taps];
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t j = 0; j < a.taps; ++j) rows[j] = in(t + j);
    float* const y = a.y[t].data() + first;
    for (std::size_t c = 0; c < n; c += lanes) {
      VF acc = hn::Zero(d);
      for (std::size_t j = 0; j < a.taps; ++j) {
        acc = hn::MulAdd(hn::Load(d, w + j * conv_channels + c), load(rows[j] + c), acc);
      }
      hn::StoreU(silu_lanes(acc), d, y + c);
    }
  }
  for (std::size_t row = 0; row < before && tokens > 0; ++row) {
    std::copy_n(in(tokens + row), n, a.state[row].data() + first);
  }
}

inline void causal_conv(const CausalConvArgs& a) {
  std::size_t c = a.first;
  while (c + lanes <= a.last) {
    const std::size_t n = HWY_MIN((a.last - c) / lanes * lanes, conv_channels);
    conv_block(a, c, n);
    c += n;
  }
  CausalConvArgs rest = a;
  rest.first = c;
  scalar::causal_conv(rest);
}

// ---- delta rule

/// Numbers of a strip: 32 KiB, what the smallest first-level caches hold.
inline constexpr std::size_t strip_numbers = 8192;
/// Numbers of the queries and keys that are kept for all strips, 32 KiB: 32 tokens of 128.
inline constexpr std::size_t factor_numbers = 8192;

/// Some columns of the state: rows `stride` apart.
struct Strip {
  float* data;
  std::size_t stride;
};

/// The factors of a pass over the rows of the state: those of a token, and those of the token after it.
struct DeltaFactors {
  const float* k = nullptr;  // (k_dim)
  const float* q = nullptr;  // (k_dim)
  const float* next_k = nullptr;
  float next_decay = 0;
};

/// One row of a strip: the update of a token with its share of out, and the decay of the next with its share
/// of r.
template <bool update, bool next, std::size_t vectors>
HWY_INLINE void delta_row(const Strip& from, const Strip& to, const DeltaFactors& f, std::size_t i,
                          const VF (&u)[vectors], VF (&out)[vectors], VF (&r)[vectors]) {
  const DF d;
  VF k, q, next_k, next_decay;  // once per row: behind a store the compiler would load them again
  if constexpr (update) {
    k = hn::Set(d, f.k[i]);
    q = hn::Set(d, f.q[i]);
  }
  if constexpr (next) {
    next_k = hn::Set(d, f.next_k[i]);
    next_decay = hn::Set(d, f.next_decay);
  }
  MICA_UNROLL
  for (std::size_t v = 0; v < vectors; ++v) {
    VF s = load(from.data + i * from.stride + v * lanes);
    if constexpr (update) {
      s = hn::MulAdd(k, u[v], s);
      out[v] = hn::MulAdd(s, q, out[v]);
    }
    if constexpr (next) {
      s = hn::Mul(s, next_decay);
      r[v] = hn::MulAdd(s, next_k, r[v]);
    }
    hn::StoreU(s, d, to.data + i * to.stride + v * lanes);
  }
}

/// All rows. Where a token has a next one, its second pass is the first of the next: the state is read once
/// per token.
template <bool update, bool next, std::size_t vectors>
HWY_INLINE void delta_pass(const Strip& from, const Strip& to, const DeltaFactors& f, std::size_t rows,
                           const VF (&u)[vectors], VF (&out)[vectors], VF (&r)[vectors]) {
  VF o[4][vectors], c[4][vectors];
  clear(o);
  clear(c);
  std::size_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    MICA_UNROLL
    for (std::size_t p = 0; p < 4; ++p) delta_row<update, next>(from, to, f, i + p, u, o[p], c[p]);
  }
  MICA_UNROLL
  for (std::size_t p = 0; p < 3; ++p) {
    if (i + p < rows) delta_row<update, next>(from, to, f, i + p, u, o[p], c[p]);
  }
  MICA_UNROLL
  for (std::size_t v = 0; v < vectors; ++v) {
    out[v] = hn::Add(hn::Add(o[0][v], o[2][v]), hn::Add(o[1][v], o[3][v]));
    r[v] = hn::Add(hn::Add(c[0][v], c[2][v]), hn::Add(c[1][v], c[3][v]));
  }
}

/// All tokens over columns [j, j + vectors * lanes). In a buffer, because rows of a state lie a power of two
/// apart and would push each other out of the cache.
template <std::size_t vectors>
void delta_strip(const DeltaRuleArgs& a, std::size_t j, float* buffer) {
  const DF d;
  const std::size_t n = a.q.rows(), rows = a.state.rows();
  const Strip state{a.state.data() + j, a.state.stride()};
  const bool fits = rows * vectors * lanes <= strip_numbers;
  const Strip strip = fits ? Strip{buffer, vectors * lanes} : state;
  VF u[vectors], out[vectors], r[vectors];
  clear(u);
  DeltaFactors f;
  f.next_k = a.k[0].data();
  f.next_decay = a.decay[0];
  delta_pass<false, true>(state, strip, f, rows, u, out, r);
  for (std::size_t t = 0; t < n; ++t) {
    const VF beta = hn::Set(d, a.beta[t * a.decay_stride]);
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) {
      u[v] = hn::Mul(beta, hn::Sub(load(a.v[t].data() + j + v * lanes), r[v]));
    }
    f.k = a.k[t].data();
    f.q = a.q[t].data();
    if (t + 1 < n) {
      // A pass is too long for the machine to see what comes behind it.
      for (std::size_t i = 0; i < vectors * lanes; i += 16) {
        prefetch(a.v[t + 1].data() + j + i, 0);
        prefetch(a.out[t].data() + j + i, 0);
      }
      f.next_k = a.k[t + 1].data();
      f.next_decay = a.decay[(t + 1) * a.decay_stride];
      delta_pass<true, true>(strip, strip, f, rows, u, out, r);
    } else {
      delta_pass<true, false>(strip, state, f, rows, u, out, r);
    }
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(out[v], d, a.out[t].data() + j + v * lanes);
  }
}

/// All strips; returns the first column that is left.
inline std::size_t delta_strips(const DeltaRuleArgs& a) {
  // Eight sums per vector of columns, beside the state: two vectors where there are 32 registers. A single
  // token has two passes of four sums, and gets strips of twice the width: whole lines from memory, one visit
  // to each.
  constexpr std::size_t vectors = many_registers ? 2 : 1;
  alignas(64) float buffer[strip_numbers];
  std::size_t j = a.first;
  if (a.q.rows() == 1) {
    for (; j + 2 * vectors * lanes <= a.last; j += 2 * vectors * lanes)
      delta_strip<2 * vectors>(a, j, buffer);
  }
  for (; j + vectors * lanes <= a.last; j += vectors * lanes) delta_strip<vectors>(a, j, buffer);
  for (; j + lanes <= a.last; j += lanes) delta_strip<1>(a, j, buffer);
  return j;
}

/// Tokens [first, first + n) with their queries and keys side by side in `factors`: rows of activations lie
/// far apart, often a power of two, and every strip reads them again.
inline DeltaRuleArgs gather(const DeltaRuleArgs& a, std::size_t first, std::size_t n, float* factors) {
  const std::size_t k_dim = a.state.rows();
  for (std::size_t t = 0; t < n; ++t) {
    std::copy_n(a.q[first + t].data(), k_dim, factors + 2 * t * k_dim);
    std::copy_n(a.k[first + t].data(), k_dim, factors + (2 * t + 1) * k_dim);
  }
  DeltaRuleArgs part = a;
  part.q = {factors, n, k_dim, 2 * k_dim};
  part.k = {factors + k_dim, n, k_dim, 2 * k_dim};
  part.v = a.v.rows(first, n);
  part.out = a.out.rows(first, n);
  part.decay = a.decay + first * a.decay_stride;
  part.beta = a.beta + first * a.decay_stride;
  return part;
}

inline void delta_rule(const DeltaRuleArgs& a) {
  if (a.q.rows() == 0 || a.state.rows() == 0) return scalar::delta_rule(a);
  const std::size_t n = a.q.rows(), together = factor_numbers / (2 * a.state.rows());
  DeltaRuleArgs rest = a;
  if (n == 1 || together < 2) {
    rest.first = delta_strips(a);
  } else {
    alignas(64) float factors[factor_numbers];
    for (std::size_t t = 0; t < n; t += together) {
      rest.first = delta_strips(gather(a, t, HWY_MIN(together, n - t), factors));
    }
  }
  scalar::delta_rule(rest);
}

#else

inline void causal_conv(const CausalConvArgs& a) { scalar::causal_conv(a); }
inline void delta_rule(const DeltaRuleArgs& a) { scalar::delta_rule(a); }

#endif  // MICA_VECTORS
}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif
