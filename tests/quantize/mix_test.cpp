// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/quantize/mix.hpp"

#include "io/temporary_folder.hpp"
#include "quantize/small_model.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

namespace mica::test::mix_test {
namespace {

using format::Id;
using quantize::choose_formats;
using quantize::Recipe;

Id format_in(const gguf::Document& document, Recipe recipe, std::string_view name,
             const quantize::MixOptions& options = {}) {
  const auto formats = choose_formats(document, recipe, options);
  for (std::size_t i = 0; i < formats.size(); ++i) {
    if (document.tensors()[i].name == name) return formats[i];
  }
  FAIL("no tensor ", name);
  return format::F32::id;
}

}  // namespace

TEST_CASE("a head that is the embedding gets the head's format, and one of its own leaves it alone") {
  SmallModel tied;
  tied.add("token_embd.weight", {256, 32});
  CHECK(format_in(tied.document(), Recipe::Q4_K_M, "token_embd.weight") == format::Q6_K::id);
  tied.add("output.weight", {256, 32});
  const auto document = tied.document();
  CHECK(format_in(document, Recipe::Q4_K_M, "token_embd.weight") == format::Q4_K::id);
  CHECK(format_in(document, Recipe::Q4_K_M, "output.weight") == format::Q6_K::id);
  CHECK(format_in(document, Recipe::Q8_0, "output.weight") == format::Q8_0::id);
  CHECK(format_in(document, Recipe::IQ2_M, "token_embd.weight") == format::IQ3_S::id);
  CHECK(format_in(document, Recipe::F16, "output.weight") == format::F16::id);
}

TEST_CASE("rows that are no multiple of a block get a format with smaller blocks") {
  SmallModel model;
  model.add("blk.0.attn_q.weight", {288, 4})
      .add("blk.0.attn_k.weight", {40, 4})
      .add("output.weight", {288, 4});
  const auto document = model.document();
  CHECK(format_in(document, Recipe::Q4_K_M, "blk.0.attn_q.weight") == format::Q5_0::id);
  CHECK(format_in(document, Recipe::Q6_K, "blk.0.attn_q.weight") == format::Q8_0::id);
  CHECK(format_in(document, Recipe::IQ3_S, "blk.0.attn_q.weight") == format::IQ4_NL::id);
  CHECK(format_in(document, Recipe::Q2_K, "blk.0.attn_q.weight") == format::Q4_0::id);
  CHECK(format_in(document, Recipe::Q4_K_M, "output.weight") == format::Q8_0::id);
  for (const quantize::RecipeInfo& each : quantize::recipes) {
    if (quantize::is_quantized(each.base))
      CHECK(format_in(document, each.recipe, "blk.0.attn_k.weight") == format::F16::id);
  }
}

TEST_CASE("what is chosen does not depend on the order of a file") {
  SmallModel forward(16), backward(16);
  for (std::uint32_t i = 0; i < 16; ++i) forward.add_layer(i);
  for (std::uint32_t i = 16; i-- > 0;) backward.add_layer(i);
  const auto a = forward.document();
  const auto b = backward.document();
  for (const Recipe recipe : {Recipe::Q4_K_M, Recipe::Q3_K_M, Recipe::Q4_K_S, Recipe::IQ2_M}) {
    for (const gguf::TensorInfo& tensor : a.tensors())
      CHECK(format_in(a, recipe, tensor.name) == format_in(b, recipe, tensor.name));
  }
  CHECK(format_in(a, Recipe::Q4_K_M, "blk.1.ffn_down.weight") == format::Q6_K::id);
  CHECK(format_in(a, Recipe::Q4_K_M, "blk.3.ffn_down.weight") == format::Q4_K::id);
  CHECK(format_in(a, Recipe::Q4_K_M, "blk.10.ffn_down.weight") ==
        format::Q6_K::id);  // by number, not by text
  CHECK(format_in(a, Recipe::Q4_K_M, "blk.4.attn_norm.weight") == format::F32::id);
}

TEST_CASE("experts become MXFP4 where a recipe says so, the rest Q8_0") {
  SmallModel model(2, 4);
  model.add("blk.0.ffn_up_exps.weight", {64, 8, 4}).add("blk.0.attn_q.weight", {64, 8});
  model.add("blk.0.ffn_gate_inp.weight", {64, 4});
  const auto document = model.document();
  CHECK(format_in(document, Recipe::MXFP4_MOE, "blk.0.ffn_up_exps.weight") == format::MXFP4::id);
  CHECK(format_in(document, Recipe::MXFP4_MOE, "blk.0.attn_q.weight") == format::Q8_0::id);
  CHECK(format_in(document, Recipe::MXFP4_MOE, "blk.0.ffn_gate_inp.weight") == format::F32::id);
}

TEST_CASE("the caller's wishes come before the recipe") {
  SmallModel model;
  model.add_layer(0).add("token_embd.weight", {256, 8}).add("output.weight", {256, 8});
  const auto document = model.document();
  quantize::MixOptions options;
  options.head = format::Q8_0::id;
  options.embedding = format::Q4_0::id;
  options.format_of = [](std::string_view name) -> std::optional<Id> {
    if (name.find("attn_q") != name.npos) return format::Q8_0::id;
    return std::nullopt;
  };
  CHECK(format_in(document, Recipe::Q4_K_M, "output.weight", options) == format::Q8_0::id);
  CHECK(format_in(document, Recipe::Q4_K_M, "token_embd.weight", options) == format::Q4_0::id);
  CHECK(format_in(document, Recipe::Q4_K_M, "blk.0.attn_q.weight", options) == format::Q8_0::id);
  CHECK(format_in(document, Recipe::Q4_K_M, "blk.0.attn_k.weight", options) == format::Q4_K::id);
  CHECK(format_in(document, Recipe::Q4_K_M, "output.weight", {.pure = true}) == format::Q4_K::id);
  CHECK(format_in(document, Recipe::Q4_K_M, "blk.0.attn_v.weight", {.pure = true}) == format::Q4_K::id);
  CHECK(format_in(document, Recipe::Q4_K_M, "output.weight", {.leave_head = true}) == format::F32::id);
}

TEST_CASE("files of the kit have the formats that are chosen here") {
  struct Made {
    const char* file;
    const char* source;
    Recipe recipe;
    bool importance;
  };
  const Made all[] = {{"llama3-gqa.Q4_K_M", "llama3-gqa.F32", Recipe::Q4_K_M, false},
                      {"llama3-gqa.Q4_K_S", "llama3-gqa.F32", Recipe::Q4_K_S, false},
                      {"llama3-gqa.Q3_K_M", "llama3-gqa.F32", Recipe::Q3_K_M, false},
                      {"llama3-gqa.Q5_K_M", "llama3-gqa.F32", Recipe::Q5_K_M, false},
                      {"llama3-gqa.Q6_K", "llama3-gqa.F32", Recipe::Q6_K, false},
                      {"llama3-gqa.Q8_0", "llama3-gqa.F32", Recipe::Q8_0, false},
                      {"gemma2.Q4_K_M", "gemma2.Q8_0", Recipe::Q4_K_M, false},
                      {"mixtral.Q4_K_M", "mixtral.Q8_0", Recipe::Q4_K_M, false},
                      {"qwen3.Q4_K_M", "qwen3.Q8_0", Recipe::Q4_K_M, false},
                      {"qwen3.IQ4_XS", "qwen3.Q8_0", Recipe::IQ4_XS, false},
                      {"qwen3.Q4_0", "qwen3.Q8_0", Recipe::Q4_0, false},
                      {"qwen3moe.Q4_K_M", "qwen3moe.Q8_0", Recipe::Q4_K_M, false},
                      {"qwen3moe.MXFP4_MOE", "qwen3moe.Q8_0", Recipe::MXFP4_MOE, false}};
  const auto folder = shared_dir("mixtures of the kit", "conformance/models");
  if (!folder) return;
  for (const Made& made : all) {
    CAPTURE(made.file);
    const auto source = gguf::open((*folder / (std::string(made.source) + ".gguf")).string());
    const auto outcome = gguf::open((*folder / (std::string(made.file) + ".gguf")).string());
    const auto formats = choose_formats(source, made.recipe, {.importance = made.importance});
    for (std::size_t i = 0; i < formats.size(); ++i) {
      const std::string& name = source.tensors()[i].name;
      CAPTURE(name);
      CHECK(format::name(formats[i]) == outcome.tensor(name).format.name);
    }
  }
}

}  // namespace mica::test::mix_test
