// SPDX-License-Identifier: Apache-2.0

#include "arch/reference.hpp"
#include "io/temporary_folder.hpp"
#include "mica/arch/qwen.hpp"

#include <doctest/doctest.h>

namespace mica::test::qwen2moe_test {
namespace {

using namespace reference;

constexpr std::size_t width = 24, heads = 4, kv_heads = 2, head_dim = 6, layers = 2;
constexpr std::size_t count = 5, used = 2, expert_width = 12, shared_width = 20;

FamilyFile make() {
  FamilyFile file("qwen2moe");
  file.shape(layers, width, heads, kv_heads, head_dim, 30).set("expert_count", static_cast<unsigned>(count));
  file.set("expert_used_count", static_cast<unsigned>(used));
  file.set("expert_feed_forward_length", static_cast<unsigned>(expert_width));
  file.set("expert_shared_feed_forward_length", static_cast<unsigned>(shared_width));
  file.matrix("token_embd.weight", family_vocabulary, width, 4).vector("output_norm.weight", width);
  file.matrix("output.weight", family_vocabulary, width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
    file.vector(arch::tensor_names::layer_bias(i, "attn_q"), heads * head_dim, 0);
    file.vector(arch::tensor_names::layer_bias(i, "attn_k"), kv_heads * head_dim, 0);
    file.vector(arch::tensor_names::layer_bias(i, "attn_v"), kv_heads * head_dim, 0);
    file.layer_vector(i, "ffn_norm", width).layer_matrix(i, "ffn_gate_inp", count, width, 2);
    file.layer_matrix(i, "ffn_gate_exps", count * expert_width, width);
    file.layer_matrix(i, "ffn_up_exps", count * expert_width, width);
    file.layer_matrix(i, "ffn_down_exps", count * width, expert_width);
    file.layer_matrix(i, "ffn_gate_shexp", shared_width, width);
    file.layer_matrix(i, "ffn_up_shexp", shared_width, width);
    file.layer_matrix(i, "ffn_down_shexp", width, shared_width);
    file.layer_matrix(i, "ffn_gate_inp_shexp", 1, width, 2);
  }
  return file;
}

/// Experts whose weights do not sum to 1, and one for every token by its gate.
Row blocks(const FamilyFile& file, std::size_t i, const Row& x) {
  const Row chosen = experts(file, i, x, times(file.layer(i, "ffn_gate_inp"), x), used, false, silu);
  const Row hidden =
      gated(times(file.layer(i, "ffn_gate_shexp"), x), times(file.layer(i, "ffn_up_shexp"), x), silu);
  const double gate = sigmoid(times(file.layer(i, "ffn_gate_inp_shexp"), x)[0]);
  return add(chosen, times(file.layer(i, "ffn_down_shexp"), hidden), gate);
}

Rows expected(const FamilyFile& file, std::span<const text::TokenId> ids) {
  const Attention a{heads, kv_heads, head_dim, 1 / std::sqrt(double{head_dim}), true, head_dim};
  Rows x = embedded(file, ids);
  for (std::size_t i = 0; i < layers; ++i) {
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], attended[t]);
      x[t] = add(x[t], blocks(file, i, normed(x[t], file.layer(i, "ffn_norm"))));
    }
  }
  return logits(file, x);
}

}  // namespace

TEST_CASE("Qwen 2 with experts computes what its formulas say") {
  FamilyFile file = make();
  const auto ids = random_ids(13, family_vocabulary);
  const Rows wanted = expected(file, ids);
  check_family<arch::Qwen2Moe>(file, ids, wanted);
  file.set("expert_weights_scale", 3.0f);  // no Qwen reads it
  check_family<arch::Qwen2Moe>(file, ids, wanted);
}

TEST_CASE("the widths of Qwen's experts may follow from that of the dense block") {
  FamilyFile file = make();
  file.without("expert_feed_forward_length").without("expert_shared_feed_forward_length");
  const arch::Config c = arch::Qwen2Moe::config(file.document());
  CHECK(c.layers[0].get<block::Experts>().ff_width == 15);
  CHECK(c.layers[0].get<block::Experts>().shared_ff_width == 30);
  CHECK(c.layers[0].get<block::Experts>().shared_gate);
  CHECK_FALSE(c.layers[0].get<block::Experts>().normalized);
  CHECK_FALSE(c.layers[0].has<block::DenseFeedForward>());
}

TEST_CASE("a Qwen 2 file with experts whose keys make no sense is refused by name") {
  const auto refused = [](auto edit) {
    FamilyFile file = make();
    edit(file);
    return refusal([&] { return arch::Qwen2Moe::config(file.document()); });
  };
  CHECK(mentions(refused([](FamilyFile& f) { f.set("expert_count", 0u); }), "expert_count", "0", "1 to"));
  CHECK(mentions(refused([](FamilyFile& f) { f.set("expert_used_count", 0u); }), "expert_used_count", "0",
                 "1 to"));
  CHECK(mentions(refused([](FamilyFile& f) { f.set("expert_used_count", 6u); }), "expert_used_count",
                 "1 to 5"));
  CHECK(mentions(refused([](FamilyFile& f) { f.without("expert_used_count"); }), "expert_used_count",
                 "missing"));
  CHECK(mentions(refused([](FamilyFile& f) { f.set("expert_shared_feed_forward_length", 0u); }),
                 "expert_shared_feed_forward_length", "1 to"));
}

}  // namespace mica::test::qwen2moe_test
