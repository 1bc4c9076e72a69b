// SPDX-License-Identifier: Apache-2.0
//
// Gemma 1 to 3, and what later Gemma families share with them. Norm weights have their 1 added in the file.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

namespace mica::arch {

/// Gemma 1: GeGLU, embeddings multiplied by sqrt(width).
[[nodiscard]] inline Config read_gemma(const KeyReader& keys, std::string_view arch) {
  Config config = read_common(keys, arch, kernel::RopePairs::halves);
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  config.logit_softcap = static_cast<float>(keys.positive_or("final_logit_softcapping", 0.0));
  for (Layer& layer : config.layers) layer.get<block::DenseFeedForward>().gate = kernel::Gate::gelu;
  return config;
}

/// The layers with a window: by the file, or all but every `interval`-th.
[[nodiscard]] inline std::vector<bool> read_windows(const KeyReader& keys, std::size_t layers,
                                                    std::size_t interval) {
  std::vector<bool> windows = keys.pattern("attention.sliding_window_pattern", layers);
  if (!windows.empty()) return windows;
  windows.assign(layers, false);
  for (std::size_t i = 0; i < layers; ++i) windows[i] = (i + 1) % interval != 0;
  return windows;
}

/// The second rope, of layers with a window: a base of its own, no scaling.
inline void add_window_rope(const KeyReader& keys, Config& config, std::size_t dims) {
  RopeConfig rope;
  rope.pairs = kernel::RopePairs::halves;
  rope.dims = dims;
  rope.base = keys.positive_or("rope.freq_base_swa", 10000.0);
  config.ropes.push_back(rope);
}

/// Norms of the outputs of both blocks of a layer.
inline void add_post_norms(Layer& layer) {
  layer.get<block::Attention>().post_norm = true;
  layer.get<block::DenseFeedForward>().post_norm = true;
}

/// The last `attention.shared_kv_layers` layers read the keys and values of the last layer before them of
/// their kind, with a window or without.
inline void share_keys_and_values(const KeyReader& keys, Config& config, const std::vector<bool>& windows) {
  const std::size_t n = config.layers.size();
  const std::size_t own = n - keys.count_or("attention.shared_kv_layers", 0, n - 1, 0);
  for (std::size_t i = own; i < n; ++i) {
    std::size_t source = own;
    while (source > 0 && windows[source - 1] != windows[i]) --source;
    MICA_CHECK(source > 0, file, keys.file(), ": key '", keys.key("attention.shared_kv_layers"), "' leaves ",
               own, " layers with keys of their own, none of the kind that layer ", i, " reads");
    config.layers[i].get<block::Attention>().kv_source = source - 1;
  }
}

/// Scores of the largest model of Gemma 2 and 3 are scaled by the width per head, those of the others by
/// head_dim.
[[nodiscard]] inline float gemma_attention_scale(const Config& config,
                                                 const block::AttentionConfig& attention,
                                                 std::size_t layers_of_largest) {
  const std::size_t per_head =
      config.layers.size() == layers_of_largest ? config.width / attention.heads : attention.head_dim;
  return 1.0f / std::sqrt(static_cast<float>(per_head));
}

/// Gemma 3: norms on both sides of both blocks and on queries and keys; in all but every `interval`-th layer
/// a window and a rope of its own.
[[nodiscard]] inline Config read_gemma3(const KeyReader& keys, std::string_view arch, std::size_t interval) {
  Config config = read_gemma(keys, arch);
  const std::size_t window = keys.count_or("attention.sliding_window", 0, max_context, 0);
  const std::vector<bool> windows = read_windows(keys, config.layers.size(), interval);
  add_window_rope(keys, config, config.ropes.front().dims);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    add_post_norms(config.layers[i]);
    block::AttentionConfig& attention = config.layers[i].get<block::Attention>();
    attention.head_norm = block::HeadNorm::weighted;
    attention.attention_scale = gemma_attention_scale(config, attention, 62);
    if (window == 0 || !windows[i]) continue;
    attention.look_through_window(window);
    attention.rope = 1;
  }
  return config;
}

/// GeGLU, scaled embeddings, a tied head.
struct Gemma {
  // Required by Arch
  static constexpr std::string_view name = "gemma";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_gemma(KeyReader(document, name), name);
  }
};

/// Norms on both sides of both blocks, soft caps on scores and logits, a window in every other layer.
struct Gemma2 {
  // Required by Arch
  static constexpr std::string_view name = "gemma2";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_gemma(keys, name);
    config.logit_softcap = static_cast<float>(keys.positive_or("final_logit_softcapping", 30.0));
    const std::size_t window = keys.count("attention.sliding_window", 1, max_context);
    const std::vector<bool> windows = read_windows(keys, config.layers.size(), 2);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      add_post_norms(config.layers[i]);
      block::AttentionConfig& attention = config.layers[i].get<block::Attention>();
      attention.attention_softcap = static_cast<float>(keys.positive_or("attn_logit_softcapping", 50.0));
      attention.attention_scale = gemma_attention_scale(config, attention, 46);
      if (windows[i]) attention.look_through_window(window);
    }
    return config;
  }
};

/// Norms on both sides of both blocks and on queries and keys; five layers with a window and a rope of their
/// own to one without.
struct Gemma3 {
  // Required by Arch
  static constexpr std::string_view name = "gemma3";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_gemma3(KeyReader(document, name), name, 6);
  }
};

static_assert(Arch<Gemma> && Arch<Gemma2> && Arch<Gemma3>);

}  // namespace mica::arch
