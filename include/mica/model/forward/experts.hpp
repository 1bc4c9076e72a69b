// SPDX-License-Identifier: Apache-2.0
//
// Layers with experts: the router, the experts that it chose, those that every token uses.
#pragma once

#include "mica/model/forward.hpp"

namespace mica::model {

/// Hands out the experts of one layer, and shows their inputs to the observer.
template <class M>
struct Forward<M>::ExpertSource {
  Forward& f;
  const ExpertsTensors& t;
  const block::ExpertsConfig& config;
  [[nodiscard]] bool acquire(std::size_t e) noexcept { return f.pager_.acquire(t.first_group + e); }
  void prefetch(std::size_t e) noexcept { f.pager_.prefetch(t.first_group + e); }
  void release(std::size_t e) noexcept { f.pager_.release(t.first_group + e); }
  [[nodiscard]] block::Expert<Formats> expert(std::size_t e) noexcept {
    const auto bias = [&](const TensorRef& ref, std::size_t n) {
      const float* const all = f.vector(ref);
      return all == nullptr ? nullptr : all + e * n;
    };
    return {f.matrix(t.gate.expert(e)),       f.matrix(t.up.expert(e)),
            f.matrix(t.down.expert(e)),       bias(t.gate_bias, config.ff_width),
            bias(t.up_bias, config.ff_width), bias(t.down_bias, f.config_.width)};
  }
  void inputs(std::size_t e, MatrixView<const float> rows) noexcept {
    f.observe(t.gate.first, rows, e);
    f.observe(t.up.first, rows, e);
  }
  void hidden(std::size_t e, MatrixView<const float> rows) noexcept { f.observe(t.down.first, rows, e); }
};

/// Chooses the experts of every token; x: what the router reads, with the codes of a_.codes() where it wants them.
template <class M>
void Forward<M>::route(std::size_t i, MatrixView<const float> x, const block::ExpertRows& rows) noexcept {
  const block::ExpertsConfig& config = config_.layers[i].experts;
  const ExpertsTensors& t = weights_.layer(i).experts;
  const View logits = a_.router(n_, config.count);
  const Matrix router = matrix(t.router);
  observe(t.router, x);
  block::project<Kernels>(executor_, block::unrounded({x, a_.codes(n_, config_.width)}, router),
                          std::array{Product{router, logits, false, vector(t.router_bias)}});
  const float* const scale = vector(t.weight_scale);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    block::choose_experts(config, logits[row], scale, rows.choices.subspan(row * config.used, config.used));
  });
  block::ExpertRows sorted = rows;
  sorted.sort(config.used);
}

/// y += the experts that route() chose.
template <class M>
bool Forward<M>::experts(std::size_t i, const kernel::Input& x, View y) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const ExpertsTensors& t = weights_.layer(i).experts;
  ExpertSource source{*this, t, layer.experts};
  const block::ExpertsContext<ExpertSource> context{
      .config = layer.experts,
      .gate = layer.gate,
      .x = x,
      .quantized_input = wants_codes(matrix(t.gate.first), matrix(t.up.first)),
      .quantized_hidden = wants_codes(matrix(t.down.first)),
      .observed = Observer::active,
      .scratch = a_.experts(n_, config_.width, layer.experts),
      .source = source,
      .y = y};
  return block::run_experts<Kernels, Formats>(executor_, context);
}

/// y += the expert that every token uses, by its gate where it has one.
template <class M>
void Forward<M>::shared_expert(std::size_t i, const kernel::Input& x, View y) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const ExpertsTensors& t = weights_.layer(i).experts;
  if (!layer.experts.shared_gate) {
    dense(layer, t.shared, layer.experts.shared_ff_width, x, y, true);
    return;
  }
  const View gate = a_.router(n_, 1), out = a_.attended(n_, config_.width);
  observe(t.shared_router, x.values);
  const Matrix router = matrix(t.shared_router);
  block::project<Kernels>(executor_, block::unrounded(x, router), std::array{Product{router, gate}});
  dense(layer, t.shared, layer.experts.shared_ff_width, x, out, false);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    Kernels::add(kernel::AddArgs{out, y, kernel::sigmoid(gate[row][0]), row, row + 1});
  });
}

/// Gemma 4: scratch = RMSNorm(dense(norm(x))) + RMSNorm(experts(norm_2(x))), the router reading x in its own way.
template <class M>
bool Forward<M>::experts_beside_dense(std::size_t i, const block::Branch& b) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const LayerTensors& t = weights_.layer(i);
  const ExpertsTensors& e = t.experts;
  const View sum = b.scratch, out = a_.attended(n_, config_.width);
  const auto x = norm(residual_, vector(t.ffn_norm), wants_codes(matrix(t.ffn.gate), matrix(t.ffn.up)));
  dense(layer, t.ffn, layer.ff_width, x, sum, false);
  const auto routed = norm(residual_, vector(e.router_scale), false);
  const View reads = a_.normed(n_, config_.width);
  scale(reads, 1.0f / std::sqrt(static_cast<float>(config_.width)));
  block::quantize<Kernels>(executor_, reads, a_.codes(n_, config_.width),
                           block::needs_codes(matrix(e.router)));
  route(i, routed.values, a_.experts(n_, config_.width, layer.experts).rows);
  const auto in =
      norm(residual_, vector(t.experts_norm), wants_codes(matrix(e.gate.first), matrix(e.up.first)));
  fill_with_zeros(out);
  if (!experts(i, in, out)) return false;
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    const float epsilon = config_.norm_epsilon;
    Kernels::rms_norm(kernel::RmsNormArgs{sum, vector(t.dense_post_norm), epsilon, sum, row, row + 1});
    Kernels::rms_norm(kernel::RmsNormArgs{out, vector(t.experts_post_norm), epsilon, out, row, row + 1});
    Kernels::add(kernel::AddArgs{out, sum, 1, row, row + 1});
  });
  return true;
}

}  // namespace mica::model
