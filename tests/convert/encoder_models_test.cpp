// SPDX-License-Identifier: Apache-2.0
//
// Tiny models of every family that embeds texts (encoder_models.py): every tensor must find its place, and the
// converted model must give the embedding or the scores of a reference in float64.

#include "convert/hf_folder.hpp"
#include "convert/model_values.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/embedder.hpp"
#include "mica_tools/convert/conversion.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace mica::test::encoder_models_test {
namespace {

using nlohmann::json;
using Model = Transformer<arch::AnyOf<arch::All>, WithKvElement<format::F32>, WithKernels<kernel::Scalar>>;

json models() {
  std::ifstream in(std::string(MICA_SOURCE) + "/tests/convert/encoder_models.json");
  return json::parse(in);
}

void fill(const json& model, HfFolder& folder) {
  folder.config = model["config"];
  for (const auto& [name, text] : model["files"].items())
    folder.others[name] = text.is_string() ? text.get<std::string>() : text.dump();
  const char* const answers[] = {"yes", "no"};
  for (std::size_t i = 0; i < model["answers"].size(); ++i)
    folder.tokenizer["model"]["vocab"][answers[i]] = model["answers"][i];
  add_tensors(model["tensors"], folder);
}

std::vector<float> row_of(const std::string& path, std::size_t tokens) {
  const gguf::Document document = gguf::open(path);
  exec::Inline executor;
  Model model(document, executor, {.n_ctx = tokens, .chunk = tokens, .log = {}});
  Embedder<Model> embedder(model);
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < tokens; ++i) ids.push_back((i * 37 + 11) % 250 + 4);
  std::vector<float> row(embedder.width());
  REQUIRE(embedder.embed(ids, row) == model::StepStatus::ok);
  return row;
}

}  // namespace

TEST_CASE("a converted model gives the row of the reference, in every family that embeds texts") {
  const json all = models();
  CHECK(all.size() == 13);
  for (const auto& [name, model] : all.items()) {
    CAPTURE(name);
    HfFolder folder;
    fill(model, folder);
    convert::Conversion::open(folder.write()).write(folder.path("out.gguf"));
    const auto row = row_of(folder.path("out.gguf"), model["tokens"]);
    const auto wanted = model["row"].get<std::vector<float>>();
    REQUIRE(row.size() >= wanted.size());
    float difference = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      difference = std::max(difference, std::fabs(row[i] - wanted[i]) / std::max(1.0F, std::fabs(wanted[i])));
    CAPTURE(difference);
    CHECK(difference < 2e-6F);
  }
}

}  // namespace mica::test::encoder_models_test
