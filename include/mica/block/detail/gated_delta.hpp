// SPDX-License-Identifier: Apache-2.0
//
// The gated delta net of Qwen3-Next and Qwen3.5 (Yang et al., arXiv 2412.06464): a token mixer with a state
// of fixed size instead of a cache. Of one layer, for each token:
//
//   [q, k, v] = silu(convolution over the last `taps` tokens of x W_qkv)
//   q, k      = L2 norm per head, q / sqrt(k_dim)
//   decay     = exp(A softplus(alpha + dt)),  beta = sigmoid(b)
//   S         = decay S + k (beta (v - S' k))',  o = S' q              per value head, kernel/recurrent.hpp
//   out       = RMSNorm(o) * silu(z)
//
// Every token goes through the same operations in the same order, at whatever position a step begins. So a
// prefill in chunks of any size gives the same bits as one token at a time.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace mica::block {

/// A gated delta net (arXiv 2412.06464). Its keys are as wide as its queries.
struct DeltaNetConfig {
  std::size_t k_heads = 0;  // divides v_heads
  std::size_t v_heads = 0;
  std::size_t k_dim = 0;
  std::size_t v_dim = 0;
  std::size_t taps = 0;            // of the convolution over tokens
  bool heads_interleaved = false;  // value head h uses key head h / (v_heads / k_heads), not h % k_heads
  bool post_norm = false;          // the output is normed before it is added
  bool fused_gates = false;        // one tensor ssm_ba, ordered by key head: its b, its a
  bool divided = false;            // ranks divide the rows of its large products; each has the whole state

  [[nodiscard]] std::size_t k_width() const noexcept { return k_heads * k_dim; }
  [[nodiscard]] std::size_t v_width() const noexcept { return v_heads * v_dim; }
  [[nodiscard]] std::size_t channels() const noexcept { return 2 * k_width() + v_width(); }
  [[nodiscard]] std::size_t key_head(std::size_t v_head) const noexcept {
    return heads_interleaved ? v_head / (v_heads / k_heads) : v_head % k_heads;
  }
};

/// Where one layer's state lies.
struct DeltaNetState {
  MatrixView<float> conv;   // (taps - 1, channels): the last inputs of the convolution
  MatrixView<float> heads;  // (v_heads * k_dim, v_dim): S of each value head
};

/// The tokens of one sequence: rows [first, first + n) of a context, and the state that they go into.
struct DeltaNetSequence {
  DeltaNetState state;
  std::size_t first = 0;
  std::size_t n = 0;
  std::size_t drafts = 0;         // the last ones of them
  DeltaNetState draft_copy = {};  // takes the state before the drafts; empty: nothing does

  /// The same rows from `begin` to `end`, counted in this sequence.
  [[nodiscard]] DeltaNetSequence rows(std::size_t begin, std::size_t end) const noexcept {
    return {state, first + begin, end - begin};
  }
  /// run(rows), or before the drafts, copy(), and then the drafts.
  template <class Run, class Copy>
  void run_in_turns(Run&& run, Copy&& copy) const {
    if (draft_copy.heads.data() == nullptr) return run(*this);
    if (n > drafts) run(rows(0, n - drafts));
    copy();
    run(rows(n - drafts, n));
  }
};

/// Columns [first, last) of all rows.
inline void copy_columns(MatrixView<const float> from, MatrixView<float> to, std::size_t first,
                         std::size_t last) noexcept {
  for (std::size_t row = 0; row < from.rows(); ++row)
    std::copy_n(from[row].data() + first, last - first, to[row].data() + first);
}

/// Scratch of a step; the rows may be of several sequences.
struct DeltaNetBuffers {
  MatrixView<float> mixed;        // (n, channels): x W_qkv
  MatrixView<float> convolved;    // (n, channels): q, k, v
  MatrixView<float> gate;         // (n, v_width): z
  MatrixView<float> out;          // (n, v_width)
  MatrixView<float> alpha;        // (n, v_heads): becomes decay
  MatrixView<float> beta;         // (n, v_heads): becomes sigmoid of itself; beside alpha, with its stride
  MatrixView<float> fused_gates;  // (n, 2 * v_heads), of a block that projects both gates at once
};

/// What a delta net of one layer works on.
struct DeltaNetContext : DeltaNetBuffers {
  const DeltaNetConfig& config;
  float epsilon;
  const float* conv_weight;  // (channels, taps)
  const float* a;            // (v_heads), negative
  const float* dt;           // (v_heads)
  const float* norm;         // (v_dim)
};

/// Channels of the convolution, and columns of a head's state, in one task.
inline constexpr std::size_t delta_channels = 256;
inline constexpr std::size_t delta_columns = 64;

/// Tokens [first, last): L2 norms of queries and keys; decay and beta.
template <Kernels K>
void prepare_delta_net(const DeltaNetContext& c, std::size_t first, std::size_t last) noexcept {
  const DeltaNetConfig& d = c.config;
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(d.k_dim));
  for (std::size_t head = 0; head < 2 * d.k_heads; ++head) {  // queries, then keys
    const auto x = c.convolved.cols(head * d.k_dim, d.k_dim);
    K::l2_norm(kernel::L2NormArgs{x, c.epsilon, head < d.k_heads ? q_scale : 1.0f, x, first, last});
  }
  for (std::size_t t = first; t < last; ++t) {
    for (std::size_t head = 0; head < d.v_heads; ++head) {
      c.alpha[t][head] = kernel::exp(c.a[head] * kernel::softplus(c.alpha[t][head] + c.dt[head]));
      c.beta[t][head] = kernel::sigmoid(c.beta[t][head]);
    }
  }
}

/// Channels [first, last).
template <Kernels K>
void run_convolution(const DeltaNetContext& c, const DeltaNetSequence& part, std::size_t first,
                     std::size_t last) noexcept {
  const auto run = [&](const DeltaNetSequence& p) {
    K::causal_conv(kernel::CausalConvArgs{c.mixed.rows(p.first, p.n), c.conv_weight, c.config.taps,
                                          p.state.conv, c.convolved.rows(p.first, p.n), first, last});
  };
  part.run_in_turns(run, [&] { copy_columns(part.state.conv, part.draft_copy.conv, first, last); });
}

/// Columns [first, last) of one value head.
template <Kernels K>
void run_delta_rule(const DeltaNetContext& c, const DeltaNetSequence& part, std::size_t head,
                    std::size_t first, std::size_t last) noexcept {
  const DeltaNetConfig& d = c.config;
  const std::size_t key = d.key_head(head) * d.k_dim;
  const auto of_head = [&](const DeltaNetState& state) { return state.heads.rows(head * d.k_dim, d.k_dim); };
  const auto run = [&](const DeltaNetSequence& p) {
    const MatrixView<float> x = c.convolved.rows(p.first, p.n);
    const std::size_t gate = p.first * c.alpha.stride() + head;
    K::delta_rule(kernel::DeltaRuleArgs{x.cols(key, d.k_dim), x.cols(d.k_width() + key, d.k_dim),
                                        x.cols(2 * d.k_width() + head * d.v_dim, d.v_dim),
                                        c.alpha.data() + gate, c.beta.data() + gate, c.alpha.stride(),
                                        of_head(p.state),
                                        c.out.rows(p.first, p.n).cols(head * d.v_dim, d.v_dim), first, last});
  };
  part.run_in_turns(run, [&] { copy_columns(of_head(part.state), of_head(part.draft_copy), first, last); });
}

/// Fills out and takes the tokens of each sequence into its state. part(i): the DeltaNetSequence of sequence
/// i.
template <Kernels K, Executor E, class PartOf>
void delta_net(E& executor, const DeltaNetContext& c, std::size_t parts, PartOf&& part) noexcept {
  const DeltaNetConfig& d = c.config;
  const std::size_t n = c.mixed.rows();
  executor.run(ceil_div(d.channels(), delta_channels) * parts, [&](std::size_t task, std::size_t) noexcept {
    const std::size_t first = task / parts * delta_channels;
    run_convolution<K>(c, part(task % parts), first, std::min(first + delta_channels, d.channels()));
  });
  executor.run(n, [&](std::size_t t, std::size_t) noexcept { prepare_delta_net<K>(c, t, t + 1); });
  const std::size_t strips = ceil_div(d.v_dim, delta_columns);
  executor.run(d.v_heads * strips * parts, [&](std::size_t task, std::size_t) noexcept {
    const std::size_t strip = task / parts, first = strip % strips * delta_columns;
    run_delta_rule<K>(c, part(task % parts), strip / strips, first, std::min(first + delta_columns, d.v_dim));
  });
  executor.run(n, [&](std::size_t t, std::size_t) noexcept {
    for (std::size_t head = 0; head < d.v_heads; ++head) {
      const auto out = c.out.cols(head * d.v_dim, d.v_dim);
      K::rms_norm(kernel::RmsNormArgs{out, c.norm, c.epsilon, out, t, t + 1});
    }
    K::gated(kernel::GatedArgs{kernel::Gate::silu, c.gate, c.out, c.out, t, t + 1});
  });
}

}  // namespace mica::block
