// SPDX-License-Identifier: Apache-2.0
//
// Llama 4, text part. Its checkpoints already rotate adjacent pairs; experts lie transposed, gate and up in
// one tensor.
#pragma once

#include "mica_tools/convert/families/llama.hpp"

namespace mica::convert::families {

namespace detail {

inline constexpr TensorRule llama4_feed_forward[] = {
    {"layers.#.feed_forward.gate_proj.weight", "blk.#.ffn_gate.weight", "* d"},
    {"layers.#.feed_forward.up_proj.weight", "blk.#.ffn_up.weight", "* d"},
    {"layers.#.feed_forward.down_proj.weight", "blk.#.ffn_down.weight", "d *"},
    {"layers.#.feed_forward.router.weight", "blk.#.ffn_gate_inp.weight", "e d", {}, Keep::f32},
    {"layers.#.feed_forward.experts.gate_up_proj",
     "blk.#.ffn_gate_exps.weight",
     "e d *",
     {.rows = Order::first_half, .transposed = true}},
    {"layers.#.feed_forward.experts.gate_up_proj",
     "blk.#.ffn_up_exps.weight",
     "e d *",
     {.rows = Order::second_half, .transposed = true}},
    {"layers.#.feed_forward.experts.down_proj", "blk.#.ffn_down_exps.weight", "e * d", {.transposed = true}},
    {"layers.#.feed_forward.shared_expert.gate_proj.weight", "blk.#.ffn_gate_shexp.weight", "* d"},
    {"layers.#.feed_forward.shared_expert.up_proj.weight", "blk.#.ffn_up_shexp.weight", "* d"},
    {"layers.#.feed_forward.shared_expert.down_proj.weight", "blk.#.ffn_down_shexp.weight", "d *"},
};

inline constexpr std::span<const TensorRule> llama4_tables[] = {embedding, pre_norms, attention,
                                                                llama4_feed_forward};

inline void write_llama4_keys(const FamilyInput& in, Keys& keys) {
  write_common_keys(in, keys);
  write_rope(in.config, in.rope, in.sizes, keys);
  keys.count("feed_forward_length", in.config.count("intermediate_size_mlp"));
  keys.count("expert_feed_forward_length", in.config.count("intermediate_size"));
  keys.count("interleave_moe_layer_step", in.config.count_or("interleave_moe_layer_step", 1));
  if (const auto chunk = in.config.count_or("attention_chunk_size", 0); chunk > 0)
    keys.count("attention.chunk_size", chunk);
}

}  // namespace detail

inline constexpr Family llama4 = {.arch = "llama4",
                                  .model_types = "llama4_text llama4",
                                  .tables = detail::llama4_tables,
                                  .defaults = {.epsilon = 1e-5, .rope_base = 500000.0},
                                  .write_keys = detail::write_llama4_keys,
                                  .compute = llama_rope_factors};

}  // namespace mica::convert::families
