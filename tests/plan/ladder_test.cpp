// SPDX-License-Identifier: Apache-2.0

#include "mica/plan/ladder.hpp"

#include "io/temporary_folder.hpp"
#include "mica/runtime/open.hpp"
#include "model/run_model.hpp"
#include "runtime/talking_model.hpp"

#include <doctest/doctest.h>

namespace mica::test {
namespace {

using plan::Freedom, plan::Ladder, plan::Question;

/// A model whose weights and whose cache are both worth saving.
struct Fixture {
  TinyModel tiny{[] {
    Recipe recipe = talking();
    recipe.layers = 8;
    recipe.n_ctx = 4200;
    return recipe;
  }()};
  TemporaryFolder folder;
  std::string path = folder.file("model.gguf", tiny.bytes());
  gguf::Document document = gguf::open(path);

  [[nodiscard]] static Question question() {
    Question question;
    question.model = {.n_ctx = 4200, .chunk = 32, .logits_rows = 1, .log = {}};
    question.threads = 2;
    return question;
  }
  [[nodiscard]] std::uint64_t peak(const Question& q) const {
    return plan::make_plan(document, q).peak_bytes;
  }
};

}  // namespace

TEST_CASE("what fits is not changed") {
  const Fixture f;
  const Question asked = f.question();
  const auto rung = Ladder<>(f.document, asked, f.peak(asked), {true, true, true}).first_that_fits();
  REQUIRE(rung);
  CHECK(plan::concessions(asked, *rung).empty());
  CHECK(rung->plan.n_ctx == 4200);
}

TEST_CASE("keys and values give way first, then weights, and only what is free does") {
  const Fixture f;
  const Question asked = f.question();
  Question small = asked;
  small.choice.cache_type_k = small.choice.cache_type_v = "Q8_0";
  const std::uint64_t full = f.peak(asked), smaller = f.peak(small);
  const auto fit = [&](std::uint64_t budget, Freedom free) {
    return Ladder<>(f.document, asked, budget, free).first_that_fits();
  };
  const auto q8 = fit(smaller, {false, true, true});
  REQUIRE(q8);
  CHECK(plan::concessions(asked, *q8) == "keys and values in Q8_0");
  const auto brief = fit(smaller, {true, false, false});
  REQUIRE(brief);
  CHECK(brief->question.choice.cache_type_k == asked.choice.cache_type_k);
  CHECK(brief->plan.n_ctx < 4200);
  CHECK(brief->plan.n_ctx > 2000);
  const auto streamed = fit(full - 20000, {false, false, true});
  REQUIRE(streamed);
  CHECK(streamed->question.choice.weights == paging::Choice::streamed);
  CHECK(plan::concessions(asked, *streamed).find("read for each step") != std::string::npos);
  CHECK_FALSE(fit(smaller, {false, false, false}));
  CHECK_FALSE(fit(1000, {true, true, true}));
}

TEST_CASE("prompts are read in smaller steps before a streamed model's context gets very short") {
  const Fixture f;
  Question asked = f.question();
  asked.model.chunk = 512;
  Question least = asked;
  least.model.chunk = 32;
  least.model.n_ctx = plan::least_tokens;
  least.choice.cache_type_k = least.choice.cache_type_v = "Q8_0";
  least.choice.weights = paging::Choice::streamed;
  const auto fit = [&](std::uint64_t budget, bool chunk) {
    return Ladder<>(f.document, asked, budget, {true, true, true, chunk}).first_that_fits();
  };
  const auto brief = fit(f.peak(least), false);
  REQUIRE(brief);
  CHECK(brief->question.model.chunk == 512);
  CHECK(brief->plan.n_ctx < plan::least_tokens);
  const auto rung = fit(f.peak(least), true);
  REQUIRE(rung);
  CHECK(rung->question.model.chunk == 32);
  CHECK(rung->plan.n_ctx >= plan::least_tokens);
  CHECK(plan::concessions(asked, *rung).find("prompts in steps of 32 tokens") != std::string::npos);
  least.model.n_ctx = format::tile_tokens;
  least.model.chunk = plan::least_chunk;
  const auto last = fit(f.peak(least), true);
  REQUIRE(last);
  CHECK(last->plan.n_ctx == format::tile_tokens);
  CHECK_FALSE(fit(f.peak(least) - 1, true));
}

TEST_CASE("whatever fits is opened within its budget and runs to the end of its context") {
  const Fixture f;
  const std::uint64_t full = f.peak(f.question());
  std::size_t opened = 0;
  for (std::uint64_t budget = full; budget > full / 20; budget -= full / 12) {
    const auto rung = Ladder<>(f.document, f.question(), budget, {true, true, true}).first_that_fits();
    if (!rung) continue;
    CAPTURE(plan::concessions(f.question(), *rung));
    CHECK(rung->plan.peak_bytes <= budget);
    const auto& q = rung->question;
    auto model = open(f.path, {.n_ctx = q.model.n_ctx,
                               .chunk = q.model.chunk,
                               .threads = 2,
                               .memory_bytes = budget,
                               .choice = q.choice});
    auto session = model.session();
    REQUIRE(session.feed(random_ids(rung->plan.n_ctx, 258)) == model::StepStatus::ok);
    CHECK(session.logits().size() > 0);
    CHECK(model.ledger().peak() <= budget);
    ++opened;
  }
  CHECK(opened > 3);
}

TEST_CASE("the least rung fits its own peak, and nothing fits a byte less") {
  const Fixture f;
  Question asked = f.question();
  asked.model.chunk = 512;
  for (unsigned bits = 0; bits < 16; ++bits) {
    CAPTURE(bits);
    const Freedom free{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    const std::uint64_t least = Ladder<>(f.document, asked, 0, free).least().plan.peak_bytes;
    const auto rung = Ladder<>(f.document, asked, least, free).first_that_fits();
    REQUIRE(rung);
    CHECK(rung->plan.peak_bytes <= least);
    CHECK_FALSE(Ladder<>(f.document, asked, least - 1, free).first_that_fits());
  }
}

TEST_CASE("streamed weights leave memory for the contexts of all sequences") {
  const Fixture f;
  for (std::size_t n = 1; n <= 8; ++n) {
    CAPTURE(n);
    Question asked = f.question();
    asked.model.n_ctx = 512;
    asked.choice.weights = paging::Choice::streamed;
    asked.sequences.count = n;
    const std::uint64_t budget = f.peak(asked) + 50'000;
    auto model = open(f.path, {.n_ctx = 512,
                               .chunk = 32,
                               .threads = 2,
                               .memory_bytes = budget,
                               .sequences = {.count = n},
                               .choice = {.weights = paging::Choice::streamed}});
    std::vector<Session<AnyModel>> sessions;
    for (std::size_t i = 0; i < n; ++i) {
      sessions.push_back(model.session());
      CHECK(sessions.back().feed(random_ids(512, 258)) == model::StepStatus::ok);
    }
    CHECK(model.ledger().peak() <= budget);
  }
}

}  // namespace mica::test
