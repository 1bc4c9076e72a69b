// SPDX-License-Identifier: Apache-2.0
//
// The role of a tensor in the choice of its format, and whether it is quantised at all. By the name alone:
// names are the same in every family.
#pragma once

#include "mica/gguf/tensor_info.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mica::quantize {

/// The roles that recipes distinguish. A fused or compressed tensor with values has the role of values.
enum class TensorRole : std::uint8_t {
  head,       ///< the output matrix
  embedding,  ///< of tokens, and per layer
  value,
  key,
  query,
  attention_out,
  up,
  gate,
  down,
  other  ///< all but these
};

/// The role of a tensor of that name.
[[nodiscard]] constexpr TensorRole role_of(std::string_view name) noexcept {
  struct Entry {
    std::string_view piece;
    TensorRole role;
  };
  using R = TensorRole;
  constexpr Entry pieces[] = {{"attn_qkv.weight", R::value},
                              {"attn_kv_b.weight", R::value},
                              {"attn_v.weight", R::value},
                              {"attn_k.weight", R::key},
                              {"attn_q.weight", R::query},
                              {"attn_output.weight", R::attention_out},
                              {"ffn_up", R::up},
                              {"ffn_gate", R::gate},
                              {"ffn_down", R::down}};
  if (name == "output.weight") return TensorRole::head;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return TensorRole::embedding;
  for (const Entry& entry : pieces) {
    if (name.find(entry.piece) != name.npos) return entry.role;
  }
  return TensorRole::other;
}

/// The layer in "blk.7.attn_q.weight"; empty for tensors of no layer.
[[nodiscard]] inline std::optional<std::uint32_t> layer_of(std::string_view name) noexcept {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  std::uint32_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return layer;
}

/// Whether a tensor is a matrix of weights worth quantising: not a norm, a bias, a router, a convolution, a
/// position, or one of the small matrices with a large effect.
[[nodiscard]] inline bool is_quantizable(const gguf::TensorInfo& tensor) noexcept {
  // clang-format off
  constexpr std::string_view kept[] = {
      "_norm.weight", "ffn_gate_inp.weight",  // norms, routers
      "altup", "laurel", "per_layer_model_proj",  // Gemma 3n and 4
      "ssm_conv1d", "shortconv.conv.weight", "attn_rel_b.weight",
      "time_mix_first.weight", "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight",
      "time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight",
      "time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight",
      "time_mix_g1.weight", "time_mix_g2.weight",
      "time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight",
      ".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd", ".patch_merger",
  };
  // clang-format on
  const std::string_view name = tensor.name;
  if (tensor.empty() || tensor.rows() <= 1 || !name.ends_with("weight")) return false;
  if (name == "position_embd.weight" || name == "token_types.weight") return false;
  for (const std::string_view piece : kept) {
    if (name.find(piece) != name.npos) return false;
  }
  return true;
}

}  // namespace mica::quantize
