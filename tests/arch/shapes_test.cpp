// SPDX-License-Identifier: Apache-2.0

#include "mica/arch/shapes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace mica::test {
namespace {

using arch::Shape;

TEST_CASE("every shape has as many weights as the model that it is named after") {
  constexpr std::pair<std::string_view, std::uint64_t> published[] = {
      {"stories-15m", 15191712},      {"tinyllama", 1100048384},     {"llama-1b", 1235814400},
      {"llama-3b", 3212749824},       {"llama-8b", 8030261248},      {"llama-70b", 70553706496},
      {"mistral-7b", 7248023552},     {"mixtral-8x7b", 46702792704}, {"phi3-mini", 3821079552},
      {"qwen2-0.5b", 494032768},      {"qwen2-1.5b", 1543714304},    {"qwen2-7b", 7615616512},
      {"qwen3-0.6b", 596049920},      {"qwen3-4b", 4022468096},      {"qwen3-8b", 8190735360},
      {"qwen3-30b-a3b", 30532122624}, {"gemma2-2b", 2614341888},     {"gemma2-9b", 9241705984},
      {"gemma3-1b", 999885952},       {"gemma3-4b", 3880099328},     {"gemma3-12b", 11765788416},
  };
  constexpr std::pair<std::string_view, double> rounded[] = {
      {"qwen3.5-0.8b", 0.752e9}, {"qwen3.5-4b", 4.21e9}, {"qwen3.5-9b", 8.95e9}};
  CHECK(std::size(published) + std::size(rounded) == std::size(arch::shapes));
  for (const auto& [name, weights] : rounded) {
    CAPTURE(name);
    CHECK(static_cast<double>(arch::parameters(*arch::find_shape(name))) ==
          doctest::Approx(weights).epsilon(0.003));
  }
  for (const auto& [name, weights] : published) {
    CAPTURE(name);
    const auto shape = arch::find_shape(name);
    REQUIRE(shape);
    CHECK(arch::parameters(*shape) == weights);
  }
}

TEST_CASE("names of shapes are unique, and their families are known") {
  std::set<std::string_view> names;
  for (const Shape& shape : arch::shapes) {
    CAPTURE(shape.name);
    CHECK(names.insert(shape.name).second);
    CHECK(std::any_of(std::begin(arch::family_tensors), std::end(arch::family_tensors),
                      [&](const arch::FamilyTensors& family) { return family.arch == shape.arch; }));
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
}

}  // namespace
}  // namespace mica::test
