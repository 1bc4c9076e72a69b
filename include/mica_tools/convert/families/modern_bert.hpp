// SPDX-License-Identifier: Apache-2.0
//
// ModernBERT: fused projections, and two layers in three with a window and a rope of their own. Rerankers
// keep their head: its dense layer becomes cls, its norm cls.norm, the classifier cls.output.
#pragma once

#include "mica_tools/convert/families/bert.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert::families {

namespace detail {

/// Of mlp.Wi the gate is first.
inline constexpr TensorRule modern_bert_blocks[] = {
    {"embeddings.tok_embeddings.weight", "token_embd.weight", "* d"},
    {"embeddings.norm.weight", "token_embd_norm.weight", "d"},
    {"layers.#.attn_norm.weight", "blk.#.attn_norm.weight", "d"},
    {"layers.#.attn.Wqkv.weight", "blk.#.attn_qkv.weight", "* d"},
    {"layers.#.attn.Wo.weight", "blk.#.attn_output.weight", "d q"},
    {"layers.#.mlp_norm.weight", "blk.#.ffn_norm.weight", "d"},
    {"layers.#.mlp.Wi.weight", "blk.#.ffn_up.weight", "* d"},
    {"layers.#.mlp.Wo.weight", "blk.#.ffn_down.weight", "d *"},
    {"final_norm.weight", "output_norm.weight", "d"},
};

inline constexpr TensorRule modern_bert_classifier[] = {
    {"head.dense.weight", "cls.weight", "d d"},   {"head.dense.bias", "cls.bias", "d"},
    {"head.norm.weight", "cls.norm.weight", "d"}, {"classifier.weight", "cls.output.weight", "* d"},
    {"classifier.bias", "cls.output.bias"},
};

inline constexpr std::span<const TensorRule> modern_bert_tables[] = {modern_bert_blocks,
                                                                     modern_bert_classifier};

inline constexpr KeyName modern_bert_names[] = {{"rms_norm_eps", "norm_eps"},
                                                {"rope_theta", "global_rope_theta"},
                                                {"rope_local_base_freq", "local_rope_theta"}};

[[nodiscard]] inline bool skips_of_modern_bert(const FamilyInput& in, std::string_view pattern) {
  return (pattern.starts_with("head.") && !classifies(in.config)) || pattern.starts_with("decoder.") ||
         skips_of_bert(in, pattern);
}

/// The layers without a window are every n-th, from the first one on.
inline std::uint64_t modern_bert_period(const FamilyInput& in) {
  const std::uint64_t period = in.config.count_or("global_attn_every_n_layers", 3);
  MICA_CHECK(period > 0, file, in.config.where("global_attn_every_n_layers"), " is 0; allowed: above 0");
  const std::vector<bool> windows = windowed_layers(in, 0);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    MICA_CHECK(windows[i] == (i % period != 0), unsupported, in.config.where("layer_types"), ": layer ", i,
               " is not as global_attn_every_n_layers says, which is ", period);
  }
  return period;
}

inline void write_modern_bert_keys(const FamilyInput& in, Keys& keys) {
  require_text(in, "hidden_activation", "gelu");
  if (classifies(in.config)) {
    require_text(in, "classifier_pooling", "mean");
    require_text(in, "classifier_activation", "gelu");
  }
  write_encoder_keys(in, in.sizes.context, keys);
  keys.count("vocab_size", in.sizes.vocabulary);
  keys.real("rope.freq_base", in.rope.base);
  keys.real("rope.freq_base_swa", in.rope.window_base.value_or(10000.0));
  keys.text("rope.scaling.type", "none");
  keys.count("attention.sliding_window", in.config.count_or("local_attention", 128));
  keys.count("attention.sliding_window_pattern", modern_bert_period(in));
}

}  // namespace detail

/// A reranker is supported with the mean as its pooling.
inline constexpr Family modern_bert = {.arch = "modern-bert",
                                       .model_types = "modernbert",
                                       .tables = detail::modern_bert_tables,
                                       .defaults = {.context = 8192, .epsilon = 1e-5, .rope_base = 160000.0},
                                       .write_keys = detail::write_modern_bert_keys,
                                       .names = detail::modern_bert_names,
                                       .skips = detail::skips_of_modern_bert};

}  // namespace mica::convert::families
