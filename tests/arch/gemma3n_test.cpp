// SPDX-License-Identifier: Apache-2.0

#include "mica/arch/gemma3n.hpp"

#include "arch/reference.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace mica::test::gemma3n_test {
namespace {

using namespace reference;

constexpr std::size_t width = 22, heads = 4, kv_heads = 2, head_dim = 6, ff_width = 30, layers = 7, own = 5;
constexpr std::size_t streams = 3, rank = 5, per_layer = 8;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Every fifth layer sees everything, and the last two read the keys and values of the fourth and the fifth.
bool windowed(std::size_t i) { return i != 4 && i != 6; }

void add_layer(FamilyFile& file, std::size_t i) {
  add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
  add_feed_forward(file, i, width, ff_width);
  for (const char* const norm : {"post_attention_norm", "post_ffw_norm", "laurel_post_norm", "post_norm",
                                 "altup_router_norm", "altup_correct_scale"}) {
    file.layer_vector(i, norm, width);
  }
  file.layer_vector(i, "attn_q_norm", head_dim).layer_vector(i, "attn_k_norm", head_dim);
  file.layer_matrix(i, "inp_gate", per_layer, width).layer_matrix(i, "proj", width, per_layer);
  file.layer_matrix(i, "laurel_l", rank, width).layer_matrix(i, "laurel_r", width, rank);
  file.layer_matrix(i, "altup_router", streams, width, 8.0);
  file.layer_matrix(i, "altup_predict_coef", streams * streams, streams, 0.4);
  file.layer_matrix(i, "altup_correct_coef", streams, streams, 0.5);
}

FamilyFile make() {
  FamilyFile file("gemma3n");
  file.shape(layers, width, heads, kv_heads, head_dim, ff_width).set("attention.sliding_window", 4u);
  file.set_array("attention.sliding_window_pattern",
                 std::vector<bool>{true, true, true, true, false, true, false});
  file.set("attention.shared_kv_layers", static_cast<unsigned>(layers - own)).set("rope.freq_base", 1e6f);
  file.set("embedding_length_per_layer_input", static_cast<unsigned>(per_layer));
  file.set("altup.num_inputs", static_cast<unsigned>(streams)).set("altup.active_idx", 0u);
  file.set_array("activation_sparsity_scale",
                 std::vector<float>{1.6f, 0.5f, 0, -infinity, -infinity, -infinity, -infinity});
  file.matrix("token_embd.weight", family_vocabulary, width, 1.0).vector("output_norm.weight", width);
  file.matrix("per_layer_token_embd.weight", family_vocabulary, layers * per_layer, 0.4);
  file.matrix("per_layer_model_proj.weight", layers * per_layer, width)
      .vector("per_layer_proj_norm.weight", 8);
  file.matrix("altup_proj.weight", (streams - 1) * width, width);
  file.matrix("altup_unembd_proj.weight", (streams - 1) * width, width);
  for (std::size_t i = 0; i < layers; ++i) add_layer(file, i);
  return file;
}

double length(const Row& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return std::sqrt(squares);
}

/// tanh(router . norm(x) / width), and that through `coefficients`.
Row routed(const FamilyFile& file, std::size_t i, const Row& x, const char* coefficients) {
  Row m = times(file.layer(i, "altup_router"), normed(x, file.layer(i, "altup_router_norm")));
  for (double& v : m) v = std::tanh(v / static_cast<double>(width));
  return times(file.layer(i, coefficients), m);
}

/// The streams of one token.
Rows predicted(const FamilyFile& file, std::size_t i, const Rows& s) {
  const Row p = routed(file, i, s[0], "altup_predict_coef");
  Rows out = s;
  for (std::size_t a = 0; a < streams; ++a) {
    for (std::size_t b = 0; b < streams; ++b) out[a] = add(out[a], s[b], p[a * streams + b]);
  }
  return out;
}

void correct(const FamilyFile& file, std::size_t i, const Row& x, Rows& s) {
  const Row c = routed(file, i, x, "altup_correct_coef");
  const Row change = add(x, s[0], -1);
  for (std::size_t a = 0; a < streams; ++a) s[a] = add(s[a], change, 1 + c[a]);
}

/// What is above mean + deviations * deviation.
Row sparse(Row x, double deviations) {
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  for (double& v : x) v = std::max(0.0, v - mean - deviations * std::sqrt(variance));
  return x;
}

Row gated_block(const FamilyFile& file, std::size_t i, const Row& x) {
  Row gate = times(file.layer(i, "ffn_gate"), x);
  if (i == 0) gate = sparse(gate, 1.6f);
  if (i == 1) gate = sparse(gate, 0.5);
  return times(file.layer(i, "ffn_down"), gated(gate, times(file.layer(i, "ffn_up"), x), gelu));
}

Row laurel(const FamilyFile& file, std::size_t i, const Row& x) {
  const Row y = times(file.layer(i, "laurel_r"), times(file.layer(i, "laurel_l"), x));
  return add(x, normed(y, file.layer(i, "laurel_post_norm")));
}

/// The embeddings that layers have of their own, one token's, by layer.
Rows own_embeddings(const FamilyFile& file, text::TokenId id, const Row& x) {
  const Row all = scaled(times(file["per_layer_model_proj.weight"], x), 1 / std::sqrt(double{width}));
  const Row based = normed(all, file["per_layer_proj_norm.weight"], per_layer);
  Rows out(layers, Row(per_layer));
  for (std::size_t k = 0; k < all.size(); ++k) {
    const double given = file["per_layer_token_embd.weight"].at(id, k) * std::sqrt(double{per_layer});
    out[k / per_layer][k % per_layer] = (based[k] + given) / std::sqrt(2.0);
  }
  return out;
}

Rows begun(const FamilyFile& file, const Row& x) {
  Rows s{x};
  for (std::size_t a = 1; a < streams; ++a) {
    const Row y = times(file["altup_proj.weight"], x, (a - 1) * width, width);
    s.push_back(scaled(y, length(x) / length(y)));
  }
  return s;
}

Row merged(const FamilyFile& file, const Rows& s) {
  Row x = s[0];
  for (std::size_t a = 1; a < streams; ++a) {
    const Row y = times(file["altup_unembd_proj.weight"], s[a], (a - 1) * width, width);
    x = add(x, y, length(s[0]) / length(y));
  }
  return scaled(x, 1.0 / streams);
}

/// One layer for all tokens; s: the streams of each.
void run_layer(const FamilyFile& file, std::size_t i, std::vector<Rows>& s,
               const std::vector<Rows>& embeddings, std::vector<Kept>& kept) {
  Attention a{heads, kv_heads, head_dim, 1.0, true, head_dim, 1e6, 0, true};
  if (windowed(i)) a.base = 10000, a.window = 4;
  Rows y;
  for (Rows& token : s) {
    token = predicted(file, i, token);
    y.push_back(normed(token[0], file.layer(i, "attn_norm")));
  }
  kept.push_back(keep(file, i, a, y));
  const Kept& source = i < own ? kept[i] : kept[windowed(i) ? 3 : 4];
  const Rows attended = attention(file, i, a, y, source, [](std::size_t) { return 1.0; });
  for (std::size_t t = 0; t < s.size(); ++t) {
    Row x = add(s[t][0], normed(attended[t], file.layer(i, "post_attention_norm")));
    x = scaled(add(x, laurel(file, i, y[t])), 1 / std::sqrt(2.0));
    const Row hidden = gated_block(file, i, normed(x, file.layer(i, "ffn_norm")));
    correct(file, i, add(x, normed(hidden, file.layer(i, "post_ffw_norm"))), s[t]);
    Row chosen = s[t][0];
    for (std::size_t k = 0; k < width; ++k) chosen[k] *= file.layer(i, "altup_correct_scale").at(0, k);
    const Row gate = gated(times(file.layer(i, "inp_gate"), chosen), embeddings[t][i], gelu);
    const Row given = normed(times(file.layer(i, "proj"), gate), file.layer(i, "post_norm"));
    for (std::size_t stream = 1; stream < streams; ++stream) s[t][stream] = add(s[t][stream], given);
  }
}

Rows expected(const FamilyFile& file, std::span<const text::TokenId> ids) {
  std::vector<Rows> s, embeddings;
  for (const Row& x : embedded(file, ids, std::sqrt(double{width}))) {
    embeddings.push_back(own_embeddings(file, ids[s.size()], x));
    s.push_back(begun(file, x));
  }
  std::vector<Kept> kept;
  for (std::size_t i = 0; i < layers; ++i) run_layer(file, i, s, embeddings, kept);
  Rows x;
  for (const Rows& token : s) x.push_back(merged(file, token));
  return logits(file, x, 1, 30);
}

}  // namespace

TEST_CASE("a Gemma 3n file becomes a config") {
  FamilyFile file = make();
  const arch::Config c = arch::Gemma3n::config(file.document());
  CHECK(c.begin.get<block::AltUp>().streams == streams);
  CHECK(c.begin.get<block::LayerInputs>().width == per_layer);
  CHECK(c.logit_softcap == 30);
  CHECK(c.layers[0].get<block::Attention>().reach == block::Reach::window);
  CHECK(c.layers[0].get<block::Attention>().rope == 1);
  CHECK(c.ropes[1].base == 10000);
  CHECK(c.layers[4].get<block::Attention>().reach == block::Reach::all);
  CHECK(c.layers[4].get<block::Attention>().rope == 0);
  CHECK(c.layers[4].get<block::Attention>().kv_source == block::none);
  CHECK(c.layers[5].get<block::Attention>().kv_source == 3);
  CHECK(c.layers[6].get<block::Attention>().kv_source == 4);
  CHECK(c.layers[0].get<block::Laurel>().rank == rank);
  CHECK(c.layers[0].get<block::DenseFeedForward>().sparsity == 1.6f);
  CHECK(c.layers[2].get<block::DenseFeedForward>().sparsity == 0);
  CHECK(c.layers[3].get<block::DenseFeedForward>().sparsity == 0);
}

TEST_CASE("Gemma 3n computes what its formulas say") {
  FamilyFile file = make();
  const auto ids = random_ids(13, family_vocabulary);
  check_family<arch::Gemma3n>(file, ids, expected(file, ids));
}

TEST_CASE("a Gemma 3n file with keys that make no sense is refused by name") {
  const auto refused = [](auto edit) {
    FamilyFile file = make();
    edit(file);
    return refusal([&] { return arch::Gemma3n::config(file.document()); });
  };
  CHECK(mentions(refused([](FamilyFile& f) { f.set("altup.active_idx", 1u); }), "altup.active_idx", "1",
                 "supported: 0"));
  CHECK(
      mentions(refused([](FamilyFile& f) { f.set("altup.num_inputs", 9u); }), "altup.num_inputs", "2 to 8"));
  CHECK(
      mentions(refused([](FamilyFile& f) { f.set("altup.num_inputs", 1u); }), "altup.num_inputs", "2 to 8"));
  CHECK(
      mentions(refused([](FamilyFile& f) { f.without("altup.num_inputs"); }), "altup.num_inputs", "missing"));
  CHECK(mentions(refused([](FamilyFile& f) { f.set("activation_sparsity_scale", infinity); }),
                 "activation_sparsity_scale", "inf", "finite"));
  CHECK(mentions(
      refused([](FamilyFile& f) { f.set_array("activation_sparsity_scale", std::vector<float>{1}); }),
      "activation_sparsity_scale", "7"));
  CHECK(mentions(refused([](FamilyFile& f) { f.set("attention.shared_kv_layers", 7u); }), "shared_kv_layers",
                 "0 to 6"));
  CHECK(mentions(refused([](FamilyFile& f) { f.set("attention.shared_kv_layers", 4u); }), "shared_kv_layers",
                 "3 layers", "layer 4"));
  CHECK(mentions(refused([](FamilyFile& f) { f.without("blk.3.laurel_l.weight"); }), "blk.3.laurel_l.weight",
                 "missing"));
}

TEST_CASE("a Gemma 3n file whose tensors do not fit its streams is refused by name") {
  const auto refused = [](auto edit) {
    FamilyFile file = make();
    edit(file);
    exec::Inline executor;
    return refusal([&] { FamilyModel<arch::Gemma3n>(file.document(), executor, {.log = {}}); });
  };
  CHECK(mentions(refused([](FamilyFile& f) { f.matrix("altup_proj.weight", width, width); }),
                 "altup_proj.weight", "22 x 44"));
  CHECK(mentions(refused([](FamilyFile& f) { f.layer_matrix(2, "altup_predict_coef", 4, 4); }),
                 "blk.2.altup_predict_coef.weight", "3 x 9"));
  CHECK(mentions(refused([](FamilyFile& f) { f.layer_matrix(1, "laurel_r", width, rank + 1); }),
                 "blk.1.laurel_r.weight", "5 x 22"));
}

}  // namespace mica::test::gemma3n_test
