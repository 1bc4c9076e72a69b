// SPDX-License-Identifier: Apache-2.0
//
// The block of a mixture of experts beside a dense network, as Gemma 4 has it. The router has a norm of its
// own:
//
//   residual += RMSNorm(RMSNorm(dense(norm_1(x))) + RMSNorm(experts(norm_2(x))))
//   the router reads RMSNorm(x) * scale / sqrt(width)
#pragma once

#include "mica/block/dense_feed_forward.hpp"
#include "mica/block/experts.hpp"

#include <cmath>
#include <cstddef>

namespace mica::block {

struct ExpertsBesideDense : Stateless, Divided {
  // Required by Block
  static constexpr std::string_view name = "experts beside dense";
  struct Config {
    DenseFeedForward::Config dense;
    Experts::Config experts;
  };
  struct Tensors {
    TensorRef norm;  // (width)
    GatedTensors dense;
    Experts::Tensors experts;
    TensorRef dense_post_norm, experts_norm, experts_post_norm;  // (width)
    TensorRef post_norm;                                         // (width)
  };
  struct Buffers {
    MatrixView<float> experts_out;  // (n, width)
    Experts::Buffers experts;
    GatedBuffers dense;  // comes before the experts, and lies where they will lie
  };
  [[nodiscard]] static Config own(const Config& c, const ranks::Division& ranks) noexcept {
    return {DenseFeedForward::own(c.dense, ranks), Experts::own(c.experts, ranks)};
  }
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    Tensors t;
    t.norm = files.norm(join(c.dense.norm, ".weight"));
    t.dense = DenseFeedForward::bind_gated(files, c.dense);
    t.experts = Experts::bind_experts(files, c.experts);
    t.dense_post_norm = files.norm("post_ffw_norm_1.weight");
    t.experts_norm = files.norm("pre_ffw_norm_2.weight");
    t.experts_post_norm = files.norm("post_ffw_norm_2.weight");
    t.post_norm = files.norm("post_ffw_norm.weight");
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) noexcept {
    scratch.branch(true);
    Buffers b;
    b.experts_out = scratch.rows(scratch.sizes().width);
    const std::size_t before = scratch.at();
    b.dense = GatedBuffers::of(scratch, c.dense.ff_width, true, c.dense.divided);
    scratch.rewind(before);
    b.experts = Experts::buffers(scratch, c.experts);
    return b;
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    using Kernels = typename Step::Kernels;
    const Experts::Tensors& e = t.experts;
    const Branch branch = step.branch(t.post_norm);
    const MatrixView<float> sum = branch.scratch, out = b.experts_out;
    const auto x = step.norm(t.norm, step.wants_codes(step.matrix(t.dense.gate), step.matrix(t.dense.up)));
    if (!run_gated(step, t.dense, c.dense.gate, c.dense.sparsity, b.dense, x, sum, false, c.dense.divided))
      return false;
    const auto routed = step.norm(e.router_scale, false);
    step.scale(step.input(), 1.0f / std::sqrt(static_cast<float>(step.width())));
    quantize<Kernels>(step.executor(), step.input(), step.codes(step.width()),
                      needs_codes(step.matrix(e.router)));
    Experts::route(step, c.experts, e, b.experts, routed.values);
    const auto in =
        step.norm(t.experts_norm, step.wants_codes(step.matrix(e.gate.first), step.matrix(e.up.first)));
    step.fill_with_zeros(out);
    if (!Experts::run_chosen(step, c.experts, e, b.experts, in, out)) return false;
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      const float epsilon = step.epsilon();
      Kernels::rms_norm(kernel::RmsNormArgs{sum, step.vector(t.dense_post_norm), epsilon, sum, row, row + 1});
      Kernels::rms_norm(
          kernel::RmsNormArgs{out, step.vector(t.experts_post_norm), epsilon, out, row, row + 1});
      Kernels::add(kernel::AddArgs{out, sum, 1, row, row + 1});
    });
    step.join(branch);
    return true;
  }
};
static_assert(Block<ExpertsBesideDense>);

}  // namespace mica::block
