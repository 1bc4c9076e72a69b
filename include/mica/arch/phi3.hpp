// SPDX-License-Identifier: Apache-2.0
//
// Phi-3 and Phi-4 (`phi3`): Llama with fused tensors, rotation of halves, and factors for long contexts
// (longrope) that are chosen by the context a cache is made for. Their sliding window is not applied: no
// runtime does.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

namespace mica::arch {

struct Phi3 {
  // Required by Arch
  static constexpr std::string_view name = "phi3";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_common(KeyReader(document, name), name, kernel::RopePairs::halves);
  }
};

static_assert(Arch<Phi3>);

}  // namespace mica::arch
