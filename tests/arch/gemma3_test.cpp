// SPDX-License-Identifier: Apache-2.0

#include "arch/reference.hpp"
#include "io/temporary_folder.hpp"
#include "mica/arch/gemma.hpp"

#include <doctest/doctest.h>

namespace mica::test::gemma3_test {
namespace {

using namespace reference;

constexpr std::size_t width = 22, heads = 4, kv_heads = 2, head_dim = 6, ff_width = 30, layers = 7;

FamilyFile make(unsigned window) {
  FamilyFile file("gemma3");
  file.shape(layers, width, heads, kv_heads, head_dim, ff_width).set("rope.freq_base", 1e6f);
  if (window != 0) file.set("attention.sliding_window", window);
  file.matrix("token_embd.weight", family_vocabulary, width).vector("output_norm.weight", width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
    add_feed_forward(file, i, width, ff_width);
    file.layer_vector(i, "attn_q_norm", head_dim).layer_vector(i, "attn_k_norm", head_dim);
    file.layer_vector(i, "post_attention_norm", width).layer_vector(i, "post_ffw_norm", width);
  }
  return file;
}

Rows expected(const FamilyFile& file, std::span<const text::TokenId> ids, std::size_t window,
              double softcap) {
  Rows x = embedded(file, ids, std::sqrt(double{width}));
  for (std::size_t i = 0; i < layers; ++i) {
    Attention a{heads, kv_heads, head_dim, 1 / std::sqrt(double{head_dim}), true, head_dim, 1e6};
    if (window != 0 && i != 5) a.base = 10000, a.window = window;
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], normed(attended[t], file.layer(i, "post_attention_norm")));
      const Row y = feed_forward(file, i, normed(x[t], file.layer(i, "ffn_norm")), gelu);
      x[t] = add(x[t], normed(y, file.layer(i, "post_ffw_norm")));
    }
  }
  return logits(file, x, 1, softcap);
}

}  // namespace

TEST_CASE("Gemma 3 computes what its formulas say, with windows and without") {
  const auto ids = random_ids(13, family_vocabulary);
  FamilyFile windows = make(4), none = make(0);
  check_family<arch::Gemma3>(windows, ids, expected(windows, ids, 4, 0));
  check_family<arch::Gemma3>(none, ids, expected(none, ids, 0, 0));
  none.set("final_logit_softcapping", 5.0f);
  check_family<arch::Gemma3>(none, ids, expected(none, ids, 0, 5));
}

TEST_CASE("scaling of Gemma 3 is for layers without a window") {
  FamilyFile file = make(4);
  file.set("rope.scaling.type", "linear").set("rope.scaling.factor", 8.0f);
  const arch::Config c = arch::Gemma3::config(file.document());
  CHECK(c.ropes[c.layers[5].get<block::Attention>().rope].scale == 8);
  CHECK(c.ropes[c.layers[5].get<block::Attention>().rope].base == 1e6);
  CHECK(c.ropes[c.layers[0].get<block::Attention>().rope].scale == 1);
  CHECK(c.ropes[c.layers[0].get<block::Attention>().rope].base == 10000);
}

TEST_CASE("a Gemma 3 file with keys that make no sense is refused by name") {
  const auto refused = [](FamilyFile& file) {
    return refusal([&] { return arch::Gemma3::config(file.document()); });
  };
  CHECK(mentions(refused(make(4).set("attention.sliding_window", 1u << 31)), "sliding_window", "0 to"));
  CHECK(mentions(refused(make(4).set("attention.sliding_window_pattern", 0u)), "sliding_window_pattern",
                 "1 to"));
  CHECK(mentions(refused(make(4).set("rope.freq_base_swa", -1.0f)), "rope.freq_base_swa", "above 0"));
}

}  // namespace mica::test::gemma3_test
