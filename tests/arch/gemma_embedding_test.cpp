// SPDX-License-Identifier: Apache-2.0

#include "mica/arch/gemma_embedding.hpp"

#include "arch/encoder_file.hpp"
#include "mica/arch/qwen.hpp"

#include <doctest/doctest.h>

namespace mica::test::gemma_embedding_test {
namespace {

using namespace reference;

constexpr std::size_t width = 22, heads = 4, kv_heads = 2, head_dim = 6, ff_width = 30, layers = 7,
                      window = 20, between = 40;

FamilyFile make() {
  FamilyFile file("gemma-embedding");
  file.shape(layers, width, heads, kv_heads, head_dim, ff_width).set("rope.freq_base", 1e6f);
  file.set("attention.sliding_window", static_cast<unsigned>(window)).set("context_length", 128u);
  file.matrix("token_embd.weight", family_vocabulary, width).vector("output_norm.weight", width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
    add_feed_forward(file, i, width, ff_width);
    file.layer_vector(i, "attn_q_norm", head_dim).layer_vector(i, "attn_k_norm", head_dim);
    file.layer_vector(i, "post_attention_norm", width).layer_vector(i, "post_ffw_norm", width);
  }
  file.matrix("dense_2.weight", between, width).matrix("dense_3.weight", width, between);
  return file;
}

Rows states_of(const FamilyFile& file, const Ids& ids) {
  Rows x = embedded(file, ids, std::sqrt(double{width}));
  for (std::size_t i = 0; i < layers; ++i) {
    Attention a{heads, kv_heads, head_dim, 1 / std::sqrt(double{head_dim}), true, head_dim, 1e6};
    a.both_ways = true;
    if (i != 5) a.base = 10000, a.window = window / 2 + 1;
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], normed(attended[t], file.layer(i, "post_attention_norm")));
      const Row y = feed_forward(file, i, normed(x[t], file.layer(i, "ffn_norm")), gelu);
      x[t] = add(x[t], normed(y, file.layer(i, "post_ffw_norm")));
    }
  }
  return normed_rows(x, file["output_norm.weight"]);
}

/// Qwen 3 with norms of queries and keys.
FamilyFile make_qwen3() {
  FamilyFile file("qwen3");
  file.shape(2, width, heads, kv_heads, head_dim, ff_width)
      .set("pooling_type", 3u)
      .set("context_length", 128u);
  file.matrix("token_embd.weight", family_vocabulary, width, 4).vector("output_norm.weight", width);
  for (std::size_t i = 0; i < 2; ++i) {
    add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
    add_feed_forward(file, i, width, ff_width);
    file.layer_vector(i, "attn_q_norm", head_dim).layer_vector(i, "attn_k_norm", head_dim);
  }
  return file;
}
Rows qwen3_states(const FamilyFile& file, const Ids& ids) {
  Rows x = embedded(file, ids);
  const Attention a{heads, kv_heads, head_dim, 1 / std::sqrt(double{head_dim}), true, head_dim, 10000};
  for (std::size_t i = 0; i < 2; ++i) {
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], attended[t]);
      x[t] = add(x[t], feed_forward(file, i, normed(x[t], file.layer(i, "ffn_norm")), silu));
    }
  }
  return normed_rows(x, file["output_norm.weight"]);
}

}  // namespace

TEST_CASE("EmbeddingGemma sees both ways, and its mean goes through two dense layers") {
  FamilyFile file = make();
  check_encoder<arch::GemmaEmbedding>(
      file, [&](const Ids& ids) { return states_of(file, ids); },
      [&](const Rows& rows) {
        return times(file["dense_3.weight"], times(file["dense_2.weight"], mean_of(rows)));
      },
      5e-5);
}

TEST_CASE("a decoder embeds with its last token, or with the mean over steps of any size") {
  FamilyFile file = make_qwen3();
  const auto states = [&](const Ids& ids) { return qwen3_states(file, ids); };
  check_encoder<arch::Qwen3>(file, states, [](const Rows& rows) { return rows.back(); });
  file.set("pooling_type", 1u);
  check_encoder<arch::Qwen3>(file, states, mean_of);
  const std::vector<Ids> texts = three_texts();
  const auto whole = embed_family<arch::Qwen3>(file, texts, 128, {}, 128);
  CHECK(same_bits(whole, embed_family<arch::Qwen3>(file, texts, 7, {}, 128)));
}

TEST_CASE("a reranker of Qwen 3 gives probabilities") {
  FamilyFile file = make_qwen3();
  file.set("pooling_type", 4u).matrix("cls.output.weight", 2, width);
  const Ids ids = {2, 3, 9, 4, 5};
  const Row scores = times(file["cls.output.weight"], qwen3_states(file, ids).back());
  const double yes = 1 / (1 + std::exp(scores[1] - scores[0]));
  CHECK(distance(embed_family<arch::Qwen3>(file, {ids}, 16), {{yes, 1 - yes}}) < 2e-5);
}

}  // namespace mica::test::gemma_embedding_test
