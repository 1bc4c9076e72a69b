// SPDX-License-Identifier: Apache-2.0
//
// Qwen 2, 2.5 and 3, dense and with experts.
#pragma once

#include "mica_tools/convert/families/tables.hpp"

namespace mica::convert::families {

namespace detail {

inline constexpr std::span<const TensorRule> qwen_tables[] = {
    embedding, pre_norms, attention, head_norms, feed_forward, experts, shared_expert};

inline void write_qwen_keys(const FamilyInput& in, Keys& keys) {
  write_common_keys(in, keys);
  write_rope(in.config, in.rope, in.sizes, keys);
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

inline constexpr Family qwen2 = {.arch = "qwen2",
                                 .model_types = "qwen2",
                                 .tables = detail::qwen_tables,
                                 .write_keys = detail::write_qwen_keys};

inline constexpr Family qwen2moe = {.arch = "qwen2moe",
                                    .model_types = "qwen2_moe",
                                    .tables = detail::qwen_tables,
                                    .write_keys = detail::write_qwen2_moe_keys};

inline constexpr Family qwen3 = {.arch = "qwen3",
                                 .model_types = "qwen3",
                                 .tables = detail::qwen_tables,
                                 .defaults = {.head_dim = 128},
                                 .write_keys = detail::write_qwen_keys};

inline constexpr Family qwen3moe = {.arch = "qwen3moe",
                                    .model_types = "qwen3_moe",
                                    .tables = detail::qwen_tables,
                                    .write_keys = detail::write_qwen3_moe_keys};

}  // namespace mica::convert::families
