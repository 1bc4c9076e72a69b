// SPDX-License-Identifier: Apache-2.0
//
// Tables of tensors that families share.
#pragma once

#include "mica_tools/convert/family.hpp"

namespace mica::convert::families {

/// Changes that several tables name.
inline constexpr Change norm_plus_one = {.function = Function::plus_one};
inline constexpr Change first_half = {.rows = Order::first_half};
inline constexpr Change second_half = {.rows = Order::second_half};
inline constexpr Change transposed = {.transposed = true};

/// The output matrix is left out where it is the embedding.
inline constexpr TensorRule embedding[] = {
    {"embed_tokens.weight", "token_embd.weight", "* d"},
    {"lm_head.weight", "output.weight", "* d"},
};

/// Norms before the blocks.
inline constexpr TensorRule pre_norms[] = {
    {"norm.weight", "output_norm.weight", "d"},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", "d"},
    {"layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", "d"},
};

/// Gemma 2 and its heirs: norms before and after both blocks.
inline constexpr TensorRule sandwich_norms[] = {
    {"norm.weight", "output_norm.weight", "d"},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", "d"},
    {"layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", "d"},
    {"layers.#.pre_feedforward_layernorm.weight", "blk.#.ffn_norm.weight", "d"},
    {"layers.#.post_feedforward_layernorm.weight", "blk.#.post_ffw_norm.weight", "d"},
};

/// Rotation of halves: as stored. Widths are left open, since layers may differ.
inline constexpr TensorRule attention[] = {
    {"layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", "* d"},
    {"layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias"},
    {"layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight", "* d"},
    {"layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias"},
    {"layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight", "* d"},
    {"layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias"},
    {"layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight", "d *"},
    {"layers.#.self_attn.o_proj.bias", "blk.#.attn_output.bias", "d"},
};

/// Of queries and keys, one for all heads.
inline constexpr TensorRule head_norms[] = {
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight"},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight"},
};

/// A dense block.
inline constexpr TensorRule feed_forward[] = {
    {"layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight", "* d"},
    {"layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight", "* d"},
    {"layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight", "d *"},
};

/// A softmax router and its experts: one by one, or all of a layer in one tensor.
inline constexpr TensorRule experts[] = {
    {"layers.#.mlp.gate.weight", "blk.#.ffn_gate_inp.weight", "e d", {}, Keep::f32},
    {"layers.#.mlp.experts.#.gate_proj.weight", "blk.#.ffn_gate_exps.weight", "* d"},
    {"layers.#.mlp.experts.#.up_proj.weight", "blk.#.ffn_up_exps.weight", "* d"},
    {"layers.#.mlp.experts.#.down_proj.weight", "blk.#.ffn_down_exps.weight", "d *"},
    {"layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_gate_exps.weight", "e * d", first_half},
    {"layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_up_exps.weight", "e * d", second_half},
    {"layers.#.mlp.experts.down_proj", "blk.#.ffn_down_exps.weight", "e d *"},
};

/// The expert that every token uses, and its gate.
inline constexpr TensorRule shared_expert[] = {
    {"layers.#.mlp.shared_expert_gate.weight", "blk.#.ffn_gate_inp_shexp.weight", "1 d", {}, Keep::f32},
    {"layers.#.mlp.shared_expert.gate_proj.weight", "blk.#.ffn_gate_shexp.weight", "* d"},
    {"layers.#.mlp.shared_expert.up_proj.weight", "blk.#.ffn_up_shexp.weight", "* d"},
    {"layers.#.mlp.shared_expert.down_proj.weight", "blk.#.ffn_down_shexp.weight", "d *"},
};

/// Writes the keys of experts narrower than a dense layer, and of a shared one.
inline void write_expert_widths(const FamilyInput& in, Keys& keys) {
  if (in.sizes.expert_ff > 0) keys.count("expert_feed_forward_length", in.sizes.expert_ff);
  if (in.sizes.shared_ff > 0) keys.count("expert_shared_feed_forward_length", in.sizes.shared_ff);
}

/// Refuses a model whose config asks for what no key can say. `wanted` is what the family always does.
inline void require_flag(const FamilyInput& in, std::string_view key, bool wanted) {
  MICA_CHECK(in.config.flag_or(key, wanted) == wanted, unsupported, in.config.where(key), " is ", !wanted,
             "; this family is supported with ", wanted, " alone");
}

}  // namespace mica::convert::families
