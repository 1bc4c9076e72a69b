// SPDX-License-Identifier: Apache-2.0
//
// EmbeddingGemma: Gemma 3 with attention in both directions, and two matrices behind pooling, which stand in
// the folders 2_Dense and 3_Dense.
#pragma once

#include "mica_tools/convert/families/gemma.hpp"

#include <cstddef>
#include <string>

namespace mica::convert::families {

namespace detail {

inline constexpr TensorRule dense_modules[] = {
    {"2_Dense.linear.weight", "dense_2.weight", "* d"},
    {"3_Dense.linear.weight", "dense_3.weight"},
};

inline constexpr std::span<const TensorRule> gemma_embedding_tables[] = {embedding, gemma2_norms, attention,
                                                                         feed_forward, dense_modules};

[[nodiscard]] inline bool is_bidirectional(const Config& config) {
  const Json* const flag = config.find("use_bidirectional_attention");
  return (flag != nullptr && flag->is_boolean() && flag->get<bool>()) ||
         has_architecture(config, "Gemma3TextModel");
}

inline void write_gemma_embedding_keys(const FamilyInput& in, Keys& keys) {
  write_gemma3_keys(in, keys);
  std::size_t number = 2;
  for (const DenseModule& dense : in.modules.dense) {
    const std::string name = join("dense_", number++);
    keys.count(join(name, "_feat_in"), dense.in);
    keys.count(join(name, "_feat_out"), dense.out);
  }
}

}  // namespace detail

/// The window is written as config.json has it: half of it in each direction.
inline constexpr Family gemma_embedding = {
    .arch = "gemma-embedding",
    .model_types = "gemma3_text",
    .tables = detail::gemma_embedding_tables,
    .defaults =
        {.heads = 8, .kv_heads = 4, .head_dim = 256, .context = 131072, .rope_base = 1000000.0, .tied = true},
    .write_keys = detail::write_gemma_embedding_keys,
    .matches = detail::is_bidirectional};

}  // namespace mica::convert::families
