// SPDX-License-Identifier: Apache-2.0
//
// Phi-3 and Phi-4: queries, keys and values in one matrix, gate and up in another, both kept so; two sets of
// rope factors, for short and for long contexts.
#pragma once

#include "mica_tools/convert/families/tables.hpp"

#include <cmath>

namespace mica::convert::families {

namespace detail {

inline constexpr TensorRule phi3_blocks[] = {
    {"layers.#.self_attn.qkv_proj.weight", "blk.#.attn_qkv.weight", "* d"},
    {"layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight", "d q"},
    {"layers.#.mlp.gate_up_proj.weight", "blk.#.ffn_up.weight", "* d"},
    {"layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight", "d *"},
};

inline constexpr std::span<const TensorRule> phi3_tables[] = {embedding, pre_norms, phi3_blocks};

/// What attention is multiplied by when the context is stretched.
inline double longrope_factor(double context, double original) {
  if (context <= original || original <= 1) return 1.0;
  return std::sqrt(1 + std::log(context / original) / std::log(original));
}

inline void write_phi3_keys(const FamilyInput& in, Keys& keys) {
  write_usual_keys(in, in.rope, keys);
  keys.count("attention.sliding_window", in.config.count_or("sliding_window", 0));
  if (in.rope.type != "longrope") {
    keys.count("rope.scaling.original_context_length",
               in.config.count_or("original_max_position_embeddings", in.sizes.context));
    return;
  }
  const std::uint64_t original = original_context(in.config, in.rope);
  keys.count("rope.scaling.original_context_length", original);
  keys.real("rope.scaling.attn_factor",
            longrope_factor(static_cast<double>(in.sizes.context), static_cast<double>(original)));
}

inline std::vector<float> longrope_factors(const FamilyInput& in, std::string_view key) {
  const Json* const list = find_member(*in.rope.scaling, key);
  const auto pairs = static_cast<std::size_t>(static_cast<double>(in.sizes.head_dim) * in.rope.partial / 2);
  MICA_CHECK(list != nullptr && list->is_array() && list->size() == pairs, file,
             in.config.where("rope_scaling"), ": '", key, "' is no list of ", pairs, " numbers");
  std::vector<float> out;
  for (const Json& each : *list) out.push_back(static_cast<float>(in.config.as_real(each, key)));
  return out;
}

inline std::vector<ComputedTensor> phi3_rope_factors(const FamilyInput& in) {
  if (in.rope.type != "longrope") return {};
  return {{"rope_factors_long.weight", longrope_factors(in, "long_factor")},
          {"rope_factors_short.weight", longrope_factors(in, "short_factor")}};
}

}  // namespace detail

/// Fused tensors stay fused; factors of longrope are tensors.
inline constexpr Family phi3 = {.arch = "phi3",
                                .model_types = "phi3",
                                .tables = detail::phi3_tables,
                                .defaults = {.epsilon = 1e-5},
                                .write_keys = detail::write_phi3_keys,
                                .compute = detail::phi3_rope_factors};

}  // namespace mica::convert::families
