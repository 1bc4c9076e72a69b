// SPDX-License-Identifier: Apache-2.0
//
// The block of a gated delta net (block/detail/gated_delta.hpp): a token mixer with a state of fixed size
// instead of keys and values. The state of a sequence has the last inputs of the convolution, then the matrix
// of each head.
#pragma once

#include "mica/block/concept.hpp"
#include "mica/block/detail/gated_delta.hpp"
#include "mica/block/linear.hpp"
#include "mica/block/norm.hpp"

#include <array>
#include <cstddef>

namespace mica::block {

struct DeltaNet : Divided {
  // Required by Block
  static constexpr std::string_view name = "delta net";
  using Config = DeltaNetConfig;
  struct Tensors {
    TensorRef norm;         // (width)
    TensorRef qkv;          // (channels, width)
    TensorRef gate;         // (v_width, width)
    TensorRef alpha, beta;  // (v_heads, width)
    TensorRef fused_gates;  // (2 * v_heads, width), in place of both
    TensorRef conv;         // (channels, taps)
    TensorRef a, dt;        // (v_heads)
    TensorRef head_norm;    // (v_dim)
    TensorRef output;       // (width, v_width)
    TensorRef post_norm;    // (width)
  };
  using Buffers = DeltaNetBuffers;
  [[nodiscard]] static Config own(const Config& all, const ranks::Division& ranks) noexcept {
    Config c = all;
    c.divided = ranks.size() > 1;
    return c;
  }
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    const std::size_t width = files.width();
    Tensors t;
    t.norm = files.norm("attn_norm.weight");
    t.qkv = files.matrix("attn_qkv.weight", files.outputs(c.channels()), width);
    t.gate = files.matrix("attn_gate.weight", files.outputs(c.v_width()), width);
    if (c.fused_gates) {
      t.fused_gates = files.rows("ssm_ba.weight", 2 * c.v_heads, width);
    } else {
      t.alpha = files.rows("ssm_alpha.weight", c.v_heads, width);
      t.beta = files.rows("ssm_beta.weight", c.v_heads, width);
    }
    t.conv = files.vector("ssm_conv1d.weight", c.channels() * c.taps);
    t.a = files.vector("ssm_a", c.v_heads);
    t.dt = files.vector("ssm_dt.bias", c.v_heads);
    t.head_norm = files.vector("ssm_norm.weight", c.v_dim);
    t.output = files.matrix("ssm_out.weight", files.outputs(), c.v_width());
    if (c.post_norm) t.post_norm = files.norm("post_attention_norm.weight");
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) noexcept {
    scratch.input(c.v_width());
    scratch.branch(c.post_norm);
    Buffers b;
    b.mixed = c.divided ? scratch.exchanged(c.channels()) : scratch.rows(c.channels());
    b.convolved = scratch.rows(c.channels());
    b.gate = scratch.rows(c.v_width());
    b.out = scratch.rows(c.v_width());
    if (c.fused_gates) b.fused_gates = scratch.rows(2 * c.v_heads);
    const auto gates = scratch.rows(2 * c.v_heads);
    b.alpha = gates.cols(0, c.v_heads);
    b.beta = gates.cols(c.v_heads, c.v_heads);
    return b;
  }
  static void plan(StatePlan& state, const Config& c) {
    state.keep_floats((c.taps - 1) * c.channels() + c.k_dim * c.v_width(), true);
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    project_inputs(step, c, t, b);
    if (c.divided && (!step.gather_outputs(b.mixed) || !step.gather_outputs(b.gate))) return false;
    const DeltaNetContext context{b,
                                  c,
                                  step.epsilon(),
                                  step.vector(t.conv),
                                  step.vector(t.a),
                                  step.vector(t.dt),
                                  step.vector(t.head_norm)};
    delta_net<typename Step::Kernels>(step.executor(), context, step.parts().size(), [&](std::size_t part) {
      const auto rows = step.rows_of(part);
      float* const copy = step.draft_floats(part);
      return DeltaNetSequence{state_at(c, step.floats(part)), rows.first, rows.count, rows.drafts,
                              copy == nullptr ? DeltaNetState{} : state_at(c, copy)};
    });
    if (c.divided) return step.add_divided(b.out, t.output, t.post_norm);
    step.add_product(b.out, t.output, t.post_norm);
    return true;
  }

 private:
  [[nodiscard]] static DeltaNetState state_at(const Config& c, float* floats) noexcept {
    return {{floats, c.taps - 1, c.channels()},
            {floats + (c.taps - 1) * c.channels(), c.v_heads * c.k_dim, c.v_dim}};
  }
  /// Gates control the state for all later tokens: they are few, and not rounded.
  template <class Step>
  static void project_inputs(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    using Kernels = typename Step::Kernels;
    using Product = typename Step::Product;
    const auto qkv = step.matrix(t.qkv), gate = step.matrix(t.gate);
    const auto x = step.norm(t.norm, step.wants_codes(qkv, gate));
    const auto mixed = step.own_outputs(b.mixed), z = step.own_outputs(b.gate);
    for (const TensorRef& ref : {t.qkv, t.gate, t.fused_gates, t.alpha, t.beta}) step.observe(ref, x.values);
    const auto in_floats = [&](const TensorRef& ref, MatrixView<float> y) {
      return Product{step.matrix(ref), y, false, nullptr, true};
    };
    if (c.fused_gates) {
      project<Kernels>(
          step.executor(), x,
          std::array{Product{qkv, mixed}, Product{gate, z}, in_floats(t.fused_gates, b.fused_gates)});
      split_gates(c, b);
    } else {
      project<Kernels>(step.executor(), x,
                       std::array{Product{qkv, mixed}, Product{gate, z}, in_floats(t.alpha, b.alpha),
                                  in_floats(t.beta, b.beta)});
    }
  }
  /// Of each key head: beta of its value heads, then alpha of them.
  static void split_gates(const Config& c, const Buffers& b) noexcept {
    const std::size_t share = c.v_heads / c.k_heads;
    for (std::size_t row = 0; row < b.alpha.rows(); ++row) {
      for (std::size_t head = 0; head < c.v_heads; ++head) {
        const std::size_t at = head / share * 2 * share + head % share;
        b.beta[row][head] = b.fused_gates[row][at];
        b.alpha[row][head] = b.fused_gates[row][at + share];
      }
    }
  }
};
static_assert(Block<DeltaNet>);

}  // namespace mica::block
