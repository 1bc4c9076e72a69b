// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a model: a family descriptor makes it from a file's metadata, and blocks read it.
// Layers differ in their blocks and in the blocks' numbers.
#pragma once

#include "mica/arch/pooling.hpp"
#include "mica/block/layer.hpp"
#include "mica/block/norm_kind.hpp"
#include "mica/block/rope.hpp"
#include "mica/block/state_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mica::arch {

using block::Layer;
using block::RopeConfig;

/// The function behind a DenseLayer.
enum class Activation : std::uint8_t { none, tanh, gelu };

/// y = act(x W^T + bias) of pooled rows, with a LayerNorm behind it if it has one.
struct DenseLayer {
  std::string name;       // of tensors, "cls": cls.weight, and cls.bias if the file has it
  std::size_t width = 0;  // of y
  Activation activation = Activation::none;
  std::string norm = {};  // name of its tensors; empty: none
};

/// A whole model.
struct Config {
  std::string arch;             // general.architecture
  std::string name;             // general.name, for people
  std::size_t n_ctx_train = 0;  // tokens
  std::size_t n_ctx_max = 0;    // tokens that can be told apart by their position; 0: any number
  std::size_t width = 0;        // embedding_length
  std::size_t n_vocab = 0;      // rows of the output matrix
  float norm_epsilon = 0;       // added to the mean square, or the variance, by norms
  block::NormKind norm = block::NormKind::rms;  // of the residual stream
  std::vector<RopeConfig> ropes;                // AttentionConfig::rope chooses one
  Layer begin;                                  // blocks that run once, before the layers
  std::vector<Layer> layers;                    // in the order in which they run
  Layer end;                                    // blocks that run once, after them
  std::size_t first_layer = 0;                  // number of layers[0] in the names of tensors
  bool mtp = false;                             // a head for multi-token prediction (arch/mtp.hpp)
  bool encodes = false;     // attention in both directions and no logits: the model embeds texts
  bool output_norm = true;  // behind the layers

  // Embeddings of texts (runtime/embedder.hpp)
  Pooling pooling = Pooling::none;     // how the states of a text become one row
  std::vector<DenseLayer> dense = {};  // that row goes through them
  bool ranks = false;                  // that gives scores of a pair of texts, not an embedding
  bool probabilities = false;          // scores go through a softmax

  float embedding_scale = 1;  // of token embeddings
  float residual_scale = 1;   // of what a block adds to the residual stream
  float logit_scale = 1;      // of logits, before their soft cap
  float logit_softcap = 0;    // 0: none

  /// The maximum of `of` over the layers with block B.
  template <class B, class Of>
  [[nodiscard]] std::size_t max_of(Of&& of) const {
    std::size_t max = 0;
    for (const Layer& layer : layers) {
      if (const auto* const block = layer.find<B>()) max = std::max<std::size_t>(max, of(*block));
    }
    return max;
  }
  /// The state of a sequence for the blocks.
  [[nodiscard]] block::StatePlan state() const {
    block::StatePlan state;
    const auto plan = [&](const Layer& layer, std::size_t i) {
      for (const Layer::Entry& block : layer.blocks()) {
        state.place(i, [&](block::StatePlan& s) { block.plan(s); });
      }
    };
    plan(begin, 0);
    for (std::size_t i = 0; i < layers.size(); ++i) plan(layers[i], i);
    plan(end, layers.size());
    return state;
  }
  /// Whether a sequence has a recurrent state: a rewind may end at a checkpoint then. Cost: that of state().
  [[nodiscard]] bool recurrent() const { return state().floats() != 0; }
};

}  // namespace mica::arch
