// SPDX-License-Identifier: Apache-2.0
//
// Llama 2 and 3.x, Mistral, Mixtral: GGUF's `llama` rotates adjacent pairs where the checkpoint rotates
// halves, so the rows of queries and keys change places. Llama 4, text part: its checkpoints already rotate
// adjacent pairs; experts lie transposed, gate and up in one tensor.
#pragma once

#include "mica_tools/convert/families/tables.hpp"

namespace mica::convert::families {

namespace detail {

inline constexpr TensorRule llama_attention[] = {
    {"layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", "q d", {.rows = Order::q_pairs}},
    {"layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias", "q", {.rows = Order::q_pairs}},
    {"layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight", "k d", {.rows = Order::k_pairs}},
    {"layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias", "k", {.rows = Order::k_pairs}},
    {"layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight", "k d"},
    {"layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias", "k"},
    {"layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight", "d q"},
    {"layers.#.self_attn.o_proj.bias", "blk.#.attn_output.bias", "d"},
    {"layers.#.mlp.gate_proj.bias", "blk.#.ffn_gate.bias"},
    {"layers.#.mlp.up_proj.bias", "blk.#.ffn_up.bias"},
    {"layers.#.mlp.down_proj.bias", "blk.#.ffn_down.bias", "d"},
};

inline constexpr TensorRule mixtral_experts[] = {
    {"layers.#.block_sparse_moe.gate.weight", "blk.#.ffn_gate_inp.weight", "e d", {}, Keep::f32},
    {"layers.#.block_sparse_moe.experts.#.w1.weight", "blk.#.ffn_gate_exps.weight", "* d"},
    {"layers.#.block_sparse_moe.experts.#.w3.weight", "blk.#.ffn_up_exps.weight", "* d"},
    {"layers.#.block_sparse_moe.experts.#.w2.weight", "blk.#.ffn_down_exps.weight", "d *"},
};

inline constexpr std::span<const TensorRule> llama_tables[] = {embedding, pre_norms, llama_attention,
                                                               feed_forward, mixtral_experts};

inline void write_llama_keys(const FamilyInput& in, Keys& keys) {
  write_usual_keys(in, in.rope, keys);
  const std::uint64_t window = in.config.count_or("sliding_window", 0);
  if (window > 0) keys.count("attention.sliding_window", window);
}

}  // namespace detail

/// The factors of a model whose scaling is of Llama 3.1's kind.
inline std::vector<ComputedTensor> llama_rope_factors(const FamilyInput& in) {
  if (in.rope.type != "llama3") return {};
  return {{"rope_freqs.weight", llama3_factors(in.config, in.rope, in.sizes)}};
}

/// Experts are those of Mixtral.
inline constexpr Family llama = {.arch = "llama",
                                 .model_types = "llama mistral mixtral",
                                 .tables = detail::llama_tables,
                                 .write_keys = detail::write_llama_keys,
                                 .compute = llama_rope_factors};

namespace detail {

inline constexpr Change transposed_gate = {.rows = Order::first_half, .transposed = true};
inline constexpr Change transposed_up = {.rows = Order::second_half, .transposed = true};

inline constexpr TensorRule llama4_feed_forward[] = {
    {"layers.#.feed_forward.gate_proj.weight", "blk.#.ffn_gate.weight", "* d"},
    {"layers.#.feed_forward.up_proj.weight", "blk.#.ffn_up.weight", "* d"},
    {"layers.#.feed_forward.down_proj.weight", "blk.#.ffn_down.weight", "d *"},
    {"layers.#.feed_forward.router.weight", "blk.#.ffn_gate_inp.weight", "e d", {}, Keep::f32},
    {"layers.#.feed_forward.experts.gate_up_proj", "blk.#.ffn_gate_exps.weight", "e d *", transposed_gate},
    {"layers.#.feed_forward.experts.gate_up_proj", "blk.#.ffn_up_exps.weight", "e d *", transposed_up},
    {"layers.#.feed_forward.experts.down_proj", "blk.#.ffn_down_exps.weight", "e * d", transposed},
    {"layers.#.feed_forward.shared_expert.gate_proj.weight", "blk.#.ffn_gate_shexp.weight", "* d"},
    {"layers.#.feed_forward.shared_expert.up_proj.weight", "blk.#.ffn_up_shexp.weight", "* d"},
    {"layers.#.feed_forward.shared_expert.down_proj.weight", "blk.#.ffn_down_shexp.weight", "d *"},
};

inline constexpr std::span<const TensorRule> llama4_tables[] = {embedding, pre_norms, attention,
                                                                llama4_feed_forward};

inline void write_llama4_keys(const FamilyInput& in, Keys& keys) {
  write_usual_keys(in, in.rope, keys);
  keys.count("feed_forward_length", in.config.count("intermediate_size_mlp"));
  keys.count("expert_feed_forward_length", in.config.count("intermediate_size"));
  keys.count("interleave_moe_layer_step", in.config.count_or("interleave_moe_layer_step", 1));
  if (const auto chunk = in.config.count_or("attention_chunk_size", 0); chunk > 0)
    keys.count("attention.chunk_size", chunk);
}

}  // namespace detail

/// The text part.
inline constexpr Family llama4 = {.arch = "llama4",
                                  .model_types = "llama4_text llama4",
                                  .tables = detail::llama4_tables,
                                  .defaults = {.epsilon = 1e-5, .rope_base = 500000.0},
                                  .write_keys = detail::write_llama4_keys,
                                  .compute = llama_rope_factors};

}  // namespace mica::convert::families
