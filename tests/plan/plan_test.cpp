// SPDX-License-Identifier: Apache-2.0

#include "mica/plan/plan.hpp"

#include "io/temporary_folder.hpp"
#include "mica/plan/solve.hpp"
#include "mica/runtime/open.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "runtime/talking_model.hpp"

#include <doctest/doctest.h>

#include <optional>

namespace mica::test::plan_test {
namespace {

using budget::Account;

plan::Question question(std::size_t n_ctx, model::Choice choice = {}) {
  plan::Question question;
  question.model = {.n_ctx = n_ctx, .chunk = 32, .logits_rows = 1, .log = {}};
  question.choice = std::move(choice);
  question.threads = 2;
  return question;
}

/// Whether a plan for 120 tokens in a context of 200 is what a run books.
void plan_equals_run(const gguf::Document& document, std::span<const std::byte> bytes,
                     const model::Choice& choice) {
  plan::Question requested = question(200, choice);
  requested.tokens = 120;
  const plan::Plan plan = plan::make_plan(document, requested);
  auto model = open(bytes, "tiny.gguf", {.n_ctx = 200, .chunk = 32, .threads = 2, .choice = choice});
  auto session = model.session();
  REQUIRE(session.feed(random_ids(120, 258)) == model::StepStatus::ok);
  CHECK(plan.tokens == 120);
  plan.accounts.for_each([&](Account account, std::uint64_t booked) {
    CAPTURE(budget::name(account));
    CHECK(model.ledger().used(account) == booked);
  });
  CHECK(plan.peak_bytes >= plan.accounts.total());
  CHECK(model.ledger().peak() == plan.peak_bytes);
}

}  // namespace

TEST_CASE("the plan of a run is what the run books, account by account") {
  const TinyModel tiny(talking());
  for (const kv::Choice kv : {kv::Choice::segmented, kv::Choice::contiguous}) {
    for (const paging::Choice weights : {paging::Choice::mapped, paging::Choice::resident}) {
      const model::Choice choice{.kv = kv, .weights = weights, .cache_type_k = kv::Element::q8_0};
      CAPTURE(kv);
      CAPTURE(weights);
      plan_equals_run(tiny.document(), tiny.bytes(), choice);
    }
  }
}

TEST_CASE("the plan of a hybrid and of a mixture of experts is what the run books") {
  HybridRecipe dense;
  dense.n_vocab = 258;
  dense.edit = write_byte_vocabulary;
  for (const HybridRecipe& recipe : {dense, with_experts(dense)}) {
    CAPTURE(recipe.experts);
    const TinyHybrid tiny(recipe);
    for (const paging::Choice weights : {paging::Choice::mapped, paging::Choice::resident}) {
      CAPTURE(weights);
      plan_equals_run(tiny.document(), tiny.bytes(), {.kv = kv::Choice::segmented, .weights = weights});
    }
    const plan::Plan plan = plan::make_plan(tiny.document(), question(200));
    CHECK(plan.accounts[Account::state] == tiny.state_floats() * sizeof(float));
    CHECK(plan.accounts[Account::checkpoints] == plan.accounts[Account::state]);  // one, by default
  }
}

TEST_CASE("the plan of several sequences is what as many sessions book") {
  const TinyModel tiny(talking());
  for (const kv::Choice kv : {kv::Choice::segmented, kv::Choice::contiguous, kv::Choice::paged}) {
    CAPTURE(kv);
    plan::Question requested = question(200, {.kv = kv});
    requested.sequences = {.count = 3, .tokens = 50};
    const plan::Plan plan = plan::make_plan(tiny.document(), requested);
    auto model =
        open(tiny.bytes(), "tiny.gguf", {.n_ctx = 200, .chunk = 32, .threads = 2, .choice = {.kv = kv}});
    std::vector<Session<AnyModel>> sessions;
    for (const std::size_t tokens : {200u, 50u, 50u}) {
      sessions.push_back(model.session());
      REQUIRE(sessions.back().feed(random_ids(tokens, 258)) == model::StepStatus::ok);
    }
    CHECK(model.ledger().used(Account::kv) == plan.accounts[Account::kv]);
    CHECK(model.ledger().peak() == plan.peak_bytes);
  }
}

TEST_CASE("the bytes of a sequence are those that a session books as it grows") {
  const TinyModel dense(talking());
  HybridRecipe recipe;
  recipe.n_vocab = 258;
  recipe.edit = write_byte_vocabulary;
  const TinyHybrid hybrid(recipe);
  const auto books_as_planned = [](const gguf::Document& document, std::span<const std::byte> bytes) {
    plan::Question requested = question(200, {.kv = kv::Choice::paged});
    requested.sequence_bytes = true;
    const plan::Plan plan = plan::make_plan(document, requested);
    CHECK(plan.peak_bytes == plan::make_plan(document, question(200, {.kv = kv::Choice::paged})).peak_bytes);
    auto model = open(bytes, "tiny.gguf",
                      {.n_ctx = 200, .chunk = 32, .threads = 2, .choice = {.kv = kv::Choice::paged}});
    const std::uint64_t before = model.ledger().used();
    auto session = model.session();
    REQUIRE(plan.sequence_bytes.size() == 1 + (200 + 15) / 16);
    CHECK(model.ledger().used() - before == plan.sequence_bytes[0]);
    for (std::size_t tiles = 1; tiles < plan.sequence_bytes.size(); ++tiles) {
      const std::size_t tokens = std::min<std::size_t>(16 * tiles, 200) - session.tokens().size();
      REQUIRE(session.feed(random_ids(tokens, 258)) == model::StepStatus::ok);
      CHECK(model.ledger().used() - before == plan.sequence_bytes[tiles]);
    }
  };
  books_as_planned(dense.document(), dense.bytes());
  books_as_planned(hybrid.document(), hybrid.bytes());
}

TEST_CASE("models of one ledger book the process once, and leave nothing behind") {
  const TinyModel tiny(talking());
  const auto ledger = std::make_shared<budget::Ledger>(std::uint64_t{1} << 30);
  const auto open_one = [&] {
    return open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .threads = 1, .ledger = ledger});
  };
  {
    auto first = open_one();
    const std::uint64_t one = ledger->used();
    CHECK(&first.ledger() == ledger.get());
    {
      auto second = open_one();
      CHECK(ledger->used() == 2 * one - plan::any_process_bytes);
    }
    CHECK(ledger->used() == one);
  }
  CHECK(ledger->used() == 0);
  {
    std::optional first(open_one());
    const std::uint64_t one = ledger->used();
    const auto second = open_one();
    first.reset();  // the process stays as long as a model
    CHECK(ledger->used() == one);
  }
  CHECK(ledger->used() == 0);
  const auto small = std::make_shared<budget::Ledger>(plan::any_process_bytes);
  CHECK(refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.ledger = small}); }).code() ==
        ErrorCode::budget);
  CHECK(small->used() == 0);
}

TEST_CASE("a plan says what a token costs, and smaller elements cost less") {
  const TinyModel tiny(talking());
  const plan::Plan f16 = plan::make_plan(tiny.document(), question(512));
  const plan::Plan q8 = plan::make_plan(
      tiny.document(), question(512, {.cache_type_k = kv::Element::q8_0, .cache_type_v = kv::Element::q8_0}));
  CHECK(f16.kv_bytes_per_token == 2 * 2 * 2 * 10 * 2);  // layers, keys and values, heads, head_dim, bytes
  CHECK(q8.kv_bytes_per_token < f16.kv_bytes_per_token);
  CHECK(q8.accounts[Account::kv] < f16.accounts[Account::kv]);
  CHECK(f16.accounts[Account::kv] >= 512 * f16.kv_bytes_per_token);
  CHECK(f16.n_ctx == 512);
  CHECK(plan::make_plan(tiny.document(), question(0)).n_ctx == 700);
}

TEST_CASE("a plan raises what opening would raise") {
  Recipe recipe = talking();
  recipe.without = {"blk.1.ffn_up.weight"};
  const TinyModel tiny(recipe);
  const Error error = refusal([&] { return plan::make_plan(tiny.document(), question(64)); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "blk.1.ffn_up.weight"));
}

TEST_CASE("the longest context fits, and one tile more does not") {
  const TinyModel tiny(talking());
  const plan::Question requested = question(0, {.kv = kv::Choice::contiguous});
  plan::Question half = requested;
  half.model.n_ctx = 336;
  const std::uint64_t budget = plan::make_plan(tiny.document(), half).peak_bytes + 100;
  const std::size_t n = plan::longest_context(tiny.document(), requested, 700, budget);
  CHECK(n == 336);
  plan::Question more = requested;
  more.model.n_ctx = n + format::tile_tokens;
  CHECK(plan::make_plan(tiny.document(), more).peak_bytes > budget);
  CHECK(plan::longest_context(tiny.document(), requested, 700, 1000) == 0);
}

TEST_CASE("ways are plans that hold, from the best to the least, and none could be longer") {
  const TinyModel tiny(talking());
  constexpr std::size_t max = 512;
  const auto exact = [&](std::size_t n_ctx) {
    return plan::make_plan(tiny.document(), question(n_ctx)).peak_bytes;
  };
  const std::uint64_t room = exact(256);
  const std::vector<plan::Solution> solutions = plan::solutions(tiny.document(), question(max), max, room);
  REQUIRE(solutions.size() >= 3);
  CHECK(solutions[0].n_ctx == 256);
  for (std::size_t i = 0; i < solutions.size(); ++i) {
    const plan::Solution& way = solutions[i];
    CAPTURE(way.element);
    CAPTURE(way.streamed);
    CHECK(way.element == plan::solution_elements[i % 3]);
    CHECK(way.streamed == (i >= 3));
    CHECK(way.plan.n_ctx == way.n_ctx);
    CHECK(way.plan.peak_bytes <= room);
    if (i % 3 == 1)
      CHECK(way.n_ctx >= solutions[i - 1].n_ctx);  // heads of this model are no whole blocks of 32
    if (way.n_ctx == max) continue;
    plan::Question longer = question(way.n_ctx + format::tile_tokens);
    longer.choice.cache_type_k = longer.choice.cache_type_v = way.element;
    longer.choice.weights = way.streamed ? paging::Choice::streamed : paging::Choice::resident;
    longer.choice.weights_bytes = way.streamed ? 1 : 0;
    CHECK(plan::make_plan(tiny.document(), longer).peak_bytes > room);
  }
  const std::vector<plan::Solution> none = plan::solutions(tiny.document(), question(max), max, 1 << 20);
  REQUIRE(none.size() == 6);
  CHECK(none[0].n_ctx == 0);
  CHECK(none[0].plan.peak_bytes > (1 << 20));
  CHECK(plan::solutions(tiny.document(), question(max), max, std::uint64_t{1} << 40).size() ==
        3);  // nothing needs a disk
}

}  // namespace mica::test::plan_test
