// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/synth/shapes.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <set>
#include <utility>

namespace mica::test::shapes_test {
namespace {

using arch::Shape;

TEST_CASE("every shape has as many weights as the model that it is named after") {
  constexpr std::pair<std::string_view, std::uint64_t> published[] = {
      {"stories-15m", 15191712},      {"tinyllama", 1100048384},      {"smollm2-360m", 361821120},
      {"smollm2-1.7b", 1711376384},   {"llama2-7b", 6738415616},      {"llama2-13b", 13015864320},
      {"llama-1b", 1235814400},       {"llama-3b", 3212749824},       {"llama-8b", 8030261248},
      {"llama-70b", 70553706496},     {"mistral-7b", 7248023552},     {"mistral-nemo", 12247782400},
      {"mistral-small", 23572403200}, {"mixtral-8x7b", 46702792704},  {"mixtral-8x22b", 140620634112},
      {"phi3-mini", 3821079552},      {"phi3-medium", 13960238080},   {"phi4", 14659507200},
      {"qwen2-0.5b", 494032768},      {"qwen2-1.5b", 1543714304},     {"qwen2-3b", 3085938688},
      {"qwen2-7b", 7615616512},       {"qwen2-14b", 14770033664},     {"qwen2-32b", 32763876352},
      {"qwen2-72b", 72706203648},     {"qwen3-0.6b", 596049920},      {"qwen3-1.7b", 1720574976},
      {"qwen3-4b", 4022468096},       {"qwen3-8b", 8190735360},       {"qwen3-14b", 14768307200},
      {"qwen3-32b", 32762123264},     {"qwen3-30b-a3b", 30532122624}, {"qwen3-235b-a22b", 235093634560},
      {"gemma2-2b", 2614341888},      {"gemma2-9b", 9241705984},      {"gemma2-27b", 27227128320},
      {"gemma3-1b", 999885952},       {"gemma3-4b", 3880099328},      {"gemma3-12b", 11765788416},
      {"gemma3-27b", 27009002240},    {"gpt-oss-20b", 20914757184},   {"gpt-oss-120b", 116829156672},
      {"nomic-embed-1.5", 136731648}, {"modernbert-base", 149014272}, {"qwen3-embedding-0.6b", 595776512},
  };
  // Those of the published files, without poolers and the two positions that no token of bge-m3 has, and with
  // the matrices behind EmbeddingGemma's pooling.
  constexpr std::pair<std::string_view, std::uint64_t> counted[] = {
      {"minilm-l6", 22713216 - 147840},     {"bge-small", 33360000 - 147840},
      {"bge-base", 109482240 - 590592},     {"bge-m3", 567754752 - 1049600 - 2048},
      {"jina-v2-small", 32690688 - 262656}, {"embeddinggemma-300m", 302863104 + 2 * 768 * 3072},
  };
  struct Rounded {
    std::string_view name;
    double weights;
    double tolerance;
  };
  constexpr Rounded rounded[] = {
      // the last three by their names alone
      {"qwen3.5-0.8b", 0.752e9, 0.003},     {"qwen3.5-4b", 4.21e9, 0.003},
      {"qwen3.5-9b", 8.95e9, 0.003},        {"qwen3.5-27b", 27e9, 0.01},
      {"qwen3.5-35b-a3b", 35e9, 0.01},      {"qwen3.5-397b-a17b", 397e9, 0.01},
      {"gemma4-e2b", 5.1e9 - 0.45e9, 0.01}, {"gemma4-e4b", 8.0e9 - 0.45e9, 0.02},
      {"gemma4-26b-a4b", 25.2e9, 0.003},    {"gemma4-31b", 30.7e9, 0.003},
  };
  CHECK(std::size(published) + std::size(counted) + std::size(rounded) == std::size(arch::shapes));
  for (const auto& [name, weights] : counted) {
    const auto& the_name = name;
    CAPTURE(the_name);
    CHECK(arch::parameters(*arch::find_shape(name)) == weights);
  }
  for (const Rounded& model : rounded) {
    CAPTURE(model.name);
    CHECK(static_cast<double>(arch::parameters(*arch::find_shape(model.name))) ==
          doctest::Approx(model.weights).epsilon(model.tolerance));
  }
  for (const auto& model : published) {
    CAPTURE(model.first);
    const auto shape = arch::find_shape(model.first);
    REQUIRE(shape);
    CHECK(arch::parameters(*shape) == model.second);
  }
}

TEST_CASE("names of shapes are unique, and their families are known") {
  std::set<std::string_view> names;
  for (const Shape& shape : arch::shapes) {
    CAPTURE(shape.name);
    CHECK(names.insert(shape.name).second);
    CHECK(arch::find_family_tensors(shape.arch));
  }
  CHECK_FALSE(arch::find_shape("llama-9b"));
}

TEST_CASE("a tied model has no head, a fused one no queries, a sparse one a matrix for each expert") {
  const auto shapes_of = [](std::string_view shape, std::string_view tensor) {
    for (const gguf::TensorInfo& each : arch::tensors_of(*arch::find_shape(shape))) {
      if (each.name == tensor) return each.shape();
    }
    return std::string("none");
  };
  CHECK(shapes_of("llama-1b", "output.weight") == "none");
  CHECK(shapes_of("llama-8b", "output.weight") == "4096 x 128256");
  CHECK(shapes_of("phi3-mini", "blk.0.attn_q.weight") == "none");
  CHECK(shapes_of("phi3-mini", "blk.31.ffn_up.weight") == "3072 x 16384");
  CHECK(shapes_of("qwen2-7b", "blk.27.attn_k.bias") == "512");
  CHECK(shapes_of("qwen3-30b-a3b", "blk.47.ffn_down_exps.weight") == "768 x 2048 x 128");
  CHECK(shapes_of("gpt-oss-20b", "blk.0.attn_sinks.weight") == "64");
  CHECK(shapes_of("gpt-oss-20b", "blk.23.ffn_down_exps.bias") == "2880 x 32");
  CHECK(shapes_of("gpt-oss-20b", "blk.0.ffn_norm.weight") == "none");
  CHECK(shapes_of("gemma4-e2b", "blk.4.attn_k.weight") == "1536 x 512");  // no window: wider heads
  CHECK(shapes_of("gemma4-e2b", "blk.15.attn_k.weight") == "none");       // reads those of an earlier layer
  CHECK(shapes_of("gemma4-e2b", "blk.15.ffn_up.weight") == "1536 x 12288");  // and is twice as wide
  CHECK(shapes_of("gemma4-31b", "blk.5.attn_v.weight") == "none");           // values are keys
  CHECK(shapes_of("gemma4-26b-a4b", "blk.0.ffn_gate_up_exps.weight") == "2816 x 1408 x 128");
  CHECK(shapes_of("qwen3.5-35b-a3b", "blk.3.attn_q.weight") == "2048 x 8192");
  CHECK(shapes_of("qwen3.5-35b-a3b", "blk.0.ffn_down_shexp.weight") == "512 x 2048");
  CHECK(shapes_of("bge-small", "position_embd.weight") == "384 x 512");
  CHECK(shapes_of("bge-small", "blk.11.ffn_gate.weight") == "none");
  CHECK(shapes_of("bge-small", "output_norm.weight") == "none");
  CHECK(shapes_of("modernbert-base", "blk.0.attn_norm.weight") == "none");
  CHECK(shapes_of("modernbert-base", "blk.1.ffn_up.weight") == "768 x 2304");
  CHECK(shapes_of("jina-v2-small", "blk.3.ffn_up.bias") == "none");
}

}  // namespace
}  // namespace mica::test::shapes_test
