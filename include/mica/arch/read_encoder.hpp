// SPDX-License-Identifier: Apache-2.0
//
// What text encoders share: attention in both directions, and no logits.
#pragma once

#include "mica/arch/read_keys.hpp"
#include "mica/block/encoder_input.hpp"
#include "mica/block/residual_norm.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::arch {

/// A model that encodes: plain layers without a causal mask, with LayerNorm. Its ropes and gates, and the
/// places of its norms, are still to be set.
[[nodiscard]] inline Config read_encoder(const KeyReader& keys, std::string_view arch) {
  Config config = read_sizes(keys, arch, 512);
  config.encodes = true;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].get<block::Attention>().bidirectional = true;
    config.layers[i].get<block::DenseFeedForward>().down_bias =
        has_tensor(keys.document(), i, "ffn_down.bias");
  }
  config.norm = block::NormKind::layer;
  config.norm_epsilon = static_cast<float>(keys.positive("attention.layer_norm_epsilon"));
  return config;
}

/// BERT's order: embeddings with positions and types, normed; every layer has its norms behind its blocks.
[[nodiscard]] inline Config read_bert(const KeyReader& keys, std::string_view arch) {
  Config config = read_encoder(keys, arch);
  const gguf::Document& document = keys.document();
  config.output_norm = false;
  block::EncoderInput::Config input;
  if (const gguf::TensorInfo* const types = document.find(tensor_names::token_types)) {
    input.types = static_cast<std::size_t>(types->rows());
  }
  // The key is misspelled in all files. Other tokenizers than WordPiece give all tokens of a pair the first
  // type.
  if (document.metadata().get<std::string_view>("tokenizer.ggml.model") == "bert") {
    input.separator = static_cast<TokenId>(document.metadata()
                                               .get<std::uint64_t>("tokenizer.ggml.seperator_token_id")
                                               .value_or(input.separator));
  }
  config.begin.add<block::EncoderInput>(input);
  config.begin.add<block::ResidualNorm>({.norm = "token_embd_norm"});
  for (Layer& layer : config.layers) {
    const block::AttentionConfig attention = layer.get<block::Attention>();
    const auto feed_forward = layer.get<block::DenseFeedForward>();
    layer = {};
    auto& heads = layer.add<block::Attention>(attention);
    heads.pre_norm = false;
    heads.second_codes = true;
    layer.add<block::ResidualNorm>({.norm = "attn_output_norm"});
    auto& network = layer.add<block::DenseFeedForward>(feed_forward);
    network.pre_norm = false;
    network.second_codes = true;
    layer.add<block::ResidualNorm>({.norm = "layer_output_norm"});
  }
  read_pooling(keys, config, Pooling::first);
  return config;
}

}  // namespace mica::arch
