// SPDX-License-Identifier: Apache-2.0
//
// How GGUF files name the tensors of a transformer.
#pragma once

#include "mica/base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace mica::arch::tensor_names {

inline constexpr std::string_view token_embd = "token_embd.weight";        // (n_vocab, width)
inline constexpr std::string_view output_norm = "output_norm.weight";      // (width)
inline constexpr std::string_view output_norm_bias = "output_norm.bias";   // (width), of a LayerNorm
inline constexpr std::string_view output = "output.weight";                // (n_vocab, width); absent: tied
inline constexpr std::string_view position_embd = "position_embd.weight";  // (n_ctx, width)
inline constexpr std::string_view token_types = "token_types.weight";      // (types, width)
inline constexpr std::string_view mtp_norm = "nextn.shared_head_norm";     // of a head's layer, (width)
inline constexpr std::string_view rope_freqs = "rope_freqs.weight";        // (dims / 2)

inline constexpr std::string_view rope_factors_long = "rope_factors_long.weight";        // (dims / 2)
inline constexpr std::string_view rope_factors_short = "rope_factors_short.weight";      // (dims / 2)
inline constexpr std::string_view per_layer_token_embd = "per_layer_token_embd.weight";  // (n_vocab, L * p)
inline constexpr std::string_view per_layer_model_proj = "per_layer_model_proj.weight";  // (L * p, width)
inline constexpr std::string_view per_layer_proj_norm = "per_layer_proj_norm.weight";    // (p)

/// "blk.3.attn_q.scale"
[[nodiscard]] inline std::string layer_part(std::size_t index, std::string_view part,
                                            std::string_view suffix) {
  return join("blk.", index, ".", part, ".", suffix);
}

/// "blk.3.attn_q.bias"
[[nodiscard]] inline std::string layer_bias(std::size_t index, std::string_view part) {
  return layer_part(index, part, "bias");
}

/// "blk.3.ssm_a"
[[nodiscard]] inline std::string layer_plain(std::size_t index, std::string_view part) {
  return join("blk.", index, ".", part);
}

/// "blk.3.attn_q.weight"
[[nodiscard]] inline std::string layer(std::size_t index, std::string_view part) {
  return join("blk.", index, ".", part, ".weight");
}

}  // namespace mica::arch::tensor_names
