// SPDX-License-Identifier: Apache-2.0

#include "mica/arch/llama.hpp"

#include "arch/reference.hpp"
#include "io/temporary_folder.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <limits>

namespace mica::test::llama_test {
namespace {

arch::Config config(const Recipe& recipe) { return arch::Llama::config(TinyModel(recipe).document()); }

/// The tiny model with something set last.
Recipe with(std::function<void(gguf::Writer&)> edit, std::set<std::string> without = {}) {
  Recipe recipe;
  recipe.edit = std::move(edit);
  recipe.without = std::move(without);
  return recipe;
}

template <class T>
Recipe with(std::string key, T value) {
  return with([=](gguf::Writer& writer) { writer.set(key, value); });
}

Error refused(const Recipe& recipe) {
  return refusal([&] { return config(recipe); });
}

/// Heads that are wider together than the residual stream, as Mistral has them.
FamilyFile with_biases() {
  FamilyFile file("llama");
  file.shape(2, 20, 4, 2, 6, 30).matrix("token_embd.weight", family_vocabulary, 20, 4);
  file.vector("output_norm.weight", 20);
  for (std::size_t i = 0; i < 2; ++i) {
    add_attention(file, i, 20, 24, 12);
    add_feed_forward(file, i, 20, 30);
    for (const auto& [part, rows] : {std::pair{"attn_q", 24},
                                     {"attn_k", 12},
                                     {"attn_v", 12},
                                     {"attn_output", 20},
                                     {"ffn_gate", 30},
                                     {"ffn_up", 30},
                                     {"ffn_down", 20}}) {
      file.vector(arch::tensor_names::layer_bias(i, part), static_cast<std::size_t>(rows), 0);
    }
  }
  return file;
}

reference::Rows expected(const FamilyFile& file, std::span<const text::TokenId> ids) {
  using namespace reference;
  const Attention a{4, 2, 6, 1 / std::sqrt(6.0), false, 6};
  Rows x = embedded(file, ids);
  for (std::size_t i = 0; i < 2; ++i) {
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], attended[t]);
      const Row y = normed(x[t], file.layer(i, "ffn_norm"));
      const Row gate = with_bias(file, i, "ffn_gate", times(file.layer(i, "ffn_gate"), y));
      const Row up = with_bias(file, i, "ffn_up", times(file.layer(i, "ffn_up"), y));
      x[t] =
          add(x[t], with_bias(file, i, "ffn_down", times(file.layer(i, "ffn_down"), gated(gate, up, silu))));
    }
  }
  return logits(file, x);
}

/// A row of rope factors.
Recipe with_factors(std::vector<float> factors) {
  return with([=](gguf::Writer& writer) {
    writer.add("rope_freqs.weight", format::F32::id, {factors.size()},
               [=](const gguf::Sink& sink) { sink(std::as_bytes(std::span(factors))); });
  });
}

}  // namespace

TEST_CASE("a Llama file becomes a config") {
  const arch::Config c = config(Recipe{});
  CHECK(c.arch == "llama");
  CHECK(c.name == "tiny");
  CHECK(c.n_ctx_train == 700);
  CHECK(c.width == 50);
  CHECK(c.n_vocab == 67);
  CHECK(c.norm_epsilon == 1e-5f);
  CHECK(c.ropes.front().dims == 10);
  CHECK(c.ropes.front().base == 10000);
  CHECK(c.ropes.front().scale == 1);
  CHECK(c.ropes.front().factors.empty());
  CHECK(c.ropes.front().pairs == kernel::RopePairs::adjacent);
  REQUIRE(c.layers.size() == 2);
  CHECK(c.layers[1].get<block::Attention>().heads == 6);
  CHECK(c.layers[1].get<block::Attention>().kv_heads == 2);
  CHECK(c.layers[1].get<block::Attention>().group() == 3);
  CHECK(c.layers[1].get<block::Attention>().q_width() == 60);
  CHECK(c.layers[1].get<block::Attention>().kv_width() == 20);
  CHECK(c.layers[1].get<block::DenseFeedForward>().ff_width == 70);
  CHECK(c.max_of<block::Attention>([](const auto& l) { return l.q_width(); }) == 60);
  CHECK(c.max_of<block::Attention>([](const auto& l) { return l.kv_width(); }) == 20);
  CHECK(c.max_of<block::DenseFeedForward>([](const auto& d) { return d.ff_width; }) == 70);
  CHECK(c.max_of<block::Attention>([](const auto& l) { return l.head_dim; }) == 10);
  CHECK(c.max_of<block::Attention>([](const auto& l) { return l.group(); }) == 3);
}

TEST_CASE("a file of another family is refused") {
  const Error error = refused(with("general.architecture", std::string_view("qwen3")));
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "architecture 'qwen3'; needed: 'llama'"));
}

TEST_CASE("what a file may leave out has the family's default") {
  Recipe recipe;
  recipe.width = 60;
  recipe.without = {"llama.context_length", "llama.attention.head_count_kv", "llama.attention.key_length",
                    "llama.attention.value_length"};
  const arch::Config c = config(recipe);
  CHECK(c.n_ctx_train == 2048);
  CHECK(c.layers[0].get<block::Attention>().kv_heads == 6);
  CHECK(c.layers[0].get<block::Attention>().head_dim == 10);
}

TEST_CASE("heads, KV heads and widths may differ from layer to layer") {
  const arch::Config c = config(with([](gguf::Writer& writer) {
    writer.set_array("llama.attention.head_count", std::vector<std::uint32_t>{6, 4});
    writer.set_array("llama.attention.head_count_kv", std::vector<std::uint32_t>{2, 4});
    writer.set_array("llama.feed_forward_length", std::vector<std::uint32_t>{70, 90});
  }));
  CHECK(c.layers[0].get<block::Attention>().group() == 3);
  CHECK(c.layers[1].get<block::Attention>().group() == 1);
  CHECK(c.max_of<block::DenseFeedForward>([](const auto& d) { return d.ff_width; }) == 90);
  CHECK(c.max_of<block::Attention>([](const auto& l) { return l.kv_width(); }) == 40);
}

TEST_CASE("rope keys are read: base, dimensions, linear scaling, factors") {
  const arch::Config c = config(with([](gguf::Writer& writer) {
    writer.set("llama.rope.freq_base", 500000.0f);
    writer.set("llama.rope.dimension_count", std::uint32_t{6});
    writer.set("llama.rope.scaling.type", "linear");
    writer.set("llama.rope.scaling.factor", 4.0f);
  }));
  CHECK(c.ropes.front().base == 500000);
  CHECK(c.ropes.front().dims == 6);
  CHECK(c.ropes.front().scale == 4);
  CHECK(config(with("llama.rope.scaling.factor", 2.0f)).ropes.front().scale == 2);  // linear unless it says
  CHECK(config(with([](gguf::Writer& writer) {
          writer.set("llama.rope.scaling.type", "none");
          writer.set("llama.rope.scaling.factor", 4.0f);
        }))
            .ropes.front()
            .scale == 1);
  CHECK(config(with_factors({1, 2, 3, 4, 5})).ropes.front().factors == std::vector<float>{1, 2, 3, 4, 5});
}

TEST_CASE("each key that is needed is named when it is missing") {
  for (const std::string key : {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
                                "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    CAPTURE(key);
    const Error error = refused(with([](gguf::Writer&) {}, {key}));
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, "tiny.gguf", key, "missing"));
  }
}

TEST_CASE("a count out of its range is refused by key, number found and numbers allowed") {
  struct Case {
    std::string key;
    std::uint32_t value;
    std::string allowed;
  };
  for (const Case& c : {
           Case{"llama.block_count", 0, "1 to 4096"},
           Case{"llama.block_count", 4097, "1 to 4096"},
           Case{"llama.context_length", 0, "1 to 1073741824"},
           Case{"llama.context_length", 1073741825, "1 to 1073741824"},
           Case{"llama.embedding_length", 0, "1 to 1048576"},
           Case{"llama.embedding_length", 4000000000, "1 to 1048576"},
           Case{"llama.feed_forward_length", 0, "1 to 1048576"},
           Case{"llama.attention.head_count", 0, "1 to 16384"},
           Case{"llama.attention.head_count", 16385, "1 to 16384"},
           Case{"llama.attention.head_count_kv", 0, "1 to 16384"},
           Case{"llama.attention.key_length", 0, "1 to 512"},
           Case{"llama.attention.key_length", 513, "1 to 512"},
           Case{"llama.attention.value_length", 1000, "1 to 512"},
           Case{"llama.rope.dimension_count", 0, "2 to 10"},
           Case{"llama.rope.dimension_count", 12, "2 to 10"},
       }) {
    CAPTURE(c.key);
    CAPTURE(c.value);
    const Error error = refused(with(c.key, c.value));
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, "tiny.gguf", c.key, std::to_string(c.value), c.allowed));
  }
}

TEST_CASE("numbers that do not fit each other are refused") {
  CHECK(mentions(refused(with("llama.attention.head_count_kv", 4u)), "head_count_kv", "4", "divide", "6"));
  CHECK(mentions(refused(with("llama.rope.dimension_count", 5u)), "rope.dimension_count", "5", "even"));
  Recipe odd;
  odd.without = {"llama.attention.key_length", "llama.attention.value_length"};
  CHECK(mentions(refused(odd), "head_count", "6", "divide", "50"));
  const Error value = refused(with("llama.attention.value_length", 12u));
  CHECK(value.code() == ErrorCode::unsupported);
  CHECK(mentions(value, "value_length", "10"));
}

TEST_CASE("heads wider than the kernels take are refused, given or computed") {
  Recipe wide;
  wide.width = 6 * 514;
  wide.without = {"llama.attention.key_length", "llama.attention.value_length"};
  wide.layers = 1;
  wide.head_dim = 1;  // the tensors are never looked at
  const Error error = refused(wide);
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "514", "512"));
}

TEST_CASE("numbers that are no positive finite number are refused") {
  for (const float bad :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    CAPTURE(bad);
    CHECK(mentions(refused(with("llama.attention.layer_norm_rms_epsilon", bad)), "layer_norm_rms_epsilon",
                   "above 0"));
    CHECK(mentions(refused(with("llama.rope.freq_base", bad)), "rope.freq_base", "above 0"));
    CHECK(mentions(refused(with_factors({1, 1, bad, 1, 1})), "rope_freqs.weight", "above 0"));
    const Error scale = refused(with([=](gguf::Writer& writer) {
      writer.set("llama.rope.scaling.type", "linear");
      writer.set("llama.rope.scaling.factor", bad);
    }));
    CHECK(mentions(scale, "rope.scaling.factor", "above 0"));
  }
}

TEST_CASE("biases are read where a file has them") {
  FamilyFile file = with_biases();
  const auto ids = random_ids(13, family_vocabulary);
  check_family<arch::Llama>(file, ids, expected(file, ids));
  for (const char* const part : {"attn_k", "ffn_gate"}) {
    const std::string name = arch::tensor_names::layer_bias(1, part);
    FamilyFile other = with_biases();
    other.without(name);
    exec::Inline executor;
    const Error error = refusal([&] { FamilyModel<arch::Llama>(other.document(), executor, {.log = {}}); });
    CHECK(mentions(error, name, "missing"));
  }
}

TEST_CASE("a file with experts has no dense block, and uses no more experts than it has") {
  const arch::Config c = config(with([](gguf::Writer& writer) {
    writer.set("llama.expert_count", 8u);
    writer.set("llama.expert_used_count", 2u);
  }));
  CHECK_FALSE(c.layers[0].has<block::DenseFeedForward>());
  CHECK(c.layers[0].get<block::Experts>().count == 8);
  CHECK(c.layers[0].get<block::Experts>().used == 2);
  CHECK(c.layers[0].get<block::Experts>().ff_width == 70);
  CHECK(c.layers[0].get<block::Experts>().normalized);
  CHECK_FALSE(config(with("llama.expert_count", 0u)).layers[0].has<block::Experts>());
  CHECK(mentions(refused(with("llama.expert_count", 8u)), "llama.expert_used_count", "missing"));
  const Error used = refused(with([](gguf::Writer& writer) {
    writer.set("llama.expert_count", 8u);
    writer.set("llama.expert_used_count", 9u);
  }));
  CHECK(mentions(used, "llama.expert_used_count", "9", "1 to 8"));
}

TEST_CASE("features that are not here are refused by name") {
  const Error scaling = refused(with("llama.rope.scaling.type", "spiral"));
  CHECK(scaling.code() == ErrorCode::unsupported);
  CHECK(mentions(scaling, "rope.scaling.type", "spiral", "none, linear, yarn, longrope"));
}

TEST_CASE("a key of the wrong kind is refused") {
  CHECK(mentions(refused(with("llama.block_count", "two")), "llama.block_count"));
  CHECK(mentions(refused(with("llama.block_count", -1)), "llama.block_count"));
  CHECK(mentions(refused(with("llama.embedding_length", 1.5f)), "llama.embedding_length"));
  CHECK(mentions(refused(with([](gguf::Writer& writer) {
                   writer.set_array("llama.attention.head_count", std::vector<std::uint32_t>{6, 6, 6});
                 })),
                 "llama.attention.head_count", "2"));
}

TEST_CASE("rope factors of the wrong length or type are refused") {
  CHECK(mentions(refused(with_factors({1, 1, 1, 1})), "rope_freqs.weight", "F32 4", "F32 5"));
  const Error half = refused(with([](gguf::Writer& writer) {
    writer.add("rope_freqs.weight", format::F16::id, {5},
               [](const gguf::Sink& sink) { sink(std::vector<std::byte>(10)); });
  }));
  CHECK(mentions(half, "rope_freqs.weight", "F16", "F32 5"));
}

TEST_CASE("a file with a vocabulary alone is told apart") {
  const Error error = refused(with([](gguf::Writer&) {}, {"token_embd.weight"}));
  CHECK(mentions(error, "token_embd.weight", "tokenize"));
}

}  // namespace mica::test::llama_test
