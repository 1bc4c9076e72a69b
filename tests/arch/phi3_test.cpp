// SPDX-License-Identifier: Apache-2.0

#include "arch/reference.hpp"
#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"

#include <doctest/doctest.h>

namespace mica::test::phi3_test {
namespace {

using namespace reference;

constexpr std::size_t width = 32, heads = 4, kv_heads = 2, head_dim = 8, ff_width = 30, layers = 2,
                      rotated = 6;

Numbers stacked(std::initializer_list<const Numbers*> parts) {
  Numbers all{{}, 0, (*parts.begin())->cols};
  for (const Numbers* const part : parts) {
    all.rows += part->rows;
    all.values.insert(all.values.end(), part->values.begin(), part->values.end());
  }
  return all;
}

/// A part of each head rotates, as in Phi-4-mini.
FamilyFile make() {
  FamilyFile file("phi3");
  file.shape(layers, width, heads, kv_heads, head_dim, ff_width);
  file.set("rope.dimension_count", static_cast<unsigned>(rotated)).set("attention.sliding_window", 3u);
  file.matrix("token_embd.weight", family_vocabulary, width, 4).vector("output_norm.weight", width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
    add_feed_forward(file, i, width, ff_width);
  }
  return file;
}

/// The same with attention's inputs in one tensor, and the gate and what it gates in another.
void fuse(FamilyFile& file) {
  for (std::size_t i = 0; i < layers; ++i) {
    const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
    Numbers qkv = stacked({&file[name("attn_q")], &file[name("attn_k")], &file[name("attn_v")]});
    Numbers up = stacked({&file[name("ffn_gate")], &file[name("ffn_up")]});
    file.put(name("attn_qkv"), std::move(qkv)).put(name("ffn_up"), std::move(up));
    for (const char* const part : {"attn_q", "attn_k", "attn_v", "ffn_gate"}) file.without(name(part));
  }
}

Rows expected(const FamilyFile& file, std::span<const text::TokenId> ids) {
  const Attention a{heads, kv_heads, head_dim, 1 / std::sqrt(double{head_dim}), true, rotated};
  Rows x = embedded(file, ids);
  for (std::size_t i = 0; i < layers; ++i) {
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], attended[t]);
      x[t] = add(x[t], feed_forward(file, i, normed(x[t], file.layer(i, "ffn_norm")), silu));
    }
  }
  return logits(file, x);
}

}  // namespace

TEST_CASE("Phi 3 computes what its formulas say, fused or not, and sees everything") {
  FamilyFile file = make();
  const auto ids = random_ids(13, family_vocabulary);
  const Rows wanted = expected(file, ids);
  check_family<arch::Phi3>(file, ids, wanted);
  fuse(file);
  check_family<arch::Phi3>(file, ids, wanted);
}

TEST_CASE("long factors of Phi 3 take the place of short ones beyond the original context") {
  FamilyFile file = make();
  file.vector("rope_factors_long.weight", rotated / 2).vector("rope_factors_short.weight", rotated / 2);
  file.set("rope.scaling.original_context_length", 16u).set("rope.scaling.attn_factor", 1.19f);
  const arch::RopeConfig rope = arch::Phi3::config(file.document()).ropes[0];
  CHECK(rope.long_factors == file["rope_factors_long.weight"].values);
  CHECK(rope.factors == file["rope_factors_short.weight"].values);
  CHECK(rope.original_context == 16);
  CHECK(rope.magnitude == doctest::Approx(1.19));
  const auto refused = [&] { return refusal([&] { return arch::Phi3::config(file.document()); }); };
  file.vector("rope_factors_long.weight", rotated);
  CHECK(mentions(refused(), "rope_factors_long.weight", "F32 3"));
  file.set("rope.dimension_count", 10u);
  CHECK(mentions(refused(), "rope.dimension_count", "2 to 8"));
}

}  // namespace mica::test::phi3_test
