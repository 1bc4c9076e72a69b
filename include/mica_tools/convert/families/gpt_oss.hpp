// SPDX-License-Identifier: Apache-2.0
//
// gpt-oss: attention sinks, biases everywhere, experts whose gate and up columns alternate, stored transposed
// or, as published, in MXFP4 blocks, which are kept bit for bit.
// Limit: YaRN's `truncate: false` has no key; readers round the ends of its ramp to whole dimensions.
#pragma once

#include "mica_tools/convert/families/tables.hpp"

namespace mica::convert::families {

namespace detail {

inline constexpr Change even_rows = {.rows = Order::even};
inline constexpr Change odd_rows = {.rows = Order::odd};
inline constexpr Change even_columns = {.columns = Order::even};
inline constexpr Change odd_columns = {.columns = Order::odd};
inline constexpr Change transposed_even_rows = {.rows = Order::even, .transposed = true};
inline constexpr Change transposed_odd_rows = {.rows = Order::odd, .transposed = true};

// clang-format off
inline constexpr TensorRule gpt_oss_blocks[] = {
    {"norm.weight", "output_norm.weight", "d"},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", "d"},
    {"layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", "d"},
    {"layers.#.self_attn.sinks", "blk.#.attn_sinks.weight"},
    {"layers.#.mlp.router.weight", "blk.#.ffn_gate_inp.weight", "e d", {}, Keep::f32},
    {"layers.#.mlp.router.bias", "blk.#.ffn_gate_inp.bias", "e"},
    {"layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_gate_exps.weight", "e d *", transposed_even_rows},
    {"layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_up_exps.weight", "e d *", transposed_odd_rows},
    {"layers.#.mlp.experts.gate_up_proj_blocks", "blk.#.ffn_gate_exps.weight", "e * * 16", even_rows},
    {"layers.#.mlp.experts.gate_up_proj_blocks", "blk.#.ffn_up_exps.weight", "e * * 16", odd_rows},
    {"layers.#.mlp.experts.gate_up_proj_bias", "blk.#.ffn_gate_exps.bias", "e *", even_columns, Keep::f32},
    {"layers.#.mlp.experts.gate_up_proj_bias", "blk.#.ffn_up_exps.bias", "e *", odd_columns, Keep::f32},
    {"layers.#.mlp.experts.down_proj", "blk.#.ffn_down_exps.weight", "e * d", transposed},
    {"layers.#.mlp.experts.down_proj_blocks", "blk.#.ffn_down_exps.weight", "e d * 16"},
    {"layers.#.mlp.experts.down_proj_bias", "blk.#.ffn_down_exps.bias", "e d", {}, Keep::f32},
};
// clang-format on

inline constexpr std::span<const TensorRule> gpt_oss_tables[] = {embedding, attention, gpt_oss_blocks};

inline void write_gpt_oss_keys(const FamilyInput& in, Keys& keys) {
  write_usual_keys(in, in.rope, keys);
  keys.count("attention.sliding_window", in.config.count("sliding_window"));
  keys.count("expert_feed_forward_length", in.config.count("intermediate_size"));
}

}  // namespace detail

/// MXFP4 blocks of experts stay MXFP4 whatever type is requested.
inline constexpr Family gpt_oss = {.arch = "gpt-oss",
                                   .model_types = "gpt_oss",
                                   .tables = detail::gpt_oss_tables,
                                   .defaults = {.head_dim = 64, .epsilon = 1e-5, .rope_base = 150000.0},
                                   .write_keys = detail::write_gpt_oss_keys};

}  // namespace mica::convert::families
