// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/catalogue.hpp"

#include "fit/planned.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <set>

mica::plan::Plan mica::test::planned(const gguf::Document& document, plan::Question question,
                                     std::uint64_t budget_bytes) {
  return fit::plan_within(document, std::move(question), budget_bytes);
}

namespace mica::test::catalogue_test {

TEST_CASE(
    "every shape that writes, but the one that tells stories, has a row, with a date, a licence and a "
    "configuration") {
  std::set<std::string_view> names, shapes;
  for (const fit::Row& row : fit::catalogue) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    shapes.insert(row.shape);
    CHECK(arch::find_shape(row.shape));
    CHECK(row.published.since({2023, 1}) > 0);
    CHECK(row.published.month >= 1);
    CHECK(row.published.month <= 12);
    CHECK_FALSE(row.licence.empty());
    CHECK(std::count(row.source.begin(), row.source.end(), '/') == 1);
    CHECK_FALSE(row.title().empty());
  }
  const auto embeds = [](const arch::Shape& shape) { return shape.pooling != arch::PoolingKey::none; };
  const auto embedders = std::count_if(std::begin(arch::shapes), std::end(arch::shapes), embeds);
  CHECK(shapes.size() + 1 + static_cast<std::size_t>(embedders) == std::size(arch::shapes));
  CHECK_FALSE(shapes.contains("stories-15m"));
}

TEST_CASE("a model that was made for one use says so in its name, and its siblings do not") {
  for (const fit::Row& row : fit::catalogue) {
    CAPTURE(row.name);
    const auto named = [&](std::string_view word) { return row.name.find(word) != std::string_view::npos; };
    CHECK((row.made_for == fit::MadeFor::coding) == (named("coder") || named("devstral")));
    CHECK((row.made_for == fit::MadeFor::reasoning) == named("r1-distill"));
  }
}

TEST_CASE("the name of a shape leads to its first row, and a name that is nearly one is suggested") {
  for (const fit::Row& row : fit::catalogue) {
    CAPTURE(row.name);
    CHECK(fit::find_row(row.name) == &row);
    const fit::Row* const first = fit::find_row(row.shape);
    REQUIRE(first != nullptr);
    CHECK(first->shape == row.shape);
    CHECK(first <= &row);
    // The shape's name means no model of one use.
    CHECK((first->made_for == fit::MadeFor::everything || first->made_for == fit::MadeFor::thinking));
  }
  CHECK(fit::row_of("qwen2.5-coder-14b").shape == "qwen2-14b");
  CHECK(fit::row_of("qwen2-14b").name == "qwen2.5-14b");
  const Error error = refusal([] { return fit::row_of("lama-8b").shape; });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "did you mean llama-8b?"));
  CHECK(mentions(error, "mica list --known"));
}

TEST_CASE("every shape can be planned in every quantisation of its ladder, and fewer bits never need more") {
  std::set<std::string_view> seen;
  for (const fit::Row& row : fit::catalogue) {
    if (!seen.insert(row.shape).second) continue;
    CAPTURE(row.shape);
    fit::Candidate one(row, 2, planned);
    std::uint64_t before = ~std::uint64_t{0};
    double worth = 1;
    for (std::size_t i = 0; i < one.ladder().size(); ++i) {
      CAPTURE(one.ladder()[i].name);
      const plan::Plan plan = one.plan({.quantisation = i, .n_ctx = 1024});
      CHECK(plan.n_ctx == 1024);
      CHECK(plan.peak_bytes > plan.weight_bytes);
      CHECK(plan.peak_bytes < before);
      CHECK(one.ladder()[i].worth <= worth);
      before = plan.peak_bytes;
      worth = one.ladder()[i].worth;
    }
  }
}

TEST_CASE("a row may have a longer context than its shape, and the plan of that context grows with it") {
  fit::Candidate coder = candidate("qwen3-coder-30b-a3b");
  CHECK(coder.n_ctx_train() == 262144);
  CHECK(candidate("qwen3-30b-a3b").n_ctx_train() == 40960);
  CHECK(coder.plan({.n_ctx = 131072}).peak_bytes > coder.plan({.n_ctx = 8192}).peak_bytes);
}

TEST_CASE("files of published models have the size that the plan says") {
  // Sizes of the files that their quantisers published, in bytes, to the third digit.
  constexpr std::pair<std::string_view, double> published[] = {{"llama-8b", 4.92e9},
                                                               {"qwen2-7b", 4.68e9},
                                                               {"qwen2-14b", 8.99e9},
                                                               {"gemma2-9b", 5.76e9},
                                                               {"gpt-oss-20b", 12.1e9}};
  for (const auto& file : published) {
    const auto name = file.first;
    const double bytes = file.second;
    CAPTURE(name);
    fit::Candidate one = candidate(name);
    CHECK(one.weights(one.reference()).all == doctest::Approx(bytes).epsilon(0.004));
  }
}

TEST_CASE("active weights are those that makers name") {
  constexpr std::pair<std::string_view, double> published[] = {
      {"mixtral-8x7b", 12.9e9},   {"qwen3-30b-a3b", 3.3e9},    {"qwen3-235b-a22b", 22e9},
      {"gpt-oss-20b", 3.6e9},     {"gpt-oss-120b", 5.1e9},     {"llama-8b", 8.03e9},
      {"qwen3.5-35b-a3b", 3.0e9}, {"qwen3.5-397b-a17b", 17e9}, {"gemma4-e2b", 2.3e9},
      {"gemma4-e4b", 4.5e9},      {"gemma4-26b-a4b", 3.8e9}};
  for (const auto& model : published) {
    const auto name = model.first;
    const double weights = model.second;
    CAPTURE(name);
    // Makers round to a digit or leave embeddings out.
    CHECK(candidate(name).parameters().active == doctest::Approx(weights).epsilon(0.17));
  }
}

}  // namespace mica::test::catalogue_test
