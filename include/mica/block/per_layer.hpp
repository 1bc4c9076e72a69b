// SPDX-License-Identifier: Apache-2.0
//
// Per-layer embeddings (Gemma 3n, 4): each layer i has its own embedding e_i of a token, of p numbers.
// LayerInputs computes those of all layers when a step begins, from the token and from x, the residual stream
// at that point. PerLayerEmbedding adds that of its layer:
//
//   e_i       = (RMSNorm(P_i x / sqrt(width)) * norm + sqrt(p) E_i[token]) / sqrt(2)
//   residual += norm(proj(act(gate(residual)) * e_i))
//
// With several residual streams (block/altup.hpp) the gate reads the first one after a scale, and the result
// is added to all streams except the first.
#pragma once

#include "mica/block/concept.hpp"
#include "mica/block/detail/streams.hpp"
#include "mica/block/norm.hpp"
#include "mica/tensor/any_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace mica::block {

/// Begins a step: stands in arch::Config::begin.
struct LayerInputs : Stateless {
  static constexpr char key = 0;  // of the buffer, (n, layers * width)

  // Required by Block
  static constexpr std::string_view name = "layer inputs";
  struct Config {
    std::size_t width = 0;  // p: of the embedding of one layer
    std::size_t layers = 0;
  };
  struct Tensors {
    TensorRef embedding;  // (n_vocab, layers * width)
    TensorRef proj;       // (layers * width, width of the model)
    TensorRef norm;       // (width)
  };
  struct Buffers {
    MatrixView<float> all;  // (n, layers * width)
  };
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    const gguf::TensorInfo* const table = files.find("token_embd.weight");
    const std::size_t all = c.layers * c.width, vocabulary = table == nullptr ? 0 : table->rows();
    Tensors t;
    t.embedding = files.rows("per_layer_token_embd.weight", vocabulary, all);
    t.proj = files.matrix("per_layer_model_proj.weight", all, files.width());
    t.norm = files.vector("per_layer_proj_norm.weight", c.width);
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) {
    return {scratch.kept(&key, c.layers * c.width)};
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    using Kernels = typename Step::Kernels;
    const MatrixView<float> all = b.all, each(all.data(), all.rows() * c.layers, c.width);
    step.project(step.residual(), t.proj, all, false);
    step.scale(all, 1.0f / std::sqrt(static_cast<float>(step.width())));
    const float* const weight = step.vector(t.norm);
    const float embedding_scale = std::sqrt(static_cast<float>(c.width));
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      const std::size_t first = row * c.layers, last = first + c.layers;
      Kernels::rms_norm(kernel::RmsNormArgs{each, weight, step.epsilon(), each, first, last});
      add_row(step.matrix(t.embedding), step.token_of(row), embedding_scale, all[row]);
      Kernels::scale(kernel::ScaleArgs{all, 1.0f / std::sqrt(2.0f), row, row + 1});
    });
    return true;
  }

 private:
  /// to += scale * a row of w.
  template <class List>
  static void add_row(const tensor::AnyMatrix<List>& w, std::size_t row, float scale,
                      std::span<float> to) noexcept {
    w.visit([&](auto m) {
      using F = typename decltype(m)::Format;
      if constexpr (!tensor::is_rounded<F>) {  // tables of rows stay as they are in the file
        float values[F::block_size];
        for (std::size_t i = 0; i < to.size(); ++i) {
          if (i % F::block_size == 0) F::decode(m.block(row, i / F::block_size), values);
          to[i] = std::fma(values[i % F::block_size], scale, to[i]);
        }
      }
    });
  }
};
static_assert(Block<LayerInputs>);

/// The branch of a layer that adds its per-layer embedding.
struct PerLayerEmbedding : Stateless {
  // Required by Block
  static constexpr std::string_view name = "per-layer embedding";
  struct Config {
    LayerInputs::Config inputs;
    std::size_t layer = 0;
    kernel::Gate gate = kernel::Gate::gelu;
    std::size_t streams = 1;  // residual streams of a token
  };
  struct Tensors {
    TensorRef gate;   // (p, width)
    TensorRef proj;   // (width, p)
    TensorRef norm;   // (width)
    TensorRef scale;  // (width): of what the gate reads, with several streams
  };
  struct Buffers {
    MatrixView<float> own;      // (n, p): the embedding
    MatrixView<float> gate;     // (n, p)
    MatrixView<float> streams;  // (n, streams * width), with several
  };
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    Tensors t;
    t.gate = files.matrix("inp_gate.weight", c.inputs.width, files.width());
    t.proj = files.matrix("proj.weight", files.width(), c.inputs.width);
    t.norm = files.norm("post_norm.weight");
    if (c.streams > 1) t.scale = files.norm("altup_correct_scale.weight");
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) {
    scratch.input(c.inputs.width);
    scratch.branch(true);
    Buffers b;
    b.gate = scratch.rows(c.inputs.width);
    const auto all = scratch.kept(&LayerInputs::key, c.inputs.layers * c.inputs.width);
    if (all.rows() != 0) b.own = all.cols(c.layer * c.inputs.width, c.inputs.width);
    if (c.streams == 1) return b;
    b.streams = scratch.kept(&streams_key, c.streams * scratch.sizes().width);
    return b;
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    using Kernels = typename Step::Kernels;
    const bool scaled = c.streams > 1;
    if (scaled) scale_by(step, step.vector(t.scale), step.input());
    step.project(scaled ? step.input() : step.residual(), t.gate, b.gate, false);
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      Kernels::gated(kernel::GatedArgs{c.gate, b.gate, b.own, b.gate, row, row + 1});
    });
    const Branch branch = step.branch(t.norm);
    step.project(b.gate, t.proj, branch.target(), branch.direct());
    if (scaled) {
      join_streams<Kernels>(step.executor(), branch, b.streams);
    } else {
      step.join(branch);
    }
    return true;
  }

 private:
  template <class Step>
  static void scale_by(Step& step, const float* factors, MatrixView<float> out) noexcept {
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      const auto x = step.residual()[row];
      std::transform(x.begin(), x.end(), factors, out[row].begin(), std::multiplies<>());
    });
  }
};
static_assert(Block<PerLayerEmbedding>);

}  // namespace mica::block
