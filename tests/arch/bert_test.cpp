// SPDX-License-Identifier: Apache-2.0

#include "mica/arch/bert.hpp"

#include "arch/encoder_file.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

namespace mica::test::bert_test {
namespace {

using namespace reference;

constexpr std::size_t width = 24, heads = 4, head_dim = 6, ff_width = 30, layers = 2, positions = 128;
constexpr text::TokenId separator = 7;

void add_norm(FamilyFile& file, const std::string& name, std::size_t n, bool bias = true) {
  file.vector(name + ".weight", n);
  if (bias) file.vector(name + ".bias", n, 0);
}
std::string part(std::size_t i, std::string_view name) { return arch::tensor_names::layer_plain(i, name); }

/// With biases and norms behind the blocks, as BERT has them.
FamilyFile make(const std::string& arch, bool biases, bool gate) {
  FamilyFile file(arch);
  file.shape(layers, width, heads, heads, head_dim, ff_width).without("attention.layer_norm_rms_epsilon");
  file.set("context_length", static_cast<unsigned>(positions)).set("attention.layer_norm_epsilon", 1e-5f);
  file.set("pooling_type", 1u);
  file.matrix("token_embd.weight", family_vocabulary, width, 4);
  file.matrix("token_types.weight", 2, width, 2);
  add_norm(file, "token_embd_norm", width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, width, width);
    file.without(part(i, "attn_norm.weight"));
    file.layer_matrix(i, "ffn_up", ff_width, width).layer_matrix(i, "ffn_down", width, ff_width);
    if (gate) file.layer_matrix(i, "ffn_gate", ff_width, width);
    add_norm(file, part(i, "attn_output_norm"), width);
    add_norm(file, part(i, "layer_output_norm"), width);
    if (!biases) continue;
    for (const char* const name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_down"})
      file.vector(part(i, name) + ".bias", width, 0);
    file.vector(part(i, "ffn_up.bias"), ff_width, 0);
  }
  return file;
}

Attention attention_of() {
  Attention a{heads, heads, head_dim, 1 / std::sqrt(double{head_dim})};
  a.both_ways = true;
  return a;
}

template <class FeedForward>
Rows states_of(const FamilyFile& file, const Ids& ids, const Attention& a, FeedForward&& feed_forward,
               bool separates = false) {
  Rows x = embedded(file, ids);
  std::size_t type = 0;
  for (std::size_t t = 0; t < x.size(); ++t) {
    const auto row_of = [&](const std::string& name, std::size_t row) {
      Row out(width);
      for (std::size_t k = 0; k < width; ++k) out[k] = file[name].at(row, k);
      return out;
    };
    if (file.has("position_embd.weight")) x[t] = add(x[t], row_of("position_embd.weight", t));
    x[t] = layer_normed(file, add(x[t], row_of("token_types.weight", type)), "token_embd_norm");
    if (ids[t] == separator && separates) type = 1;
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const Rows attended = attention(file, i, a, x);
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = layer_normed(file, add(x[t], attended[t]), part(i, "attn_output_norm"));
      x[t] = layer_normed(file, add(x[t], feed_forward(i, x[t])), part(i, "layer_output_norm"));
    }
  }
  return x;
}

/// down(gelu(up(x))).
Row plain(const FamilyFile& file, std::size_t i, const Row& x) {
  Row hidden = with_bias(file, i, "ffn_up", times(file.layer(i, "ffn_up"), x));
  for (double& v : hidden) v = exact_gelu(v);
  return with_bias(file, i, "ffn_down", times(file.layer(i, "ffn_down"), hidden));
}

FamilyFile make_bert() {
  FamilyFile file = make("bert", true, false);
  file.matrix("position_embd.weight", positions, width, 3);
  return file;
}
Rows bert_states(const FamilyFile& file, const Ids& ids, bool separates = false) {
  return states_of(
      file, ids, attention_of(), [&](std::size_t i, const Row& x) { return plain(file, i, x); }, separates);
}

}  // namespace

TEST_CASE("BERT computes what its formulas say, with every pooling") {
  FamilyFile file = make_bert();
  const auto states = [&](const Ids& ids) { return bert_states(file, ids); };
  check_encoder<arch::Bert>(file, states, mean_of);
  file.set("pooling_type", 2u);
  check_encoder<arch::Bert>(file, states, [](const Rows& rows) { return rows.front(); });
  file.set("pooling_type", 3u);
  check_encoder<arch::Bert>(file, states, [](const Rows& rows) { return rows.back(); });
}

TEST_CASE("tokens behind the first separator of BERT are of the second type") {
  FamilyFile file = make_bert();
  const Ids ids = {2, 3, separator, 4, 5, separator};
  file.set_plain("tokenizer.ggml.seperator_token_id", static_cast<unsigned>(separator));
  CHECK(distance(embed_family<arch::Bert>(file, {ids}, 16),
                 of_length_one({mean_of(bert_states(file, ids))})) < 2e-5);  // not without WordPiece
  file.set_plain("tokenizer.ggml.model", std::string_view("bert"));
  CHECK(distance(embed_family<arch::Bert>(file, {ids}, 16),
                 of_length_one({mean_of(bert_states(file, ids, true))})) < 2e-5);
}

TEST_CASE("a reranker's rows are the scores of its classifier, whatever pooling is asked for") {
  FamilyFile file = make_bert();
  file.set("pooling_type", 4u).matrix("cls.weight", width, width).vector("cls.bias", width, 0);
  file.matrix("cls.output.weight", 1, width).vector("cls.output.bias", 1, 0);
  const Ids ids = {2, 3, 9, 4, 5};
  Row hidden = add(times(file["cls.weight"], bert_states(file, ids).front()), file["cls.bias"]);
  for (double& v : hidden) v = std::tanh(v);
  const Row score = add(times(file["cls.output.weight"], hidden), file["cls.output.bias"]);
  const auto found = embed_family<arch::Bert>(file, {ids}, 16);
  REQUIRE(found.size() == 1);
  CHECK(std::fabs(static_cast<double>(found[0]) - score[0]) < 2e-5);
  CHECK(mentions(refusal([&] { embed_family<arch::Bert>(file, {ids}, 16, {.dims = 1}); }), "reranker"));
  file.without("cls.weight").without("cls.output.weight");
  CHECK(mentions(refusal([&] { return arch::Bert::config(file.document()); }), "pooling_type", "cls.weight"));
}

TEST_CASE("the first numbers of an embedding are normed by themselves, or not at all") {
  FamilyFile file = make_bert();
  const Ids ids = {2, 3, 9, 4, 5};
  Row mean = mean_of(bert_states(file, ids));
  CHECK(distance(embed_family<arch::Bert>(file, {ids}, 16, {.normalize = false}), {mean}) < 2e-5);
  mean.resize(5);
  CHECK(distance(embed_family<arch::Bert>(file, {ids}, 16, {.dims = 5}), of_length_one({mean})) < 2e-5);
  CHECK(mentions(refusal([&] { embed_family<arch::Bert>(file, {ids}, 16, {.dims = 25}); }), "dims", "24"));
}

TEST_CASE("a context beyond BERT's positions, a missing pooling and an answer are refused") {
  FamilyFile file = make_bert();
  CHECK(mentions(refusal([&] { embed_family<arch::Bert>(file, {{1}}, 16, {}, 129); }), "129", "128"));
  file.without("pooling_type");
  CHECK(mentions(refusal([&] { embed_family<arch::Bert>(file, {{1}}, 16); }), "mean, cls or last"));
}

TEST_CASE("nomic-bert rotates, and gates with SiLU") {
  FamilyFile file = make("nomic-bert", false, true);
  file.set("rope.freq_base", 1000.0f);
  Attention a = attention_of();
  a.dims = head_dim;
  a.base = 1000;
  check_encoder<arch::NomicBert>(
      file,
      [&](const Ids& ids) {
        return states_of(file, ids, a,
                         [&](std::size_t i, const Row& x) { return feed_forward(file, i, x, silu); });
      },
      mean_of);
}

TEST_CASE("jina-bert-v2 lowers scores by distance, and gates with the exact GELU") {
  FamilyFile file = make("jina-bert-v2", false, true);
  for (std::size_t i = 0; i < layers; ++i) file.vector(part(i, "ffn_down.bias"), width, 0);
  Attention a = attention_of();
  a.slopes = {0.25, 1.0 / 16, 1.0 / 64, 1.0 / 256};
  check_encoder<arch::JinaBertV2>(
      file,
      [&](const Ids& ids) {
        return states_of(file, ids, a, [&](std::size_t i, const Row& x) {
          return with_bias(file, i, "ffn_down", feed_forward(file, i, x, exact_gelu));
        });
      },
      mean_of);
}

TEST_CASE("ModernBERT has its norms before the blocks, and windows in two layers of three") {
  constexpr std::size_t deep = 4, window = 20;
  FamilyFile file("modern-bert");
  file.shape(deep, width, heads, heads, head_dim, ff_width).without("attention.layer_norm_rms_epsilon");
  file.set("attention.layer_norm_epsilon", 1e-5f).set("pooling_type", 2u).set("rope.freq_base", 160000.0f);
  file.set("attention.sliding_window", static_cast<unsigned>(window)).set("context_length", 128u);
  file.matrix("token_embd.weight", family_vocabulary, width, 4);
  add_norm(file, "token_embd_norm", width, false);
  add_norm(file, "output_norm", width, false);
  for (std::size_t i = 0; i < deep; ++i) {
    add_attention(file, i, width, width, width);
    if (i == 0) file.without(part(i, "attn_norm.weight"));
    add_feed_forward(file, i, width, ff_width);
  }
  const auto states = [&](const Ids& ids) {
    Rows x = embedded(file, ids);
    for (Row& row : x) row = layer_normed(file, row, "token_embd_norm");
    for (std::size_t i = 0; i < deep; ++i) {
      Attention a = attention_of();
      a.dims = head_dim;
      a.base = i % 3 == 0 ? 160000 : 10000;
      a.window = i % 3 == 0 ? 0 : window / 2 + 1;
      Rows input = x;
      if (i != 0)
        for (Row& row : input) row = layer_normed(file, row, part(i, "attn_norm"));
      const Rows attended = attention(file, i, a, input);
      for (std::size_t t = 0; t < x.size(); ++t) {
        x[t] = add(x[t], attended[t]);
        x[t] = add(x[t], feed_forward(file, i, layer_normed(file, x[t], part(i, "ffn_norm")), exact_gelu));
      }
    }
    for (Row& row : x) row = layer_normed(file, row, "output_norm");
    return x;
  };
  check_encoder<arch::ModernBert>(file, states, [](const Rows& rows) { return rows.front(); });
}

}  // namespace mica::test::bert_test
