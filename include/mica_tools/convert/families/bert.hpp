// SPDX-License-Identifier: Apache-2.0
//
// BERT and the text encoders that differ from it in positions and gates: RoBERTa and XLM-RoBERTa (learned
// positions that begin behind the padding), nomic-embed-text (rope, SwiGLU), jina-embeddings 2 (ALiBi,
// GEGLU). Rerankers keep their classifier: its dense layer becomes cls, its output cls.output.
#pragma once

#include "mica_tools/convert/families/tables.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert::families {

namespace detail {

inline constexpr TensorRule bert_embeddings[] = {
    {"embeddings.word_embeddings.weight", "token_embd.weight", "* d"},
    {"embeddings.token_type_embeddings.weight", "token_types.weight", "* d", {}, Keep::f32},
    {"embeddings.LayerNorm.weight", "token_embd_norm.weight", "d"},
    {"embeddings.LayerNorm.bias", "token_embd_norm.bias", "d"},
};

inline constexpr TensorRule bert_positions[] = {
    {"embeddings.position_embeddings.weight", "position_embd.weight", "* d", {}, Keep::f32},
};

inline constexpr TensorRule roberta_positions[] = {
    {"embeddings.position_embeddings.weight",
     "position_embd.weight",
     "* d",
     {.rows = Order::behind_padding},
     Keep::f32},
};

inline constexpr TensorRule bert_attention[] = {
    {"encoder.layer.#.attention.self.query.weight", "blk.#.attn_q.weight", "q d"},
    {"encoder.layer.#.attention.self.query.bias", "blk.#.attn_q.bias", "q"},
    {"encoder.layer.#.attention.self.key.weight", "blk.#.attn_k.weight", "k d"},
    {"encoder.layer.#.attention.self.key.bias", "blk.#.attn_k.bias", "k"},
    {"encoder.layer.#.attention.self.value.weight", "blk.#.attn_v.weight", "k d"},
    {"encoder.layer.#.attention.self.value.bias", "blk.#.attn_v.bias", "k"},
    {"encoder.layer.#.attention.output.dense.weight", "blk.#.attn_output.weight", "d q"},
    {"encoder.layer.#.attention.output.dense.bias", "blk.#.attn_output.bias", "d"},
    {"encoder.layer.#.attention.output.LayerNorm.weight", "blk.#.attn_output_norm.weight", "d"},
    {"encoder.layer.#.attention.output.LayerNorm.bias", "blk.#.attn_output_norm.bias", "d"},
};

inline constexpr TensorRule bert_feed_forward[] = {
    {"encoder.layer.#.intermediate.dense.weight", "blk.#.ffn_up.weight", "* d"},
    {"encoder.layer.#.intermediate.dense.bias", "blk.#.ffn_up.bias"},
    {"encoder.layer.#.output.dense.weight", "blk.#.ffn_down.weight", "d *"},
    {"encoder.layer.#.output.dense.bias", "blk.#.ffn_down.bias", "d"},
    {"encoder.layer.#.output.LayerNorm.weight", "blk.#.layer_output_norm.weight", "d"},
    {"encoder.layer.#.output.LayerNorm.bias", "blk.#.layer_output_norm.bias", "d"},
};

/// tanh between the two.
inline constexpr TensorRule bert_classifier[] = {
    {"pooler.dense.weight", "cls.weight", "d d"},
    {"pooler.dense.bias", "cls.bias", "d"},
    {"classifier.weight", "cls.output.weight", "* d"},
    {"classifier.bias", "cls.output.bias"},
};

inline constexpr TensorRule roberta_classifier[] = {
    {"classifier.dense.weight", "cls.weight", "d d"},
    {"classifier.dense.bias", "cls.bias", "d"},
    {"classifier.out_proj.weight", "cls.output.weight", "* d"},
    {"classifier.out_proj.bias", "cls.output.bias"},
};

inline constexpr std::span<const TensorRule> bert_tables[] = {bert_embeddings, bert_positions, bert_attention,
                                                              bert_feed_forward, bert_classifier};
inline constexpr std::span<const TensorRule> roberta_tables[] = {
    bert_embeddings, roberta_positions, bert_attention, bert_feed_forward, roberta_classifier};

[[nodiscard]] inline bool classifies(const Config& config) {
  return has_architecture(config, "ForSequenceClassification");
}

/// Heads for training, and the classifier where the model embeds.
[[nodiscard]] inline bool skips_of_bert(const FamilyInput& in, std::string_view pattern) {
  if (pattern.starts_with("pooler.")) return !has_architecture(in.config, "BertForSequenceClassification");
  if (pattern.starts_with("classifier.")) return !classifies(in.config);
  return pattern.starts_with("cls.predictions.") || pattern.starts_with("cls.seq_relationship.") ||
         pattern.starts_with("lm_head.") || pattern == "embeddings.position_ids";
}

/// The names of the scores, by number: those of `id2label`, or the two that models have by default.
[[nodiscard]] inline std::vector<std::string> labels(const Config& config) {
  std::vector<std::string> out;
  const Json* const given = config.find("id2label");
  if (given == nullptr) return {"LABEL_0", "LABEL_1"};
  for (std::size_t i = 0; i < given->size(); ++i) {
    out.push_back(member_text(*given, std::to_string(i)));
    MICA_CHECK(!out.back().empty(), file, config.where("id2label"), " has no text for ", i);
  }
  return out;
}

/// A text that must be this one.
inline void require_text(const FamilyInput& in, std::string_view key, std::string_view wanted) {
  const std::string found = in.config.text_or(key, wanted);
  require_supported(in.config, key, found == wanted, found, wanted);
}

/// The keys of all encoders with LayerNorm.
inline void write_encoder_keys(const FamilyInput& in, std::uint64_t context, Keys& keys) {
  const Sizes& s = in.sizes;
  keys.count("context_length", context);
  keys.count("embedding_length", s.width);
  keys.count("block_count", s.layers);
  keys.counts("feed_forward_length", in.config.counts("intermediate_size", s.layers));
  keys.count("attention.head_count", s.heads);
  keys.real("attention.layer_norm_epsilon", s.epsilon);
  keys.flag("attention.causal", false);
  if (!classifies(in.config)) return;
  keys.count("pooling_type", static_cast<std::uint64_t>(arch::PoolingKey::rank));
  keys.texts("classifier.output_labels", labels(in.config));
}

inline void write_bert_keys(const FamilyInput& in, Keys& keys) {
  require_text(in, "hidden_act", "gelu");
  require_text(in, "position_embedding_type", "absolute");
  write_encoder_keys(in, in.sizes.context, keys);
}

inline void write_roberta_keys(const FamilyInput& in, Keys& keys) {
  require_text(in, "hidden_act", "gelu");
  require_text(in, "position_embedding_type", "absolute");
  const std::uint64_t first = first_position(in.config);
  MICA_CHECK(first < in.sizes.context, file, in.config.where("pad_token_id"), " is ", first - 1,
             "; there are ", in.sizes.context, " positions");
  write_encoder_keys(in, in.sizes.context - first, keys);
}

inline constexpr KeyName bert_names[] = {{"rms_norm_eps", "layer_norm_eps"}};

}  // namespace detail

/// A reranker's dense layer is the pooler.
inline constexpr Family bert = {.arch = "bert",
                                .model_types = "bert",
                                .tables = detail::bert_tables,
                                .defaults = {.context = 512, .epsilon = 1e-12},
                                .write_keys = detail::write_bert_keys,
                                .names = detail::bert_names,
                                .skips = detail::skips_of_bert};

/// The first rows of learned positions, which no text has, are left out.
inline constexpr Family roberta = {.arch = "bert",
                                   .model_types = "roberta xlm-roberta",
                                   .tables = detail::roberta_tables,
                                   .defaults = {.context = 512, .epsilon = 1e-12},
                                   .write_keys = detail::write_roberta_keys,
                                   .names = detail::bert_names,
                                   .skips = detail::skips_of_bert};

namespace detail {

inline constexpr TensorRule nomic_blocks[] = {
    {"emb_ln.weight", "token_embd_norm.weight", "d"},
    {"emb_ln.bias", "token_embd_norm.bias", "d"},
    {"encoder.layers.#.attn.Wqkv.weight", "blk.#.attn_qkv.weight", "* d"},
    {"encoder.layers.#.attn.out_proj.weight", "blk.#.attn_output.weight", "d q"},
    {"encoder.layers.#.norm1.weight", "blk.#.attn_output_norm.weight", "d"},
    {"encoder.layers.#.norm1.bias", "blk.#.attn_output_norm.bias", "d"},
    {"encoder.layers.#.mlp.fc12.weight", "blk.#.ffn_gate.weight", "* d"},
    {"encoder.layers.#.mlp.fc11.weight", "blk.#.ffn_up.weight", "* d"},
    {"encoder.layers.#.mlp.fc2.weight", "blk.#.ffn_down.weight", "d *"},
    {"encoder.layers.#.norm2.weight", "blk.#.layer_output_norm.weight", "d"},
    {"encoder.layers.#.norm2.bias", "blk.#.layer_output_norm.bias", "d"},
};

inline constexpr std::span<const TensorRule> nomic_tables[] = {bert_embeddings, nomic_blocks};

inline constexpr KeyName nomic_names[] = {{"hidden_size", "n_embd"},
                                          {"num_hidden_layers", "n_layer"},
                                          {"num_attention_heads", "n_head"},
                                          {"intermediate_size", "n_inner"},
                                          {"rope_theta", "rotary_emb_base"},
                                          {"max_position_embeddings", "n_positions"},
                                          {"rms_norm_eps", "layer_norm_epsilon"}};

/// The published models have more positions than they were trained for.
inline void write_nomic_keys(const FamilyInput& in, Keys& keys) {
  MICA_CHECK(in.config.count_or("moe_every_n_layers", 0) == 0, unsupported,
             in.config.where("moe_every_n_layers"), " is above 0; this family is supported without experts");
  require_text(in, "activation_function", "swiglu");
  require_flag(in, "prenorm", false);
  require_flag(in, "rotary_emb_interleaved", false);
  const double share = in.config.real_or("rotary_emb_fraction", 1.0);
  MICA_CHECK(share == 1.0, unsupported, in.config.where("rotary_emb_fraction"), " is ", share,
             "; this family is supported with 1 alone");
  write_encoder_keys(in, std::min(in.sizes.context, in.config.count_or("max_trained_positions", 2048)), keys);
  keys.real("rope.freq_base", in.rope.base);
}

}  // namespace detail

/// Versions 1 and 1.5. A model with experts is refused.
inline constexpr Family nomic_bert = {.arch = "nomic-bert",
                                      .model_types = "nomic_bert",
                                      .tables = detail::nomic_tables,
                                      .defaults = {.context = 2048, .epsilon = 1e-12},
                                      .write_keys = detail::write_nomic_keys,
                                      .names = detail::nomic_names,
                                      .skips = detail::skips_of_bert};

namespace detail {

/// Gate and up are one matrix, the gate first.
inline constexpr TensorRule jina_feed_forward[] = {
    {"encoder.layer.#.mlp.gated_layers.weight", "blk.#.ffn_up.weight", "* d"},
    {"encoder.layer.#.mlp.wo.weight", "blk.#.ffn_down.weight", "d *"},
    {"encoder.layer.#.mlp.wo.bias", "blk.#.ffn_down.bias", "d"},
    {"encoder.layer.#.mlp.layernorm.weight", "blk.#.layer_output_norm.weight", "d"},
    {"encoder.layer.#.mlp.layernorm.bias", "blk.#.layer_output_norm.bias", "d"},
};

inline constexpr std::span<const TensorRule> jina_tables[] = {bert_embeddings, bert_attention,
                                                              jina_feed_forward};

[[nodiscard]] inline bool has_alibi(const Config& config) {
  const Json* const type = config.find("position_embedding_type");
  return type != nullptr && type->is_string() && type->get<std::string>() == "alibi";
}

inline void write_jina_keys(const FamilyInput& in, Keys& keys) {
  require_text(in, "hidden_act", "gelu");
  require_text(in, "feed_forward_type", "geglu");
  MICA_CHECK(!classifies(in.config), unsupported, in.config.where("architectures"),
             " names a classifier; this family is supported without one");
  write_encoder_keys(in, in.sizes.context, keys);
}

}  // namespace detail

/// Its `model_type` is that of BERT; its `position_embedding_type` is alibi.
inline constexpr Family jina_bert_v2 = {.arch = "jina-bert-v2",
                                        .model_types = "bert",
                                        .tables = detail::jina_tables,
                                        .defaults = {.context = 8192, .epsilon = 1e-12},
                                        .write_keys = detail::write_jina_keys,
                                        .matches = detail::has_alibi,
                                        .names = detail::bert_names,
                                        .skips = detail::skips_of_bert};

}  // namespace mica::convert::families
