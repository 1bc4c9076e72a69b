// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/fallbacks.hpp"

#include "io/temporary_folder.hpp"
#include "mica/runtime/open.hpp"
#include "model/run_model.hpp"
#include "runtime/talking_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::fallbacks_test {
namespace {

using plan::Adjustable, plan::Fallbacks, plan::Question;

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
  const Question requested = f.question();
  const auto fallback =
      Fallbacks<>(f.document, requested, f.peak(requested), {true, true, true}).first_that_fits();
  REQUIRE(fallback);
  CHECK(plan::differences(requested, *fallback).empty());
  CHECK(fallback->plan.n_ctx == 4200);
}

TEST_CASE("keys and values give way first, then weights, and only what is free does") {
  const Fixture f;
  const Question requested = f.question();
  Question small = requested;
  small.choice.cache_type_k = small.choice.cache_type_v = kv::Element::q8_0;
  const std::uint64_t full = f.peak(requested), smaller = f.peak(small);
  const auto fit = [&](std::uint64_t budget, Adjustable free) {
    return Fallbacks<>(f.document, requested, budget, free).first_that_fits();
  };
  const auto q8 = fit(smaller, {false, true, true});
  REQUIRE(q8);
  CHECK(plan::differences(requested, *q8) == "keys and values in Q8_0");
  const auto brief = fit(smaller, {true, false, false});
  REQUIRE(brief);
  CHECK(brief->question.choice.cache_type_k == requested.choice.cache_type_k);
  CHECK(brief->plan.n_ctx < 4200);
  CHECK(brief->plan.n_ctx > 2000);
  const auto streamed = fit(full - 20000, {false, false, true});
  REQUIRE(streamed);
  CHECK(streamed->question.choice.weights == paging::Choice::streamed);
  CHECK(plan::differences(requested, *streamed).find("read for each step") != std::string::npos);
  CHECK_FALSE(fit(smaller, {false, false, false}));
  CHECK_FALSE(fit(1000, {true, true, true}));
}

TEST_CASE("prompts are read in smaller steps before a streamed model's context gets very short") {
  const Fixture f;
  Question requested = f.question();
  requested.model.chunk = 512;
  Question min = requested;
  min.model.chunk = 32;
  min.model.n_ctx = plan::min_tokens;
  min.choice.cache_type_k = min.choice.cache_type_v = kv::Element::q8_0;
  min.choice.weights = paging::Choice::streamed;
  const auto fit = [&](std::uint64_t budget, bool chunk) {
    return Fallbacks<>(f.document, requested, budget, {true, true, true, chunk}).first_that_fits();
  };
  const auto brief = fit(f.peak(min), false);
  REQUIRE(brief);
  CHECK(brief->question.model.chunk == 512);
  CHECK(brief->plan.n_ctx < plan::min_tokens);
  const auto fallback = fit(f.peak(min), true);
  REQUIRE(fallback);
  CHECK(fallback->question.model.chunk == 32);
  CHECK(fallback->plan.n_ctx >= plan::min_tokens);
  CHECK(plan::differences(requested, *fallback).find("prompts in steps of 32 tokens") != std::string::npos);
  min.model.n_ctx = format::tile_tokens;
  min.model.chunk = plan::min_chunk;
  const auto last = fit(f.peak(min), true);
  REQUIRE(last);
  CHECK(last->plan.n_ctx == format::tile_tokens);
  CHECK_FALSE(fit(f.peak(min) - 1, true));
}

TEST_CASE("choices that change numbers are made only where they are allowed, one after the other") {
  const Fixture f;
  const Question requested = f.question();
  const auto fit = [&](std::uint64_t budget, bool numbers) {
    return Fallbacks<>(f.document, requested, budget, {false, true, true, true, numbers}).first_that_fits();
  };
  const std::uint64_t exact =
      Fallbacks<>(f.document, requested, 0, {false, true, true, true}).smallest().plan.peak_bytes;
  const auto same = fit(exact, true);
  REQUIRE(same);
  CHECK(same->question.choice.evict.capacity() == 0);
  CHECK_FALSE(fit(exact - 1, false));
  const auto window = fit(exact - 1, true);
  REQUIRE(window);
  CHECK(window->question.choice.evict.capacity() == 4096);
  CHECK(plan::differences(requested, *window).find("a window of 4096 tokens: the model does not see") !=
        std::string::npos);
  const std::uint64_t least =
      Fallbacks<>(f.document, requested, 0, {false, true, true, true, true}).smallest().plan.peak_bytes;
  CHECK(least + 1'000'000 < exact);
  std::size_t windows = 0, files = 0, fours = 0, budgets = 0;
  for (std::uint64_t budget = least; budget < exact; budget += (exact - least) / 40 + 1) {
    CAPTURE(budget);
    const auto fallback = fit(budget, true);
    REQUIRE(fallback);
    const auto& choice = fallback->question.choice;
    windows += choice.evict.capacity() != 0;
    files += choice.kv == kv::Choice::spilled;
    fours += choice.cache_type_k == kv::ElementChoice(kv::Element::q4_0);
    const bool is_first = windows == 1 || files == 1 || fours == 1;  // of its kind
    if (budgets++ % 16 != 0 && !is_first) continue;  // a run over the whole context takes seconds
    auto model = open(f.path, {.n_ctx = fallback->question.model.n_ctx,
                               .chunk = fallback->question.model.chunk,
                               .threads = 2,
                               .memory_bytes = budget,
                               .choice = choice});
    auto session = model.session();
    REQUIRE(session.feed(random_ids(4200, 258)) == model::StepStatus::ok);
    CHECK(model.ledger().peak() <= budget);
  }
  CHECK(windows > 0);
  CHECK(windows + files + fours >= 30);
}

TEST_CASE("whatever fits is opened within its budget and runs to the end of its context") {
  const Fixture f;
  const std::uint64_t full = f.peak(f.question());
  std::size_t opened = 0;
  for (std::uint64_t budget = full; budget > plan::any_process_bytes;
       budget -= (full - plan::any_process_bytes) / 6) {
    const auto fallback = Fallbacks<>(f.document, f.question(), budget, {true, true, true}).first_that_fits();
    if (!fallback) continue;
    CAPTURE(plan::differences(f.question(), *fallback));
    CHECK(fallback->plan.peak_bytes <= budget);
    const auto& q = fallback->question;
    auto model = open(f.path, {.n_ctx = q.model.n_ctx,
                               .chunk = q.model.chunk,
                               .threads = 2,
                               .memory_bytes = budget,
                               .choice = q.choice});
    auto session = model.session();
    REQUIRE(session.feed(random_ids(fallback->plan.n_ctx, 258)) == model::StepStatus::ok);
    CHECK(session.logits().size() > 0);
    CHECK(model.ledger().peak() <= budget);
    ++opened;
  }
  CHECK(opened > 3);
}

TEST_CASE("the least rung fits its own peak, and nothing fits a byte less") {
  const Fixture f;
  Question requested = f.question();
  requested.model.chunk = 512;
  for (unsigned bits = 0; bits < 16; ++bits) {
    CAPTURE(bits);
    const Adjustable free{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    const std::uint64_t min = Fallbacks<>(f.document, requested, 0, free).smallest().plan.peak_bytes;
    const auto fallback = Fallbacks<>(f.document, requested, min, free).first_that_fits();
    REQUIRE(fallback);
    CHECK(fallback->plan.peak_bytes <= min);
    CHECK_FALSE(Fallbacks<>(f.document, requested, min - 1, free).first_that_fits());
  }
}

TEST_CASE("every budget above the smallest one has a fallback that fits") {
  const Fixture f;
  Question requested = f.question();
  requested.model.n_ctx = 64;
  requested.model.chunk = 256;
  const Adjustable free{false, false, true, false};
  const std::uint64_t full = f.peak(requested), step = (full - plan::any_process_bytes) / 60;
  for (std::uint64_t budget = Fallbacks<>(f.document, requested, 0, free).smallest().plan.peak_bytes;
       budget <= full; budget += step) {
    CAPTURE(budget);
    const auto fallback = Fallbacks<>(f.document, requested, budget, free).first_that_fits();
    REQUIRE(fallback);
    CHECK(fallback->plan.peak_bytes <= budget);
  }
}

TEST_CASE("streamed weights leave memory for the contexts of all sequences") {
  const Fixture f;
  for (std::size_t n = 1; n <= 8; ++n) {
    CAPTURE(n);
    Question requested = f.question();
    requested.model.n_ctx = 512;
    requested.choice.weights = paging::Choice::streamed;
    requested.sequences.count = n;
    const std::uint64_t budget = f.peak(requested) + 50'000;
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

}  // namespace mica::test::fallbacks_test
