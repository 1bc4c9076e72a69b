// SPDX-License-Identifier: Apache-2.0
//
// Qwen 2 and 2.5 (`qwen2`): Llama with biases on queries, keys and values, and rotation of halves.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

namespace mica::arch {

struct Qwen2 {
  // Required by Arch
  static constexpr std::string_view name = "qwen2";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_common(KeyReader(document, name), name, kernel::RopePairs::halves);
  }
};

static_assert(Arch<Qwen2>);

}  // namespace mica::arch
