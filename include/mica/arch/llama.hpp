// SPDX-License-Identifier: Apache-2.0
//
// Llama 2 and 3.x, Mistral and their kin (`llama`): pre-norms, grouped-query attention, rotation of adjacent pairs
// (converters permute the weights for that), SwiGLU, a head that may be tied to the embedding.
// Limit: mixtures of experts (Mixtral) are refused by name.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

namespace mica::arch {

struct Llama {
  // Required by Arch
  static constexpr std::string_view name = "llama";

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    const std::size_t experts = keys.count_or("expert_count", 0, 1u << 16, 0);
    MICA_CHECK(experts == 0, unsupported, keys.file(), ": key '", keys.key("expert_count"), "' is ", experts,
               "; mixtures of experts are not supported");
    Config config;
    config.arch = name;
    config.name = document.metadata().get<std::string_view>("general.name").value_or("");
    config.n_ctx_train = keys.count_or("context_length", 1, max_context, 2048);
    config.width = keys.count("embedding_length", 1, max_width);
    config.n_vocab = read_vocabulary_size(document);
    config.layers = read_layers(keys, config.width);
    config.norm_epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
    config.rope = read_rope(keys, config.layers.front().head_dim, kernel::RopePairs::adjacent);
    return config;
  }
};

static_assert(Arch<Llama>);

}  // namespace mica::arch
