// SPDX-License-Identifier: Apache-2.0
//
// A model file in memory that has a vocabulary: bytes, BOS and EOS.

#pragma once

#include "model/tiny_model.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

inline void write_byte_vocabulary(gguf::Writer& writer) {
  std::vector<std::string> texts = {"<s>", "</s>"};
  std::vector<std::int32_t> types = {3, 3};
  for (unsigned byte = 0; byte < 256; ++byte) {
    char spelled[8];
    std::snprintf(spelled, sizeof spelled, "<0x%02X>", byte);
    texts.emplace_back(spelled);
    types.push_back(6);
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  writer.set("tokenizer.ggml.model", "llama");
  writer.set_array("tokenizer.ggml.tokens", views);
  writer.set_array("tokenizer.ggml.token_type", types);
  writer.set("tokenizer.ggml.bos_token_id", std::uint32_t{0});
  writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{1});
}

/// The tiny model with that vocabulary.
inline Recipe talking(Recipe recipe = {}) {
  recipe.n_vocab = 258;
  recipe.edit = write_byte_vocabulary;
  return recipe;
}

}  // namespace mica::test
