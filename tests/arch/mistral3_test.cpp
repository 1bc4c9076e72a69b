// SPDX-License-Identifier: Apache-2.0

#include "arch/reference.hpp"
#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace mica::test::mistral3_test {
namespace {

using namespace reference;

constexpr std::size_t width = 20, heads = 4, kv_heads = 2, head_dim = 6, ff_width = 30, layers = 2;
constexpr std::size_t step = 5;

FamilyFile make() {
  FamilyFile file("mistral3");
  file.shape(layers, width, heads, kv_heads, head_dim, ff_width).set("attention.temperature_scale", 0.3f);
  file.set("rope.scaling.original_context_length", static_cast<unsigned>(step));
  file.matrix("token_embd.weight", family_vocabulary, width, 4).vector("output_norm.weight", width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
    add_feed_forward(file, i, width, ff_width);
  }
  return file;
}

Rows expected(const FamilyFile& file, std::span<const text::TokenId> ids) {
  const Attention a{heads, kv_heads, head_dim, 1 / std::sqrt(double{head_dim}), false, head_dim};
  const auto growth = [](std::size_t t) { return 1 + 0.3 * std::log(1 + static_cast<double>(t / step)); };
  Rows x = embedded(file, ids);
  for (std::size_t i = 0; i < layers; ++i) {
    const Rows y = normed_rows(x, file.layer(i, "attn_norm"));
    const Rows attended = attention(file, i, a, y, keep(file, i, a, y), growth);
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], attended[t]);
      x[t] = add(x[t], feed_forward(file, i, normed(x[t], file.layer(i, "ffn_norm")), silu));
    }
  }
  return logits(file, x);
}

arch::Config config(FamilyFile& file) { return arch::Mistral3::config(file.document()); }

}  // namespace

TEST_CASE("Mistral 3 computes what its formulas say") {
  FamilyFile file = make();
  const auto ids = random_ids(23, family_vocabulary);
  check_family<arch::Mistral3>(file, ids, expected(file, ids));
}

TEST_CASE("queries of Mistral 3 grow by the context it was trained for, or not at all") {
  FamilyFile file = make();
  CHECK(config(file).layers[1].get<block::Attention>().position_step == step);
  CHECK(config(make().without("rope.scaling.original_context_length"))
            .layers[1]
            .get<block::Attention>()
            .position_step == 64);
  CHECK(config(make().without("attention.temperature_scale"))
            .layers[1]
            .get<block::Attention>()
            .position_scale == 0);
}

TEST_CASE("a multiplier takes YaRN's growth back") {
  FamilyFile file = make();
  file.set("rope.scaling.type", "yarn").set("rope.scaling.factor", 16.0f);
  CHECK(config(file).ropes[0].magnitude == 1);
  file.set("rope.scaling.yarn_log_multiplier", 1.0f);
  CHECK(config(file).ropes[0].magnitude * (1 + 0.1 * std::log(16.0)) == doctest::Approx(1));
}

TEST_CASE("a Mistral 3 file with keys that make no sense is refused by name") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::string key : {"attention.temperature_scale", "rope.scaling.yarn_log_multiplier"}) {
    CAPTURE(key);
    CHECK(mentions(refusal([&] { return config(make().set(key, infinity)); }), "mistral3." + key, "above 0"));
    CHECK(mentions(refusal([&] { return config(make().set(key, -1.0f)); }), "mistral3." + key, "above 0"));
  }
  CHECK(mentions(refusal([&] { return config(make().set("rope.scaling.original_context_length", 0u)); }),
                 "original_context_length", "1 to"));
}

}  // namespace mica::test::mistral3_test
