// SPDX-License-Identifier: Apache-2.0
//
// The numbers of all families, from which keys and shapes are made.
#pragma once

#include "mica_tools/convert/config.hpp"

#include <cstdint>

namespace mica::convert {

/// Defaults of a family for missing keys of config.json; 0 means that the key is required.
struct Defaults {
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;  ///< 0: as many as heads
  std::uint64_t head_dim = 0;  ///< 0: width / heads
  std::uint64_t context = 0;
  double epsilon = 1e-6;
  double rope_base = 10000.0;
  bool tied = false;  ///< the output matrix is the embedding
};

/// Widths of a model, in elements.
struct Sizes {
  std::uint64_t layers, width, heads, kv_heads, head_dim, context;
  std::uint64_t experts = 0, experts_used = 0, expert_ff = 0, shared_ff = 0;
  std::uint64_t vocabulary = 0;  ///< rows of the embedding
  double epsilon = 0;            ///< of the norms

  [[nodiscard]] std::uint64_t q_width() const noexcept { return heads * head_dim; }
  [[nodiscard]] std::uint64_t kv_width() const noexcept { return kv_heads * head_dim; }
};

namespace detail {

[[nodiscard]] inline std::uint64_t count_in(const Config& config, std::string_view key,
                                            std::uint64_t otherwise, std::uint64_t max) {
  const std::uint64_t found = otherwise == 0 ? config.count(key) : config.count_or(key, otherwise);
  MICA_CHECK(found >= 1 && found <= max, file, config.where(key), " is ", found, "; allowed: 1 to ", max);
  return found;
}

}  // namespace detail

/// Reads them; `vocabulary` is left to the embedding.
[[nodiscard]] inline Sizes read_sizes(const Config& config, const Defaults& defaults) {
  Sizes s{};
  s.layers = detail::count_in(config, "num_hidden_layers", 0, 4096);
  s.width = detail::count_in(config, "hidden_size", 0, std::uint64_t{1} << 20);
  s.heads = detail::count_in(config, "num_attention_heads", defaults.heads, 1U << 14);
  s.kv_heads = detail::count_in(config, "num_key_value_heads",
                                defaults.kv_heads == 0 ? s.heads : defaults.kv_heads, 1U << 14);
  const std::uint64_t fallback = defaults.head_dim == 0 ? s.width / s.heads : defaults.head_dim;
  s.head_dim = detail::count_in(config, "head_dim", fallback == 0 ? 1 : fallback, 1U << 14);
  s.context = detail::count_in(config, "max_position_embeddings", defaults.context, std::uint64_t{1} << 30);
  s.epsilon = config.real_or("rms_norm_eps", defaults.epsilon);
  s.experts = config.count_or("num_local_experts", config.count_or("num_experts", 0));
  s.experts_used = config.count_or("num_experts_per_tok", config.count_or("top_k_experts", 0));
  s.expert_ff = config.count_or("moe_intermediate_size", config.count_or("expert_intermediate_size", 0));
  s.shared_ff = config.count_or("shared_expert_intermediate_size", 0);
  MICA_CHECK(s.experts <= 65536 && s.experts_used <= s.experts, file, config.path(), ": ", s.experts_used,
             " of ", s.experts, " experts");
  return s;
}

}  // namespace mica::convert
