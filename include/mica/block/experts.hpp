// SPDX-License-Identifier: Apache-2.0
//
// The block of a mixture of experts: the router, the experts that it chose (block/detail/run_experts.hpp),
// and the shared expert, which every token uses. Experts are units of the pager: a step acquires those that
// the router chose for its tokens.
#pragma once

#include "mica/block/dense_feed_forward.hpp"
#include "mica/block/detail/run_experts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::block {

struct Experts : Stateless, Divided {
  // Required by Block
  static constexpr std::string_view name = "experts";
  using Config = ExpertsConfig;
  struct Tensors {
    TensorRef norm;                           // (width)
    TensorRef router, router_bias;            // (count, width), (count)
    TensorRef router_scale;                   // (width)
    ExpertsRef gate, up, down;                // per expert as GatedTensors
    TensorRef gate_bias, up_bias, down_bias;  // (count, ff_width) x 2, (count, width)
    TensorRef weight_scale;                   // (count)
    GatedTensors shared;
    TensorRef shared_router;     // (1, width)
    TensorRef post_norm;         // (width)
    std::size_t first_unit = 0;  // of the pager, for expert 0
  };
  struct Buffers {
    MatrixView<float> scores;  // (n, count)
    ExpertScratch chosen;
    // The expert of all tokens comes after the chosen ones, and lies where they lay.
    GatedBuffers shared;
    MatrixView<float> shared_gate, shared_out;  // (n, 1), (n, width)
  };
  [[nodiscard]] static Config own(const Config& all, const ranks::Division& ranks) noexcept {
    Config c = all;
    if (ranks.size() == 1) return c;
    c.divided = divided_hidden(ranks, c.ff_width);
    c.ff_width = c.divided.count;
    if (c.shared_ff_width == 0) return c;
    c.shared_divided = divided_hidden(ranks, c.shared_ff_width);
    c.shared_ff_width = c.shared_divided.count;
    return c;
  }
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    const TensorRef norm = files.norm(join(c.norm, ".weight"));
    Tensors t = bind_experts(files, c);
    t.norm = norm;
    if (c.post_norm) t.post_norm = files.norm("post_ffw_norm.weight");
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) noexcept {
    scratch.branch(c.post_norm);
    const std::size_t width = scratch.sizes().width, capacity = std::max(scratch.sizes().chunk, c.used);
    Buffers b;
    b.scores = scratch.rows(c.count);
    const std::size_t tokens = b.scores.rows(), rows = tokens * c.used;
    ExpertScratch& s = b.chosen;
    s.capacity = capacity;
    s.rows.choices = scratch.items<Choice>(rows);
    s.rows.expert = scratch.items<std::uint32_t>(c.count);
    s.rows.begin = scratch.items<std::uint32_t>(c.count + 1);
    s.rows.token = scratch.items<std::uint32_t>(rows);
    s.rows.weight = scratch.items<float>(rows);
    const std::size_t after_routing = scratch.at();
    s.values = scratch.rows(capacity, width);
    s.gate_out = scratch.rows(capacity, c.ff_width);
    s.up_out = scratch.rows(capacity, c.ff_width);
    const std::size_t hidden = c.ff_part().all;
    if (c.divided.all != 0) s.hidden = scratch.exchanged(capacity, hidden);
    const CodeBuffer codes = scratch.codes(capacity, std::max(width, hidden));
    s.input_codes = codes.rows(capacity, width);
    s.hidden_codes = codes.rows(capacity, hidden);
    if (c.shared_part().all == 0) return b;
    scratch.rewind(after_routing);
    b.shared = GatedBuffers::of(scratch, c.shared_ff_width, true, c.shared_divided);
    if (!c.shared_gate) return b;
    b.shared_gate = scratch.rows(1);
    b.shared_out = scratch.rows(width);
    return b;
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    const Branch branch = step.branch(t.post_norm);
    const auto x =
        step.norm(t.norm, needs_codes(step.matrix(t.router), step.matrix(t.shared_router)) ||
                              step.wants_codes(step.matrix(t.gate.first), step.matrix(t.up.first),
                                               step.matrix(t.shared.gate), step.matrix(t.shared.up)));
    if (!branch.direct()) step.fill_with_zeros(branch.scratch);
    route(step, c, t, b, x.values);
    if (!run_chosen(step, c, t, b, x, branch.target())) return false;
    if (c.shared_part().all != 0 && !run_shared(step, c, t, b, x, branch.target())) return false;
    step.join(branch);
    return true;
  }

  // Specific to Experts: what a block around it calls

  /// All tensors but the norms.
  [[nodiscard]] static Tensors bind_experts(TensorBinder& files, const Config& c) {
    Tensors t;
    const std::size_t width = files.width(), ff = c.ff_part().all;
    const bool divided = c.divided.all != 0;
    const auto experts = [&](std::string_view name, std::size_t rows, std::size_t cols, std::size_t first,
                             const ranks::Part& part) {
      return files.experts(name, c.count, rows, cols, t.first_unit, first, part);
    };
    t.first_unit = files.add_experts(c.count);
    t.router = files.matrix("ffn_gate_inp.weight", c.count, width);
    if (!files.has("ffn_gate_up_exps.weight")) {
      t.gate = experts("ffn_gate_exps.weight", ff, width, 0, c.ff_part());
      t.up = experts("ffn_up_exps.weight", ff, width, 0, c.ff_part());
    } else if (divided) {  // one tensor: of each expert the gate, then what it gates
      t.gate = experts("ffn_gate_up_exps.weight", 2 * ff, width, 0, c.divided);
      t.up = experts("ffn_gate_up_exps.weight", 2 * ff, width, ff, c.divided);
    } else {
      const ExpertsRef fused = experts("ffn_gate_up_exps.weight", 2 * ff, width, 0, ranks::all_of(2 * ff));
      for (std::size_t e = 1; e < c.count; ++e) static_cast<void>(files.slice(fused.expert(e), ff, ff));
      t.gate.first = files.slice(fused.first, 0, ff);
      t.up.first = files.slice(fused.first, ff, ff);
    }
    t.down = experts("ffn_down_exps.weight", width, ff, 0, divided ? files.outputs() : ranks::all_of(width));
    if (c.bias) {
      t.router_bias = files.vector("ffn_gate_inp.bias", c.count);
      t.gate_bias = files.vector("ffn_gate_exps.bias", c.count * ff);
      t.up_bias = files.vector("ffn_up_exps.bias", c.count * ff);
      t.down_bias = files.vector("ffn_down_exps.bias", c.count * width);
    }
    if (c.scaled_router) {
      t.router_scale = files.norm("ffn_gate_inp.scale");
      t.weight_scale = files.vector("ffn_down_exps.scale", c.count);
    }
    const ranks::Part shared = c.shared_part();
    if (shared.all == 0) return t;
    t.shared.gate = files.matrix("ffn_gate_shexp.weight", shared, width);
    t.shared.up = files.matrix("ffn_up_shexp.weight", shared, width);
    t.shared.down =
        files.matrix("ffn_down_shexp.weight", divided ? files.outputs() : ranks::all_of(width), shared.all);
    if (c.shared_gate) t.shared_router = files.matrix("ffn_gate_inp_shexp.weight", 1, width);
    return t;
  }
  /// Chooses the experts of every token; x: the router's input, with int8 codes if it reads them.
  template <class Step>
  static void route(Step& step, const Config& c, const Tensors& t, const Buffers& b,
                    MatrixView<const float> x) noexcept {
    using Product = typename Step::Product;
    const auto router = step.matrix(t.router);
    step.observe(t.router, x);
    project<typename Step::Kernels>(step.executor(), unrounded({x, step.codes(x.cols())}, router),
                                    std::array{Product{router, b.scores, false, step.vector(t.router_bias)}});
    const float* const scale = step.vector(t.weight_scale);
    ExpertRows rows = b.chosen.rows;
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      choose_experts(c, b.scores[row], scale, rows.choices.subspan(row * c.used, c.used));
    });
    rows.sort(c.used);
  }
  /// y += the experts that route() chose. False when one could not be read.
  template <class Step>
  [[nodiscard]] static bool run_chosen(Step& step, const Config& c, const Tensors& t, const Buffers& b,
                                       const kernel::Input& x, MatrixView<float> y) noexcept {
    Source<Step> source{step, c, t, b.chosen};
    const ExpertsContext<Source<Step>> context{
        .config = c,
        .x = x,
        .quantized_input = step.wants_codes(step.matrix(t.gate.first), step.matrix(t.up.first)),
        .quantized_hidden = step.reads_codes(t.down.first, step.codes(step.width())),
        .observed = Step::observed,
        .scratch = b.chosen,
        .source = source,
        .y = y};
    return run_experts<typename Step::Kernels, typename Step::Formats>(step.executor(), context);
  }

 private:
  /// Provides the experts of one layer, and passes their inputs to the observer.
  template <class Step>
  struct Source {
    Step& step;
    const Config& config;
    const Tensors& t;
    const ExpertScratch& scratch;

    static constexpr bool divides = !Step::Ranks::one;

    /// Of an expert those of this rank.
    [[nodiscard]] ranks::Part outputs() const noexcept { return step.outputs(step.width()); }
    [[nodiscard]] bool gather_hidden(std::size_t n, bool quantized) noexcept {
      const auto all = scratch.hidden.rows(0, n);
      return step.gather({scratch.gate_out.rows(0, n), hidden_unit(all.cols()), all}, scratch.hidden_codes,
                         quantized);
    }
    [[nodiscard]] bool gather_outputs(std::size_t n) noexcept {
      return step.gather_outputs(scratch.values.rows(0, n));
    }

    [[nodiscard]] bool acquire(std::size_t e) noexcept { return step.pager().acquire(t.first_unit + e); }
    void prefetch(std::size_t e) noexcept { step.pager().prefetch(t.first_unit + e); }
    void release(std::size_t e) noexcept { step.pager().release(t.first_unit + e); }
    [[nodiscard]] GatedWeights<typename Step::Formats> expert(std::size_t e) noexcept {
      const auto bias = [&](const TensorRef& ref, const ranks::Part& part) {
        const float* const all = step.vector(ref);
        return all == nullptr ? nullptr : all + e * part.all + part.first;
      };
      return {step.matrix(t.gate.expert(e)),     step.matrix(t.up.expert(e)),
              step.matrix(t.down.expert(e)),     bias(t.gate_bias, config.ff_part()),
              bias(t.up_bias, config.ff_part()), bias(t.down_bias, outputs())};
    }
    void inputs(std::size_t e, MatrixView<const float> rows) noexcept {
      step.observe(t.gate.first, rows, e);
      step.observe(t.up.first, rows, e);
    }
    void hidden(std::size_t e, MatrixView<const float> rows) noexcept { step.observe(t.down.first, rows, e); }
  };
  /// y += the expert that every token uses, by its gate where it has one.
  template <class Step>
  [[nodiscard]] static bool run_shared(Step& step, const Config& c, const Tensors& t, const Buffers& b,
                                       const kernel::Input& x, MatrixView<float> y) noexcept {
    using Kernels = typename Step::Kernels;
    using Product = typename Step::Product;
    if (!c.shared_gate) return run_gated(step, t.shared, c.gate, 0, b.shared, x, y, true, c.shared_divided);
    step.observe(t.shared_router, x.values);
    const auto router = step.matrix(t.shared_router);
    project<Kernels>(step.executor(), unrounded(x, router), std::array{Product{router, b.shared_gate}});
    if (!run_gated(step, t.shared, c.gate, 0, b.shared, x, b.shared_out, false, c.shared_divided))
      return false;
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      Kernels::add(kernel::AddArgs{b.shared_out, y, kernel::sigmoid(b.shared_gate[row][0]), row, row + 1});
    });
    return true;
  }
};
static_assert(Block<Experts>);

}  // namespace mica::block
