// SPDX-License-Identifier: Apache-2.0
//
// The minimal Arch: a family that takes what it can from the shapes of tensors, and has constants for the
// rest.

#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/block/attention.hpp"
#include "mica/block/dense_feed_forward.hpp"

namespace mica::archetype {

struct Arch {
  // Required by Arch
  static constexpr std::string_view name = "plain";
  using Blocks = mica::TypeList<mica::block::Attention, mica::block::DenseFeedForward>;

  static mica::arch::Config config(const mica::gguf::Document& document) {
    constexpr std::size_t head_dim = 10;
    const auto rows = [&](std::size_t layer, std::string_view part) {
      return static_cast<std::size_t>(document.tensor(mica::arch::tensor_names::layer(layer, part)).rows());
    };
    mica::arch::Config config;
    config.n_ctx_train = 700;
    config.width = static_cast<std::size_t>(document.tensor(mica::arch::tensor_names::token_embd).width());
    config.n_vocab = static_cast<std::size_t>(document.tensor(mica::arch::tensor_names::token_embd).rows());
    config.norm_epsilon = 1e-5f;
    config.ropes.resize(1);
    config.ropes.front().dims = head_dim;
    for (std::size_t i = 0; document.contains(mica::arch::tensor_names::layer(i, "attn_q")); ++i) {
      mica::arch::Layer& layer = config.layers.emplace_back();
      layer.add<mica::block::Attention>(
          {rows(i, "attn_q") / head_dim, rows(i, "attn_k") / head_dim, head_dim});
      layer.add<mica::block::DenseFeedForward>({.ff_width = rows(i, "ffn_up")});
    }
    return config;
  }
};
static_assert(mica::Arch<Arch>);

}  // namespace mica::archetype
