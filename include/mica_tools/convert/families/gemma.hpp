// SPDX-License-Identifier: Apache-2.0
//
//   Gemma 1 to 3  norm weights are stored minus one; GGUF files have the whole weight
//   Gemma 3n      text part: four streams (AltUp), low-rank residuals (LAuReL), embeddings for each layer,
//                 and early layers whose activations are cut off at a quantile
//   Gemma 4       text part: two head sizes, windows on most layers, layers that share keys and values,
//                 optional embeddings for each layer, optional experts beside the dense feed-forward
#pragma once

#include "mica_tools/convert/families/tables.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  write_usual_keys(in, in.rope, keys, "gelu");
}

/// From Gemma 3 on layers with a window have a base of their own.
inline void write_windowed_keys(const FamilyInput& in, Rope rope, Keys& keys) {
  if (!rope.window_base) rope.window_base = 10000.0;
  write_usual_keys(in, rope, keys, "gelu");
}

inline void write_soft_cap(const FamilyInput& in, std::string_view key, Keys& keys) {
  if (in.config.has(key)) keys.real(key, in.config.real(key));
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
  write_windowed_keys(in, in.rope, keys);
  write_query_scale(in, keys);
  write_gemma3_windows(in, keys);
  write_soft_cap(in, "final_logit_softcapping", keys);
  write_soft_cap(in, "attn_logit_softcapping", keys);
}

}  // namespace detail

/// 1 is added to norm weights, which the checkpoint leaves out; also in Gemma 2 and 3.
inline constexpr Family gemma = {.arch = "gemma",
                                 .model_types = "gemma",
                                 .tables = detail::gemma_tables,
                                 .defaults = {.head_dim = 256, .context = 8192, .tied = true},
                                 .write_keys = detail::write_gemma_keys};

/// Window and soft caps are those of the published models where config.json has none.
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
  write_windowed_keys(in, in.rope, keys);
  keys.count("attention.sliding_window", in.config.count("sliding_window"));
  keys.flags("attention.sliding_window_pattern", windowed_layers(in, 5));
  keys.count("attention.shared_kv_layers", in.config.count_or("num_kv_shared_layers", 15));
  keys.count("altup.num_inputs", streams);
  keys.count("altup.active_idx", in.config.count_or("altup_active_idx", 0));
  keys.count("embedding_length_per_layer_input", in.config.count("hidden_size_per_layer_input"));
  write_activation_sparsity(in, keys);
  write_soft_cap(in, "final_logit_softcapping", keys);
}

}  // namespace detail

/// The text part. A model with other than four streams is refused.
inline constexpr Family gemma3n = {
    .arch = "gemma3n",
    .model_types = "gemma3n_text gemma3n",
    .tables = detail::gemma3n_tables,
    .defaults =
        {.heads = 8, .kv_heads = 2, .head_dim = 256, .context = 32768, .rope_base = 1000000.0, .tied = true},
    .write_keys = detail::write_gemma3n_keys,
    .padded = true};

namespace detail {

inline constexpr TensorRule gemma4_blocks[] = {
    {"embed_tokens_per_layer.weight", "per_layer_token_embd.weight", "* *"},
    {"layers.#.layer_scalar", "blk.#.layer_output_scale.weight", "1"},
    {"layers.#.post_feedforward_layernorm_1.weight", "blk.#.post_ffw_norm_1.weight", "d"},
    {"layers.#.pre_feedforward_layernorm_2.weight", "blk.#.pre_ffw_norm_2.weight", "d"},
    {"layers.#.post_feedforward_layernorm_2.weight", "blk.#.post_ffw_norm_2.weight", "d"},
    {"layers.#.router.proj.weight", "blk.#.ffn_gate_inp.weight", "e d", {}, Keep::f32},
    {"layers.#.router.scale", "blk.#.ffn_gate_inp.scale", "d"},
    {"layers.#.router.per_expert_scale", "blk.#.ffn_down_exps.scale", "e"},
    {"layers.#.experts.gate_up_proj", "blk.#.ffn_gate_up_exps.weight", "e * d"},
    {"layers.#.experts.down_proj", "blk.#.ffn_down_exps.weight", "e d *"},
};

inline constexpr std::span<const TensorRule> gemma4_tables[] = {
    embedding, per_layer_inputs, sandwich_norms, head_norms, attention, feed_forward, gemma4_blocks};

/// A number of full-attention layers: under its own key, else in the newer list of exceptions by layer, else
/// as elsewhere.
inline std::uint64_t full_layer_count(const FamilyInput& in, std::string_view key, std::string_view usual,
                                      std::uint64_t otherwise) {
  if (in.config.has(key)) return in.config.count(key);
  const Json* const exceptions = in.config.find("per_layer_config");
  const auto windows = windowed_layers(in, 6);
  for (std::size_t i = 0; exceptions != nullptr && i < windows.size(); ++i) {
    const Json* const layer = windows[i] ? nullptr : find_member(*exceptions, std::to_string(i));
    const Json* const found = find_member(layer, usual);
    if (found != nullptr) return in.config.as_count(*found, usual);
  }
  return otherwise;
}

inline std::uint64_t gemma4_full_head_dim(const FamilyInput& in) {
  return full_layer_count(in, "global_head_dim", "head_dim", in.sizes.head_dim);
}

inline std::uint64_t gemma4_shared_layers(const FamilyInput& in) {
  const std::uint64_t shared = in.config.count_or("num_kv_shared_layers", 0);
  MICA_CHECK(shared <= in.sizes.layers, file, in.config.where("num_kv_shared_layers"), " is ", shared,
             "; there are ", in.sizes.layers, " layers");
  return shared;
}

/// KV heads and feed-forward widths, which differ between layers.
inline void write_gemma4_layers(const FamilyInput& in, Keys& keys) {
  const auto windows = windowed_layers(in, 6);
  const std::uint64_t full_kv =
      full_layer_count(in, "num_global_key_value_heads", "num_key_value_heads", in.sizes.kv_heads);
  std::vector<std::uint64_t> kv_heads;
  for (const bool window : windows) kv_heads.push_back(window ? in.sizes.kv_heads : full_kv);
  keys.counts("attention.head_count_kv", kv_heads);
  keys.flags("attention.sliding_window_pattern", windows);
  const std::uint64_t shared = gemma4_shared_layers(in);
  keys.count("attention.shared_kv_layers", shared);
  if (!in.config.flag_or("use_double_wide_mlp", false)) return;
  std::vector<std::uint64_t> widths(static_cast<std::size_t>(in.sizes.layers),
                                    in.config.count("intermediate_size"));
  for (std::size_t i = widths.size() - static_cast<std::size_t>(shared); i < widths.size(); ++i)
    widths[i] *= 2;
  keys.counts("feed_forward_length", widths);
}

inline void write_gemma4_keys(const FamilyInput& in, Keys& keys) {
  const std::uint64_t full = gemma4_full_head_dim(in);
  Rope rope = in.rope;
  rope.partial = 1.0;  // the factors leave dimensions out
  write_windowed_keys(in, rope, keys);
  write_expert_widths(in, keys);
  write_gemma4_layers(in, keys);
  keys.count("attention.key_length", full);
  keys.count("attention.value_length", full);
  keys.count("attention.key_length_swa", in.sizes.head_dim);
  keys.count("attention.value_length_swa", in.sizes.head_dim);
  keys.count("rope.dimension_count", full);
  keys.count("rope.dimension_count_swa", in.sizes.head_dim);
  keys.count("attention.sliding_window", in.config.count("sliding_window"));
  keys.count("embedding_length_per_layer_input", in.config.count_or("hidden_size_per_layer_input", 0));
  write_soft_cap(in, "final_logit_softcapping", keys);
}

/// Proportional rotation of full layers: the first share of the pairs turns, the others get a factor that
/// stops them.
inline std::vector<ComputedTensor> gemma4_rope_factors(const FamilyInput& in) {
  if (in.rope.type != "proportional") return {};
  const auto pairs = static_cast<std::size_t>(gemma4_full_head_dim(in) / 2);
  const auto turning = static_cast<std::size_t>(static_cast<double>(pairs) * in.rope.partial);
  std::vector<float> factors(pairs, 1e30F);
  std::fill_n(factors.begin(), turning, 1.0F);
  return {{"rope_freqs.weight", std::move(factors)}};
}

}  // namespace detail

/// The text part. A proportional rope becomes the factors of layers without a window.
inline constexpr Family gemma4 = {
    .arch = "gemma4",
    .model_types = "gemma4_text gemma4",
    .tables = detail::gemma4_tables,
    .defaults = {.head_dim = 256, .context = 131072, .rope_base = 1000000.0, .tied = true},
    .write_keys = detail::write_gemma4_keys,
    .compute = detail::gemma4_rope_factors,
    .vocabulary = "gemma4"};

}  // namespace mica::convert::families
