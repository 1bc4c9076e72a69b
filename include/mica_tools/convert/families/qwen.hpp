// SPDX-License-Identifier: Apache-2.0
//
// Qwen 2, 2.5 and 3, dense and with experts. Qwen3-Next and Qwen 3.5: gated delta nets between layers of
// gated attention. The norms of these are stored minus one, but the delta net's own. Where value heads
// outnumber key heads, GGUF's `qwen35` wants key head = value head mod key heads and the checkpoint has them
// grouped; `qwen3next` keeps the groups.
#pragma once

#include "mica_tools/convert/families/tables.hpp"

namespace mica::convert::families {

namespace detail {

inline constexpr std::span<const TensorRule> qwen_tables[] = {
    embedding, pre_norms, attention, head_norms, feed_forward, experts, shared_expert};

inline void write_qwen_keys(const FamilyInput& in, Keys& keys) {
  write_usual_keys(in, in.rope, keys);
  write_expert_widths(in, keys);
  const bool windowed = in.config.flag_or("use_sliding_window", false) &&
                        in.config.count_or("max_window_layers", 0) < in.sizes.layers;
  MICA_CHECK(!windowed, unsupported, in.config.where("use_sliding_window"),
             " is true; this family is supported without windows");
}

inline void write_qwen2_moe_keys(const FamilyInput& in, Keys& keys) {
  write_qwen_keys(in, keys);
  require_flag(in, "norm_topk_prob", false);
}

inline void write_qwen3_moe_keys(const FamilyInput& in, Keys& keys) {
  write_qwen_keys(in, keys);
  require_flag(in, "norm_topk_prob", true);
}

}  // namespace detail

/// Qwen 2 and 2.5. A model with windows is refused, here and in the next three families.
inline constexpr Family qwen2 = {.arch = "qwen2",
                                 .model_types = "qwen2",
                                 .tables = detail::qwen_tables,
                                 .write_keys = detail::write_qwen_keys};

/// A model is refused if the weights of the chosen experts sum to 1.
inline constexpr Family qwen2moe = {.arch = "qwen2moe",
                                    .model_types = "qwen2_moe",
                                    .tables = detail::qwen_tables,
                                    .write_keys = detail::write_qwen2_moe_keys};

/// Heads of 128 numbers where config.json does not say. Embedders and rerankers are among its models.
inline constexpr Family qwen3 = {.arch = "qwen3",
                                 .model_types = "qwen3",
                                 .tables = detail::qwen_tables,
                                 .defaults = {.head_dim = 128},
                                 .write_keys = detail::write_qwen_keys,
                                 .reranks = true};

/// A model is refused if the weights of the chosen experts do not sum to 1.
inline constexpr Family qwen3moe = {.arch = "qwen3moe",
                                    .model_types = "qwen3_moe",
                                    .tables = detail::qwen_tables,
                                    .write_keys = detail::write_qwen3_moe_keys};

namespace detail {

inline constexpr TensorRule delta_norms[] = {
    {"norm.weight", "output_norm.weight", "d", norm_plus_one},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", "d", norm_plus_one},
    {"layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", "d", norm_plus_one},
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", "h", norm_plus_one},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", "h", norm_plus_one},
    {"layers.#.linear_attn.norm.weight", "blk.#.ssm_norm.weight"},
};

/// A head for multi-token prediction: its layer, and these.
inline constexpr TensorRule mtp_head[] = {
    {"layers.#.mtp.fc.weight", "blk.#.nextn.eh_proj.weight", "d *"},
    {"layers.#.mtp.pre_fc_norm_embedding.weight", "blk.#.nextn.enorm.weight", "d", norm_plus_one},
    {"layers.#.mtp.pre_fc_norm_hidden.weight", "blk.#.nextn.hnorm.weight", "d", norm_plus_one},
    {"layers.#.mtp.norm.weight", "blk.#.nextn.shared_head_norm.weight", "d", norm_plus_one},
};

inline constexpr Change grouped_qkv = {.rows = Order::grouped_qkv};
inline constexpr Change grouped_z = {.rows = Order::grouped_z};
inline constexpr Change negative_exp = {.function = Function::negative_exp};

inline constexpr TensorRule grouped_delta_net[] = {
    {"layers.#.linear_attn.in_proj_qkvz.weight", "blk.#.attn_qkv.weight", "* d", grouped_qkv},
    {"layers.#.linear_attn.in_proj_qkvz.weight", "blk.#.attn_gate.weight", "* d", grouped_z},
    {"layers.#.linear_attn.in_proj_ba.weight", "blk.#.ssm_ba.weight", "* d"},
    {"layers.#.linear_attn.conv1d.weight", "blk.#.ssm_conv1d.weight", "* 1 *", {}, Keep::f32},
    {"layers.#.linear_attn.A_log", "blk.#.ssm_a", "*", negative_exp},
    {"layers.#.linear_attn.dt_bias", "blk.#.ssm_dt.bias"},
    {"layers.#.linear_attn.out_proj.weight", "blk.#.ssm_out.weight", "d *"},
};

inline constexpr Change by_value_head = {.rows = Order::value_heads};
inline constexpr Change behind_qk = {.rows = Order::qkv_value_heads};
inline constexpr Change negative_exp_by_value_head = {.rows = Order::value_heads,
                                                      .function = Function::negative_exp};

inline constexpr TensorRule tiled_delta_net[] = {
    {"layers.#.linear_attn.in_proj_qkv.weight", "blk.#.attn_qkv.weight", "* d", behind_qk},
    {"layers.#.linear_attn.in_proj_z.weight", "blk.#.attn_gate.weight", "* d", by_value_head},
    {"layers.#.linear_attn.in_proj_b.weight", "blk.#.ssm_beta.weight", "* d", by_value_head},
    {"layers.#.linear_attn.in_proj_a.weight", "blk.#.ssm_alpha.weight", "* d", by_value_head},
    {"layers.#.linear_attn.conv1d.weight", "blk.#.ssm_conv1d.weight", "* 1 *", behind_qk, Keep::f32},
    {"layers.#.linear_attn.A_log", "blk.#.ssm_a", "*", negative_exp_by_value_head},
    {"layers.#.linear_attn.dt_bias", "blk.#.ssm_dt.bias", "*", by_value_head},
    {"layers.#.linear_attn.out_proj.weight", "blk.#.ssm_out.weight", "d *", {.columns = Order::value_heads}},
};

inline constexpr std::span<const TensorRule> qwen3next_tables[] = {
    embedding, delta_norms, grouped_delta_net, attention, feed_forward, experts, shared_expert, mtp_head};
inline constexpr std::span<const TensorRule> qwen35_tables[] = {
    embedding, delta_norms, tiled_delta_net, attention, feed_forward, experts, shared_expert, mtp_head};

/// Every n-th layer attends: as the key where layers keep to it, as an array where they do not.
inline void write_recurrent_layers(const FamilyInput& in, Keys& keys) {
  const std::uint64_t interval = in.config.count_or("full_attention_interval", 4);
  const auto types = in.config.texts("layer_types", static_cast<std::size_t>(in.sizes.layers));
  bool regular = interval > 0;
  std::vector<bool> recurrent;
  for (std::size_t i = 0; i < types.size(); ++i) {
    recurrent.push_back(types[i] == "linear_attention");
    regular = regular && recurrent.back() == ((i + 1) % interval != 0);
  }
  keys.count("full_attention_interval", interval);
  recurrent.resize(static_cast<std::size_t>(in.sizes.all_layers()), false);  // a head attends
  if (!regular) keys.flags("attention.recurrent_layers", recurrent);
}

inline void write_delta_keys(const FamilyInput& in, Keys& keys) {
  write_common_keys(in, keys);
  write_expert_widths(in, keys);
  require_flag(in, "norm_topk_prob", true);
  Rope rope = in.rope;
  const bool partial_given =
      in.config.has("partial_rotary_factor") || find_member(rope.scaling, "partial_rotary_factor") != nullptr;
  if (!partial_given) rope.partial = 0.25;
  write_rope(in.config, rope, in.sizes, keys);
  const convert::detail::DeltaHeads heads(in.config);
  keys.count("ssm.conv_kernel", in.config.count("linear_conv_kernel_dim"));
  keys.count("ssm.state_size", heads.key_dim);
  keys.count("ssm.group_count", heads.keys);
  keys.count("ssm.time_step_rank", heads.values);
  keys.count("ssm.inner_size", heads.values * heads.value_dim);
  write_recurrent_layers(in, keys);
}

/// How the rotated pairs are dealt out to time, height and width; for text all three are the position.
inline void write_qwen35_keys(const FamilyInput& in, Keys& keys) {
  write_delta_keys(in, keys);
  std::vector<std::uint64_t> sections = {11, 11, 10};
  const Json* const given = find_member(in.rope.scaling, "mrope_section");
  if (given != nullptr) {
    MICA_CHECK(given->is_array() && given->size() >= 1 && given->size() <= 4, file,
               in.config.where("mrope_section"), " is no list of up to four numbers");
    sections.clear();
    for (const Json& each : *given) sections.push_back(in.config.as_count(each, "mrope_section"));
  }
  sections.resize(4, 0);
  keys.array("rope.dimension_sections", sections);
}

}  // namespace detail

/// Value heads stay grouped by key head.
inline constexpr Family qwen3next = {.arch = "qwen3next",
                                     .model_types = "qwen3_next",
                                     .tables = detail::qwen3next_tables,
                                     .write_keys = detail::write_delta_keys,
                                     .mtp = true};

/// Value heads change their order, and the sections of the rope are a key.
inline constexpr Family qwen35 = {.arch = "qwen35",
                                  .model_types = "qwen3_5_text qwen3_5",
                                  .tables = detail::qwen35_tables,
                                  .defaults = {.head_dim = 256},
                                  .write_keys = detail::write_qwen35_keys,
                                  .mtp = true};

/// The same with experts, whose weights sum to 1.
inline constexpr Family qwen35moe = {.arch = "qwen35moe",
                                     .model_types = "qwen3_5_moe_text qwen3_5_moe",
                                     .tables = detail::qwen35_tables,
                                     .defaults = {.head_dim = 256},
                                     .write_keys = detail::write_qwen35_keys,
                                     .mtp = true};

}  // namespace mica::convert::families
