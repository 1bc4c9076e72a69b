// SPDX-License-Identifier: Apache-2.0
//
// Qwen 3.5 and its successors (`qwen35`, `qwen35moe`): gated delta nets and gated attention. Rotation has
// sections for image positions, which are all alike for text. Blocks for multi-token prediction are left out.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_delta_net.hpp"

namespace mica::arch {

struct Qwen35 {
  // Required by Arch
  static constexpr std::string_view name = "qwen35";
  using Blocks = TypeList<block::Attention, block::DeltaNet, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_delta_net_model(KeyReader(document, name), name);
  }
};

struct Qwen35Moe {
  // Required by Arch
  static constexpr std::string_view name = "qwen35moe";
  using Blocks = TypeList<block::Attention, block::DeltaNet, block::Experts>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_delta_net_model(keys, name);
    add_gated_experts(keys, config);
    return config;
  }
};

static_assert(Arch<Qwen35> && Arch<Qwen35Moe>);

}  // namespace mica::arch
