// SPDX-License-Identifier: Apache-2.0
//
// Gemma 1 (`gemma`): GeGLU, scaled embeddings, a tied head. Norm weights have their 1 added in the file.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_gemma.hpp"

namespace mica::arch {

struct Gemma {
  // Required by Arch
  static constexpr std::string_view name = "gemma";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_gemma(KeyReader(document, name), name);
  }
};

static_assert(Arch<Gemma>);

}  // namespace mica::arch
