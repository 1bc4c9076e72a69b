// SPDX-License-Identifier: Apache-2.0
//
// Gemma 1, 2 and 3. Their checkpoints store norm weights minus one; GGUF files have the whole weight.
#pragma once

#include "mica_tools/convert/families/tables.hpp"

#include <cmath>

namespace mica::convert::families {

namespace detail {

inline constexpr TensorRule gemma_norms[] = {
    {"norm.weight", "output_norm.weight", "d", norm_plus_one},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", "d", norm_plus_one},
    {"layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", "d", norm_plus_one},
};

inline constexpr TensorRule gemma2_norms[] = {
    {"norm.weight", "output_norm.weight", "d", norm_plus_one},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", "d", norm_plus_one},
    {"layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", "d", norm_plus_one},
    {"layers.#.pre_feedforward_layernorm.weight", "blk.#.ffn_norm.weight", "d", norm_plus_one},
    {"layers.#.post_feedforward_layernorm.weight", "blk.#.post_ffw_norm.weight", "d", norm_plus_one},
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", "h", norm_plus_one},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", "h", norm_plus_one},
};

inline constexpr std::span<const TensorRule> gemma_tables[] = {embedding, gemma_norms, attention,
                                                               feed_forward};
inline constexpr std::span<const TensorRule> gemma2_tables[] = {embedding, gemma2_norms, attention,
                                                                feed_forward};

/// The scale of queries, where it is not the usual 1 / sqrt(head_dim).
inline void write_query_scale(const FamilyInput& in, Keys& keys) {
  const double scalar = in.config.real_or("query_pre_attn_scalar", static_cast<double>(in.sizes.head_dim));
  MICA_CHECK(scalar > 0, file, in.config.where("query_pre_attn_scalar"), " is ", scalar,
             "; allowed: above 0");
  if (scalar != static_cast<double>(in.sizes.head_dim)) keys.real("attention.scale", 1 / std::sqrt(scalar));
}

inline void write_gemma_keys(const FamilyInput& in, Keys& keys) {
  write_common_keys(in, keys);
  write_rope(in.config, in.rope, in.sizes, keys);
}

inline void write_soft_cap(const FamilyInput& in, std::string_view theirs, std::string_view ours,
                           Keys& keys) {
  if (in.config.has(theirs)) keys.real(ours, in.config.real(theirs));
}

inline void write_gemma2_keys(const FamilyInput& in, Keys& keys) {
  write_gemma_keys(in, keys);
  write_query_scale(in, keys);
  keys.count("attention.sliding_window", in.config.count_or("sliding_window", 4096));
  keys.real("attn_logit_softcapping", in.config.real_or("attn_logit_softcapping", 50.0));
  keys.real("final_logit_softcapping", in.config.real_or("final_logit_softcapping", 30.0));
}

/// Windows of Gemma 3: five of six layers unless the config says otherwise.
inline void write_gemma3_windows(const FamilyInput& in, Keys& keys) {
  keys.count("attention.sliding_window", in.config.count("sliding_window"));
  const std::uint64_t given = in.config.count_or("sliding_window_pattern", 6);
  const auto layers = windowed_layers(in, given);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] != ((i + 1) % 6 != 0)) return keys.flags("attention.sliding_window_pattern", layers);
  }
}

inline void write_gemma3_keys(const FamilyInput& in, Keys& keys) {
  Rope rope = in.rope;
  if (!rope.window_base) rope.window_base = 10000.0;
  write_common_keys(in, keys);
  write_rope(in.config, rope, in.sizes, keys);
  write_query_scale(in, keys);
  write_gemma3_windows(in, keys);
  write_soft_cap(in, "final_logit_softcapping", "final_logit_softcapping", keys);
  write_soft_cap(in, "attn_logit_softcapping", "attn_logit_softcapping", keys);
}

}  // namespace detail

inline constexpr Family gemma = {.arch = "gemma",
                                 .model_types = "gemma",
                                 .tables = detail::gemma_tables,
                                 .defaults = {.head_dim = 256, .context = 8192, .tied = true},
                                 .write_keys = detail::write_gemma_keys};

inline constexpr Family gemma2 = {.arch = "gemma2",
                                  .model_types = "gemma2",
                                  .tables = detail::gemma2_tables,
                                  .defaults = {.head_dim = 256, .context = 8192, .tied = true},
                                  .write_keys = detail::write_gemma2_keys};

/// The published 4B leaves out most numbers.
inline constexpr Family gemma3 = {
    .arch = "gemma3",
    .model_types = "gemma3_text gemma3",
    .tables = detail::gemma2_tables,
    .defaults =
        {.heads = 8, .kv_heads = 4, .head_dim = 256, .context = 131072, .rope_base = 1000000.0, .tied = true},
    .write_keys = detail::write_gemma3_keys};

}  // namespace mica::convert::families
