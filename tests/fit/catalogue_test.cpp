// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/catalogue.hpp"

#include "fit/planned.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <set>

mica::plan::Plan mica::test::planned(const gguf::Document& document, plan::Question question,
                                     std::uint64_t budget_bytes) {
  return fit::plan_within(document, std::move(question), budget_bytes);
}

namespace mica::test::catalogue_test {

TEST_CASE(
    "every shape but the one that tells stories has a row, with a licence and a published configuration") {
  std::set<std::string_view> rows;
  for (const fit::Row& row : fit::catalogue) {
    CAPTURE(row.shape);
    CHECK(rows.insert(row.shape).second);
    CHECK(arch::find_shape(row.shape));
    CHECK_FALSE(row.licence.empty());
    CHECK(row.source.starts_with("https://huggingface.co/"));
  }
  CHECK(rows.size() + 1 == std::size(arch::shapes));
  CHECK_FALSE(rows.contains("stories-15m"));
}

TEST_CASE("other names lead to the row of their shape, and a name that is nearly one is suggested") {
  for (const fit::Alias& alias : fit::aliases) {
    CAPTURE(alias.name);
    REQUIRE(fit::find_row(alias.name) != nullptr);
    CHECK(fit::find_row(alias.name)->shape == alias.shape);
    CHECK_FALSE(arch::find_shape(alias.name));
  }
  CHECK(fit::row_of("qwen2.5-coder-14b").shape == "qwen2-14b");
  const Error error = refusal([] { return fit::row_of("lama-8b").shape; });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "did you mean llama-8b?"));
  CHECK(mentions(error, "gpt-oss-120b"));
}

TEST_CASE("every row can be planned in every quantisation of its ladder, and fewer bits never need more") {
  for (const fit::Row& row : fit::catalogue) {
    CAPTURE(row.shape);
    fit::Candidate one(row, 2, planned);
    std::uint64_t before = ~std::uint64_t{0};
    for (std::size_t i = 0; i < one.ladder().size(); ++i) {
      CAPTURE(one.ladder()[i].name);
      const plan::Plan plan = one.plan({.quantisation = i, .n_ctx = 1024});
      CHECK(plan.n_ctx == 1024);
      CHECK(plan.peak_bytes > plan.weight_bytes);
      CHECK(plan.peak_bytes < before);
      before = plan.peak_bytes;
    }
  }
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
