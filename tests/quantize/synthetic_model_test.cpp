// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/synth/synthetic_model.hpp"

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/plan/plan.hpp"
#include "quantize/small_shapes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace mica::test::synthetic_model_test {
namespace {

using arch::Shape;
using quantize::Recipe;
using quantize::SyntheticModel;

std::string write(const TemporaryFolder& folder, const Shape& shape, Recipe recipe) {
  exec::Inline inline_executor;
  const std::string path = folder.path("model.gguf");
  SyntheticModel(shape, recipe).write(path, inline_executor);
  return path;
}

TEST_CASE("each tensor has the format that quantising a file of that shape would give it") {
  const TemporaryFolder folder;
  for (const Recipe recipe : {Recipe::Q4_K_M, Recipe::Q3_K_L, Recipe::IQ4_XS, Recipe::Q5_0}) {
    CAPTURE(quantize::info(recipe).name);
    const gguf::Document floats = gguf::open(write(folder, small_mixture("llama"), Recipe::F32));
    const SyntheticModel model(small_mixture("llama"), recipe);
    const auto formats = quantize::choose_formats(floats, recipe, {});
    REQUIRE(model.tensors().size() == formats.size());
    for (std::size_t i = 0; i < formats.size(); ++i) {
      CAPTURE(model.tensors()[i].name);
      CHECK(model.tensors()[i].name == floats.tensors()[i].name);
      CHECK(model.format(i) == formats[i]);
    }
  }
}

TEST_CASE("the bytes do not depend on the threads that make them, and weights are normal numbers") {
  const TemporaryFolder folder;
  const std::string path = write(folder, small_shape("llama"), Recipe::F32);
  exec::Team team(3);
  const std::string other = folder.path("other.gguf");
  SyntheticModel(small_shape("llama"), Recipe::F32).write(other, team);
  CHECK(contents(path) == contents(other));
  const gguf::Document document = gguf::open(path);
  const gguf::TensorInfo& matrix = document.tensor("blk.0.ffn_up.weight");
  std::vector<float> weights(matrix.elements());
  document.read(matrix, std::as_writable_bytes(std::span(weights)));
  double mean = 0, square = 0;
  for (const float x : weights) mean += x, square += double{x} * x;
  const double n = static_cast<double>(weights.size());
  CHECK(std::abs(mean / n) < 0.0005);
  CHECK(std::sqrt(square / n) == doctest::Approx(0.02).epsilon(0.03));
}

TEST_CASE("a shape that no file can have is refused") {
  CHECK_THROWS_WITH_AS(SyntheticModel(small_shape("falcon"), Recipe::Q8_0),
                       doctest::Contains("no family 'falcon'"), Error);
  Shape shape = small_shape("llama");
  shape.n_vocab = 100;
  CHECK_THROWS_WITH_AS(SyntheticModel(shape, Recipe::Q8_0), doctest::Contains("259 at least"), Error);
}

TEST_CASE("without a file, a shape can be planned as its file is, and not run") {
  const TemporaryFolder folder;
  for (const Shape& shape :
       {small_shape("llama"), small_shape("gemma3"), small_shape("qwen35"), small_mixture("qwen3moe")}) {
    CAPTURE(shape.arch);
    const gguf::Document file = gguf::open(write(folder, shape, Recipe::Q4_K_M));
    const gguf::Document none = SyntheticModel(shape, Recipe::Q4_K_M).document();
    REQUIRE(none.tensors().size() == file.tensors().size());
    for (const paging::Choice weights :
         {paging::Choice::mapped, paging::Choice::resident, paging::Choice::streamed}) {
      CAPTURE(weights);
      plan::Question question;
      question.model = {.n_ctx = 64, .chunk = 32, .log = {}};
      question.choice.weights = weights;
      question.tokenizer_bytes = 0;
      const plan::Plan planned = plan::make_plan(none, question), known = plan::make_plan(file, question);
      // Direct reads take whole blocks of 4,096 bytes, so those of layers depend on where the data begins.
      const std::uint64_t blocks = weights == paging::Choice::streamed ? 4 * 4096 : 0;
      // What opening takes for a vocabulary is not there without one.
      const auto peak = [](const plan::Plan& plan) {
        return plan.peak_bytes - plan.accounts[budget::Account::process];
      };
      CHECK(std::max(peak(planned), peak(known)) - std::min(peak(planned), peak(known)) <= blocks);
      CHECK(std::max(planned.streamed_bytes, known.streamed_bytes) -
                std::min(planned.streamed_bytes, known.streamed_bytes) <=
            blocks);
      exec::Inline inline_executor;
      using T = model::Chosen<arch::AnyOf<arch::All>, alloc::Aligned, exec::Inline>;
      CHECK_THROWS_WITH_AS(static_cast<void>(model::make_chosen<T>(none, inline_executor, question.model,
                                                                   alloc::Aligned(), question.choice)),
                           doctest::Contains("small Q4_K_M: its weights are not on this machine"), Error);
    }
  }
}

TEST_CASE("who watches may end the work, and no file is left") {
  const TemporaryFolder folder;
  exec::Inline inline_executor;
  const std::string path = folder.path("model.gguf");
  const auto stop = [](std::uint64_t) { throw std::runtime_error("enough"); };
  CHECK_THROWS_WITH(SyntheticModel(small_shape("llama"), Recipe::Q8_0).write(path, inline_executor, stop),
                    "enough");
  CHECK(folder.entries() == 0);
}

}  // namespace
}  // namespace mica::test::synthetic_model_test
