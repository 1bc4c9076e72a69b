// SPDX-License-Identifier: Apache-2.0
//
// Gemma 3n, text part: four streams (AltUp), low-rank residuals (LAuReL), embeddings for each layer, and
// early layers whose activations are cut off at a quantile.
#pragma once

#include "mica_tools/convert/families/gemma.hpp"

#include <cmath>

namespace mica::convert::families {

namespace detail {

inline constexpr Change padded = {.padded = true};

inline constexpr TensorRule per_layer_inputs[] = {
    {"per_layer_model_projection.weight", "per_layer_model_proj.weight", "* d", {}, Keep::unquantized},
    {"per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
    {"layers.#.per_layer_input_gate.weight", "blk.#.inp_gate.weight", "* d"},
    {"layers.#.per_layer_projection.weight", "blk.#.proj.weight", "d *"},
    {"layers.#.post_per_layer_input_norm.weight", "blk.#.post_norm.weight", "d"},
};

inline constexpr TensorRule gemma3n_embedding[] = {
    {"embed_tokens.weight", "token_embd.weight", "* d", padded},
    {"embed_tokens_per_layer.weight", "per_layer_token_embd.weight", "* *", padded},
    {"altup_projections.#.weight", "altup_proj.weight", "d d"},
    {"altup_unembed_projections.#.weight", "altup_unembd_proj.weight", "d d"},
};

inline constexpr TensorRule gemma3n_blocks[] = {
    {"layers.#.altup.correct_output_scale", "blk.#.altup_correct_scale.weight", "d"},
    {"layers.#.altup.correction_coefs.weight", "blk.#.altup_correct_coef.weight", "* *", {}, Keep::f32},
    {"layers.#.altup.prediction_coefs.weight", "blk.#.altup_predict_coef.weight", "* *", {}, Keep::f32},
    {"layers.#.altup.modality_router.weight", "blk.#.altup_router.weight", "* d", {}, Keep::f32},
    {"layers.#.altup.router_norm.weight", "blk.#.altup_router_norm.weight", "d"},
    {"layers.#.laurel.linear_left.weight", "blk.#.laurel_l.weight", "* d", {}, Keep::unquantized},
    {"layers.#.laurel.linear_right.weight", "blk.#.laurel_r.weight", "d *", {}, Keep::unquantized},
    {"layers.#.laurel.post_laurel_norm.weight", "blk.#.laurel_post_norm.weight", "d"},
};

inline constexpr std::span<const TensorRule> gemma3n_tables[] = {
    gemma3n_embedding, per_layer_inputs, sandwich_norms, head_norms, attention, feed_forward, gemma3n_blocks};

/// Where the standard normal distribution has a share p of its mass below; by bisection, exact to a float.
inline double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

inline void write_activation_sparsity(const FamilyInput& in, Keys& keys) {
  std::vector<float> scales;
  for (const double share :
       in.config.reals("activation_sparsity_pattern", static_cast<std::size_t>(in.sizes.layers))) {
    MICA_CHECK(share >= 0 && share < 1, file, in.config.where("activation_sparsity_pattern"), " has ", share,
               "; allowed: 0 up to, without, 1");
    scales.push_back(share > 0 ? static_cast<float>(normal_quantile(share)) : 0.0F);
  }
  if (!scales.empty()) keys.reals("activation_sparsity_scale", scales);
}

inline void write_gemma3n_keys(const FamilyInput& in, Keys& keys) {
  const std::uint64_t streams = in.config.count_or("altup_num_inputs", 4);
  MICA_CHECK(streams == 4, unsupported, in.config.where("altup_num_inputs"), " is ", streams,
             "; supported: 4");
  Rope rope = in.rope;
  if (!rope.window_base) rope.window_base = 10000.0;
  write_common_keys(in, keys);
  write_rope(in.config, rope, in.sizes, keys);
  keys.count("attention.sliding_window", in.config.count("sliding_window"));
  keys.flags("attention.sliding_window_pattern", windowed_layers(in, 5));
  keys.count("attention.shared_kv_layers", in.config.count_or("num_kv_shared_layers", 15));
  keys.count("altup.num_inputs", streams);
  keys.count("altup.active_idx", in.config.count_or("altup_active_idx", 0));
  keys.count("embedding_length_per_layer_input", in.config.count("hidden_size_per_layer_input"));
  write_activation_sparsity(in, keys);
  write_soft_cap(in, "final_logit_softcapping", "final_logit_softcapping", keys);
}

}  // namespace detail

inline constexpr Family gemma3n = {
    .arch = "gemma3n",
    .model_types = "gemma3n_text gemma3n",
    .tables = detail::gemma3n_tables,
    .defaults =
        {.heads = 8, .kv_heads = 2, .head_dim = 256, .context = 32768, .rope_base = 1000000.0, .tied = true},
    .write_keys = detail::write_gemma3n_keys,
    .padded = true};

}  // namespace mica::convert::families
