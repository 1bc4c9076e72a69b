// SPDX-License-Identifier: Apache-2.0

#include "arch/reference.hpp"
#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace mica::test::granite_test {
namespace {

using namespace reference;

constexpr std::size_t width = 24, heads = 4, kv_heads = 2, head_dim = 6, ff_width = 30, layers = 2;

FamilyFile make() {
  FamilyFile file("granite");
  file.shape(layers, width, heads, kv_heads, head_dim, ff_width);
  file.set("embedding_scale", 3.0f).set("residual_scale", 0.5f).set("logit_scale", 4.0f);
  file.set("attention.scale", 0.3f);
  file.matrix("token_embd.weight", family_vocabulary, width, 2).vector("output_norm.weight", width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
    add_feed_forward(file, i, width, ff_width);
  }
  return file;
}

/// rotated: numbers of a head that rotate.
Rows expected(const FamilyFile& file, std::span<const text::TokenId> ids, std::size_t rotated) {
  const Attention a{heads, kv_heads, head_dim, 0.3f, false, rotated};
  Rows x = embedded(file, ids, 3);
  for (std::size_t i = 0; i < layers; ++i) {
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], attended[t], 0.5);
      x[t] = add(x[t], feed_forward(file, i, normed(x[t], file.layer(i, "ffn_norm")), silu), 0.5);
    }
  }
  return logits(file, x, 0.25);
}

}  // namespace

TEST_CASE("Granite computes what its formulas say") {
  FamilyFile file = make();
  const auto ids = random_ids(13, family_vocabulary);
  check_family<arch::Granite>(file, ids, expected(file, ids, head_dim));
}

TEST_CASE("a Granite file may say that nothing rotates") {
  FamilyFile file = make();
  file.set("rope.scaling.finetuned", false);
  const auto ids = random_ids(13, family_vocabulary);
  check_family<arch::Granite>(file, ids, expected(file, ids, 0));
}

TEST_CASE("a Granite file without its scales is plain") {
  FamilyFile file = make();
  file.without("embedding_scale").without("residual_scale").without("logit_scale").without("attention.scale");
  const arch::Config c = arch::Granite::config(file.document());
  CHECK(c.embedding_scale == 1);
  CHECK(c.residual_scale == 1);
  CHECK(c.logit_scale == 1);
  CHECK(c.layers[0].get<block::Attention>().attention_scale == 0);
}

TEST_CASE("scales of Granite that are no positive finite number are refused by name") {
  for (const std::string key : {"embedding_scale", "residual_scale", "logit_scale", "attention.scale"}) {
    for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity()}) {
      CAPTURE(key);
      CAPTURE(bad);
      FamilyFile file = make();
      file.set(key, bad);
      CHECK(mentions(refusal([&] { return arch::Granite::config(file.document()); }), "granite." + key,
                     "above 0"));
    }
  }
}

}  // namespace mica::test::granite_test
