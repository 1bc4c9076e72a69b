// SPDX-License-Identifier: Apache-2.0
//
// BERT (Devlin et al., arXiv 1810.04805), and the text encoders that differ from it in positions and gates.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_encoder.hpp"

#include <cstddef>
#include <string_view>

namespace mica::arch {

/// BERT, RoBERTa and XLM-RoBERTa: learned positions, GELU without a gate. MiniLM, BGE, E5, GTE.
struct Bert {
  // Required by Arch
  static constexpr std::string_view name = "bert";
  using Blocks =
      TypeList<block::EncoderInput, block::ResidualNorm, block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_bert(keys, name);
    const gguf::TensorInfo& positions = document.tensor(tensor_names::position_embd);
    config.n_ctx_max = static_cast<std::size_t>(positions.rows());
    config.n_ctx_train = std::min(config.n_ctx_train, config.n_ctx_max);
    config.begin.get<block::EncoderInput>().positions = config.n_ctx_max;
    for (Layer& layer : config.layers) {
      layer.get<block::Attention>().rope = block::none;
      auto& feed_forward = layer.get<block::DenseFeedForward>();
      feed_forward.gated = false;
      feed_forward.gate = kernel::Gate::gelu_erf;
    }
    return config;
  }
};

/// nomic-embed-text 1 and 1.5: rotary positions, SwiGLU.
struct NomicBert {
  // Required by Arch
  static constexpr std::string_view name = "nomic-bert";
  using Blocks = Bert::Blocks;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    MICA_CHECK(keys.count_or("moe_every_n_layers", 0, max_layers, 0) == 0, unsupported, keys.file(),
               ": experts of nomic-bert are not supported");
    Config config = read_bert(keys, name);
    config.ropes = {read_rope(keys, config.layers.front().get<block::Attention>().head_dim,
                              config.n_ctx_train, kernel::RopePairs::halves)};
    return config;
  }
};

/// jina-embeddings 2: ALiBi in both directions (Günther et al., arXiv 2310.19923), GEGLU.
struct JinaBertV2 {
  // Required by Arch
  static constexpr std::string_view name = "jina-bert-v2";
  using Blocks = Bert::Blocks;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_bert(keys, name);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      for (const std::string_view part : {"attn_q_norm.weight", "attn_norm_2.weight"}) {
        MICA_CHECK(!has_tensor(document, i, part), unsupported, keys.file(), ": tensor '",
                   tensor_names::layer_plain(i, part), "' is not supported in this family");
      }
      block::AttentionConfig& attention = config.layers[i].get<block::Attention>();
      attention.rope = block::none;
      attention.alibi_max = static_cast<float>(keys.positive_or("attention.max_alibi_bias", 8.0));
      config.layers[i].get<block::DenseFeedForward>().gate = kernel::Gate::gelu_erf;
    }
    return config;
  }
};

/// ModernBERT (Warner et al., arXiv 2412.13663): norms before the blocks, rotary positions, GEGLU, and two
/// layers in three with a window and a rope of their own.
struct ModernBert {
  // Required by Arch
  static constexpr std::string_view name = "modern-bert";
  using Blocks = TypeList<block::ResidualNorm, block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_encoder(keys, name);
    config.begin.add<block::ResidualNorm>({.norm = "token_embd_norm"});
    const std::size_t head_dim = config.layers.front().get<block::Attention>().head_dim;
    config.ropes = {read_rope(keys, head_dim, config.n_ctx_train, kernel::RopePairs::halves)};
    RopeConfig near = config.ropes.front();
    near.base = keys.positive_or("rope.freq_base_swa", 10000.0);
    config.ropes.push_back(near);
    const std::size_t window = keys.count_or("attention.sliding_window", 0, max_context, 128);
    const std::size_t every = keys.count_or("attention.sliding_window_pattern", 1, max_layers, 3);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      block::AttentionConfig& attention = config.layers[i].get<block::Attention>();
      attention.pre_norm = has_tensor(document, i, "attn_norm.weight");
      config.layers[i].get<block::DenseFeedForward>().gate = kernel::Gate::gelu_erf;
      if (window == 0 || i % every == 0) continue;
      attention.look_through_window(window / 2 + 1);
      attention.rope = 1;
    }
    read_pooling(keys, config, Pooling::mean, Activation::gelu);
    return config;
  }
};

static_assert(Arch<Bert> && Arch<NomicBert> && Arch<JinaBertV2> && Arch<ModernBert>);

}  // namespace mica::arch
