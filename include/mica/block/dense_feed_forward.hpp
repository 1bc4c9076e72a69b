// SPDX-License-Identifier: Apache-2.0
//
// The block of one feed-forward network that every token goes through, gated or not
// (block/detail/feed_forward.hpp).
#pragma once

#include "mica/block/concept.hpp"
#include "mica/block/detail/feed_forward.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace mica::block {

/// The tensors of one gated network, or of one without a gate. Fused ones are cut into rows.
struct GatedTensors {
  TensorRef gate, up;                       // (ff_width, width); without a gate the second one is absent
  TensorRef down;                           // (width, ff_width)
  TensorRef gate_bias, up_bias, down_bias;  // one number per row
};

/// Its inputs and outputs.
struct GatedBuffers {
  MatrixView<float> gate, up;  // (n, ff_width)
  MatrixView<float> gathered;  // (n, ff_width of all ranks), or empty

  /// Requests both from a scratch, or the first one, and announces that a product reads rows of ff_width.
  /// divided: the numbers of this rank; ff_width are then those.
  [[nodiscard]] static GatedBuffers of(Scratch& scratch, std::size_t ff_width, bool gated = true,
                                       const ranks::Part& divided = {}) noexcept {
    scratch.input(std::max(ff_width, divided.all));
    GatedBuffers b;
    b.gate = scratch.rows(ff_width);
    if (gated) b.up = scratch.rows(ff_width);
    if (divided.all != 0) b.gathered = scratch.exchanged(divided.all);
    return b;
  }
};

/// Ranks divide `width` hidden numbers in units of this: activations that share a scale, where there are
/// some.
[[nodiscard]] constexpr std::size_t hidden_unit(std::size_t width) noexcept {
  constexpr std::size_t many = 32;  // units: ranks are even then
  if (width % kernel::fast8_group == 0 && width / kernel::fast8_group >= many) return kernel::fast8_group;
  return width % kernel::activation_group == 0 ? kernel::activation_group : 1;
}
/// Of `width` hidden numbers those of this rank.
[[nodiscard]] inline ranks::Part divided_hidden(const ranks::Division& ranks, std::size_t width) noexcept {
  return ranks.own(width / hidden_unit(width)).times(hidden_unit(width));
}

/// The network with these weights and buffers.
template <class Step>
[[nodiscard]] FeedForward<typename Step::Formats> network(Step& step, const GatedTensors& t,
                                                          kernel::Gate gate, float sparsity,
                                                          const GatedBuffers& b) noexcept {
  return {{step.matrix(t.gate), step.matrix(t.up), step.matrix(t.down), step.vector(t.gate_bias),
           step.vector(t.up_bias), step.vector(t.down_bias)},
          gate,
          sparsity,
          b.gate,
          b.up,
          step.codes(b.gate.cols())};
}

/// y (+)= f(x). t: the tensors of f. divided: where ranks divide it, the hidden numbers of this one.
/// False: a rank is gone.
template <class Step>
[[nodiscard]] bool run_network(Step& step, const FeedForward<typename Step::Formats>& f,
                               const GatedTensors& t, const GatedBuffers& b, const kernel::Input& x,
                               MatrixView<float> y, bool add, const ranks::Part& divided = {}) noexcept {
  using Kernels = typename Step::Kernels;
  step.observe(t.gate, x.values);
  step.observe(t.up, x.values);
  if (divided.all != 0) {
    feed_forward_in<Kernels>(step.executor(), f, x, false);
    return step.project_divided({b.gate, hidden_unit(divided.all), b.gathered}, t.down, y, add,
                                f.weights.down_bias);
  }
  feed_forward_in<Kernels>(step.executor(), f, x);
  step.observe(t.down, f.gate_out);
  feed_forward_out<Kernels>(step.executor(), f, y, add);
  return true;
}

/// y (+)= down(act(gate(x)) * up(x)). divided: as above.
template <class Step>
[[nodiscard]] bool run_gated(Step& step, const GatedTensors& t, kernel::Gate gate, float sparsity,
                             const GatedBuffers& b, const kernel::Input& x, MatrixView<float> y, bool add,
                             const ranks::Part& divided = {}) noexcept {
  return run_network(step, network(step, t, gate, sparsity, b), t, b, x, y, add, divided);
}

struct DenseFeedForward : Stateless, Divided {
  // Required by Block
  static constexpr std::string_view name = "dense feed-forward";
  struct Config {
    std::size_t ff_width = 0;
    kernel::Gate gate = kernel::Gate::silu;
    float sparsity = 0;         // Gaussian top-k of the gate: numbers below mean + this * deviation become 0
    bool gated = true;          // false: down(act(up(x))), act being the function of the gate
    bool bias = false;          // numbers are added to the outputs of all products
    bool down_bias = false;     // to that of the last one alone
    bool pre_norm = true;       // the input is normed
    bool second_codes = false;  // exact products read second codes too (kernel/second_codes.hpp)
    bool post_norm = false;     // the output is normed before it is added
    std::string_view norm = "ffn_norm";  // name of the norm before it: some files give it another block's
    ranks::Part divided = {};  // where ranks divide the layer: the numbers of this one; all == 0: it is whole

    /// The hidden numbers of this rank, among all.
    [[nodiscard]] ranks::Part ff_part() const noexcept {
      return divided.all == 0 ? ranks::all_of(ff_width) : divided;
    }
  };
  struct Tensors {
    TensorRef norm, norm_bias;  // (width)
    GatedTensors gated;
    TensorRef post_norm;  // (width)
  };
  using Buffers = GatedBuffers;

  /// Gaussian top-k looks at all numbers of a gate, so that such a layer stays whole.
  [[nodiscard]] static Config own(const Config& all, const ranks::Division& ranks) noexcept {
    Config c = all;
    if (ranks.size() == 1 || c.sparsity != 0) return c;
    c.divided = divided_hidden(ranks, c.ff_width);
    c.ff_width = c.divided.count;
    return c;
  }
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    Tensors t;
    if (c.pre_norm) {
      t.norm = files.norm(join(c.norm, ".weight"));
      t.norm_bias = files.norm_if_there(join(c.norm, ".bias"));
    }
    t.gated = bind_gated(files, c);
    if (c.post_norm) t.post_norm = files.norm("post_ffw_norm.weight");
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) noexcept {
    scratch.branch(c.post_norm);
    return GatedBuffers::of(scratch, c.ff_width, c.gated, c.divided);
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    const Branch branch = step.branch(t.post_norm);
    auto f = network(step, t.gated, c.gate, c.sparsity, b);
    f.second_codes = c.second_codes;
    const std::size_t blocks =
        c.divided.all != 0 ? 0 : feed_forward_blocks(f.weights, step.rows(), step.executor().workers());
    const bool codes = step.wants_codes(f.weights.gate, f.weights.up), now = codes && blocks == 0;
    const auto x = c.pre_norm ? step.norm(t.norm, now, t.norm_bias) : step.unnormed(now);
    if (blocks != 0) {
      step.observe(t.gated.gate, x.values);
      step.observe(t.gated.up, x.values);
      run_blocks(step, f, x.values, codes, branch, blocks);
      step.observe(t.gated.down, b.gate);
    } else if (!run_network(step, f, t.gated, b, x, branch.target(), branch.direct(), c.divided)) {
      return false;
    }
    step.join(branch);
    return true;
  }

  // Specific to DenseFeedForward
  /// All of it but the norms, in blocks of tokens (feed_forward_blocks). codes: products read codes of x.
  template <class Step>
  static void run_blocks(Step& step, const FeedForward<typename Step::Formats>& f, MatrixView<const float> x,
                         bool codes, const Branch& branch, std::size_t blocks) noexcept {
    const kernel::Input in{x, step.codes(x.cols())};
    step.executor().run(blocks, [&](std::size_t block, std::size_t) noexcept {
      feed_forward_of_tokens<typename Step::Kernels>(f, in, codes, branch.target(), branch.direct(),
                                                     exec::partition(x.rows(), 8, blocks, block));
    });
  }
  /// The tensors without the norms. A fused one has the gate first.
  [[nodiscard]] static GatedTensors bind_gated(TensorBinder& files, const Config& c) {
    const std::size_t width = files.width();
    const ranks::Part ff = c.ff_part();
    const gguf::TensorInfo* const up = files.find("ffn_up.weight");
    GatedTensors t;
    if (!c.gated) {
      t.gate = files.matrix("ffn_up.weight", ff, width);
    } else if (files.has("ffn_gate.weight") || up == nullptr || up->rows() != 2 * ff.all) {
      t.gate = files.matrix("ffn_gate.weight", ff, width);
      t.up = files.matrix("ffn_up.weight", ff, width);
    } else {  // one tensor: the gate, then what it gates
      t.gate = files.matrix("ffn_up.weight", 2 * ff.all, width, 0, ff);
      t.up = files.matrix("ffn_up.weight", 2 * ff.all, width, ff.all, ff);
    }
    t.down =
        files.matrix("ffn_down.weight", c.divided.all == 0 ? ranks::all_of(width) : files.outputs(), ff.all);
    if (c.bias || c.down_bias) t.down_bias = files.vector("ffn_down.bias", width);
    if (!c.bias) return t;
    t.gate_bias = files.vector(c.gated ? "ffn_gate.bias" : "ffn_up.bias", ff);
    if (c.gated) t.up_bias = files.vector("ffn_up.bias", ff);
    return t;
  }
};
static_assert(Block<DenseFeedForward>);

}  // namespace mica::block
