// SPDX-License-Identifier: Apache-2.0
//
// Qwen 3 (`qwen3`): norms of queries and keys instead of Qwen 2's biases.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

namespace mica::arch {

struct Qwen3 {
  // Required by Arch
  static constexpr std::string_view name = "qwen3";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    Config config = read_common(KeyReader(document, name), name, kernel::RopePairs::halves);
    for (Layer& layer : config.layers) {
      layer.get<block::Attention>().head_norm = block::HeadNorm::weighted;
    }
    return config;
  }
};

static_assert(Arch<Qwen3>);

}  // namespace mica::arch
