// SPDX-License-Identifier: Apache-2.0
//
// Gemma 4, text part: two head sizes, windows on most layers, layers that share keys and values, optional
// embeddings for each layer, optional experts beside the dense feed-forward. Norm weights are whole.
#pragma once

#include "mica_tools/convert/families/gemma3n.hpp"

namespace mica::convert::families {

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
  if (!rope.window_base) rope.window_base = 10000.0;
  write_common_keys(in, keys);
  write_rope(in.config, rope, in.sizes, keys);
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
  write_soft_cap(in, "final_logit_softcapping", "final_logit_softcapping", keys);
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

inline constexpr Family gemma4 = {
    .arch = "gemma4",
    .model_types = "gemma4_text gemma4",
    .tables = detail::gemma4_tables,
    .defaults = {.head_dim = 256, .context = 131072, .rope_base = 1000000.0, .tied = true},
    .write_keys = detail::write_gemma4_keys,
    .compute = detail::gemma4_rope_factors,
    .vocabulary = "gemma4"};

}  // namespace mica::convert::families
