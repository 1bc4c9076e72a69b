// SPDX-License-Identifier: Apache-2.0

#include "mica/arch/gemma4.hpp"

#include "arch/reference.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

namespace mica::test::gemma4_test {
namespace {

using namespace reference;

constexpr std::size_t width = 22, heads = 4, kv_heads = 2, ff_width = 30, layers = 4;
constexpr std::size_t experts_count = 5, used = 2, expert_width = 12;

/// Layers 0 and 2 have a window and narrow heads; values of the others are their keys.
bool windowed(std::size_t i) { return i % 2 == 0; }
std::size_t head_dim(std::size_t i) { return windowed(i) ? 6 : 10; }
/// All but the first have experts beside the dense block.
bool sparse(std::size_t i) { return i != 0; }

void add_experts(FamilyFile& file, std::size_t i) {
  file.layer_matrix(i, "ffn_gate_inp", experts_count, width, 5.0);
  file.vector(arch::tensor_names::layer_part(i, "ffn_gate_inp", "scale"), width);
  file.layer_matrix(i, "ffn_gate_exps", experts_count * expert_width, width);
  file.layer_matrix(i, "ffn_up_exps", experts_count * expert_width, width);
  file.layer_matrix(i, "ffn_down_exps", experts_count * width, expert_width);
  file.vector(arch::tensor_names::layer_part(i, "ffn_down_exps", "scale"), experts_count);
  for (const char* const norm : {"post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"}) {
    file.layer_vector(i, norm, width);
  }
}

FamilyFile make() {
  FamilyFile file("gemma4");
  file.shape(layers, width, heads, kv_heads, 10, ff_width).set("attention.sliding_window", 4u);
  file.set("attention.key_length_swa", 6u).set("attention.value_length_swa", 6u);
  file.set_array("attention.sliding_window_pattern", std::vector<bool>{true, false, true, false});
  file.set("rope.freq_base", 1e6f).set("rope.freq_base_swa", 5000.0f);
  file.set("expert_count", static_cast<unsigned>(experts_count)).set("expert_used_count", 2u);
  file.set("expert_feed_forward_length", static_cast<unsigned>(expert_width));
  file.set("final_logit_softcapping", 15.0f);
  file.matrix("token_embd.weight", family_vocabulary, width).vector("output_norm.weight", width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, heads * head_dim(i), kv_heads * head_dim(i));
    if (!windowed(i)) file.without(arch::tensor_names::layer(i, "attn_v"));
    file.layer_vector(i, "attn_q_norm", head_dim(i)).layer_vector(i, "attn_k_norm", head_dim(i));
    file.layer_vector(i, "post_attention_norm", width).layer_vector(i, "post_ffw_norm", width);
    file.vector(arch::tensor_names::layer(i, "layer_output_scale"), 1);
    add_feed_forward(file, i, width, ff_width);
    if (sparse(i)) add_experts(file, i);
  }
  return file;
}

/// The dense block, and beside it the experts that a router of its own norm chooses.
Row blocks(const FamilyFile& file, std::size_t i, const Row& x) {
  const Row dense = feed_forward(file, i, normed(x, file.layer(i, "ffn_norm")), gelu);
  if (!sparse(i)) return dense;
  const Numbers& scale = file[arch::tensor_names::layer_part(i, "ffn_gate_inp", "scale")];
  const Row read = reference::scaled(normed(x, scale), 1 / std::sqrt(double{width}));
  const Row chosen =
      experts(file, i, normed(x, file.layer(i, "pre_ffw_norm_2")), times(file.layer(i, "ffn_gate_inp"), read),
              used, true, gelu, &file[arch::tensor_names::layer_part(i, "ffn_down_exps", "scale")]);
  return add(normed(dense, file.layer(i, "post_ffw_norm_1")),
             normed(chosen, file.layer(i, "post_ffw_norm_2")));
}

Rows expected(const FamilyFile& file, std::span<const text::TokenId> ids) {
  Rows x = embedded(file, ids, std::sqrt(double{width}));
  for (std::size_t i = 0; i < layers; ++i) {
    Attention a{heads, kv_heads, head_dim(i), 1.0, true, head_dim(i), 1e6, 0, true};
    if (windowed(i)) a.base = 5000, a.window = 4;
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], normed(attended[t], file.layer(i, "post_attention_norm")));
      x[t] = add(x[t], normed(blocks(file, i, x[t]), file.layer(i, "post_ffw_norm")));
      x[t] = reference::scaled(x[t], file.layer(i, "layer_output_scale").at(0, 0));
    }
  }
  return logits(file, x, 1, 15);
}

}  // namespace

TEST_CASE("a Gemma 4 file with experts becomes a config") {
  FamilyFile file = make();
  const arch::Config c = arch::Gemma4::config(file.document());
  CHECK_FALSE(c.layers[0].has<block::ExpertsBesideDense>());
  const auto& beside = c.layers[1].get<block::ExpertsBesideDense>();
  CHECK(beside.experts.count == experts_count);
  CHECK(beside.experts.used == used);
  CHECK(beside.experts.ff_width == expert_width);
  CHECK(beside.dense.ff_width == ff_width);
  CHECK_FALSE(c.layers[0].get<block::Attention>().v_from_k);
  CHECK(c.layers[1].get<block::Attention>().v_from_k);
  CHECK(c.layers[0].get<block::Attention>().head_dim == 6);
  CHECK(c.layers[1].get<block::Attention>().head_dim == 10);
  CHECK(c.layers[2].get<block::Attention>().rope == 1);
  CHECK(c.ropes[1].base == 5000);
  CHECK(c.ropes[1].dims == 6);
}

TEST_CASE("Gemma 4 with experts beside the dense block computes what its formulas say") {
  FamilyFile file = make();
  const auto ids = random_ids(13, family_vocabulary);
  check_family<arch::Gemma4>(file, ids, expected(file, ids));
}

TEST_CASE("gates and what they gate may be one tensor of experts") {
  FamilyFile file = make();
  const auto ids = random_ids(13, family_vocabulary);
  const Rows wanted = expected(file, ids);
  for (std::size_t i = 1; i < layers; ++i) {
    const Numbers gate = file.layer(i, "ffn_gate_exps"), up = file.layer(i, "ffn_up_exps");
    Numbers fused{{}, 2 * gate.rows, width};
    const auto take = [&](const Numbers& from, std::size_t expert) {
      const auto first = from.values.begin() + static_cast<std::ptrdiff_t>(expert * expert_width * width);
      fused.values.insert(fused.values.end(), first,
                          first + static_cast<std::ptrdiff_t>(expert_width * width));
    };
    for (std::size_t e = 0; e < experts_count; ++e) take(gate, e), take(up, e);
    file.put(arch::tensor_names::layer(i, "ffn_gate_up_exps"), std::move(fused));
    file.without(arch::tensor_names::layer(i, "ffn_gate_exps"));
    file.without(arch::tensor_names::layer(i, "ffn_up_exps"));
  }
  check_family<arch::Gemma4>(file, ids, wanted);
}

TEST_CASE("a Gemma 4 file with keys that make no sense is refused by name") {
  const auto refused = [](auto edit) {
    FamilyFile file = make();
    edit(file);
    return refusal([&] { return arch::Gemma4::config(file.document()); });
  };
  CHECK(mentions(refused([](FamilyFile& f) { f.set("expert_used_count", 6u); }), "expert_used_count",
                 "1 to 5"));
  CHECK(mentions(refused([](FamilyFile& f) { f.without("expert_feed_forward_length"); }),
                 "expert_feed_forward_length", "missing"));
  CHECK(mentions(refused([](FamilyFile& f) { f.without("attention.sliding_window"); }), "sliding_window",
                 "missing"));
  CHECK(mentions(refused([](FamilyFile& f) { f.set("attention.shared_kv_layers", 3u); }), "shared_kv_layers",
                 "layer 1"));
  CHECK(mentions(refused([](FamilyFile& f) { f.set("attention.key_length_swa", 513u); }), "key_length_swa",
                 "1 to 512"));
}

}  // namespace mica::test::gemma4_test
