// SPDX-License-Identifier: Apache-2.0
//
// Models with recurrent layers and mixtures of experts: same bits however a text is split, and every byte booked.

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/paging/resident.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace mica::test::hybrid_test {
namespace {

using Booked = alloc::Budgeted<alloc::Huge>;

/// Dense and sparse, of floats and of integers.
std::vector<HybridRecipe> recipes() {
  const HybridRecipe dense, sparse = with_experts();
  return {dense, sparse, of_q8_0(dense), of_q8_0(sparse)};
}

template <class Model>
std::vector<float> run(const TinyHybrid& tiny, std::span<const text::TokenId> ids, std::size_t chunk,
                       typename Model::Executor& executor) {
  Model model(tiny.document(), executor, {.n_ctx = 300, .chunk = chunk, .logits_rows = chunk, .log = {}});
  auto cache = model.make_cache();
  return feed(model, cache, ids, chunk);
}

/// Makes a model and feeds it 80 tokens; answers each account's peak.
template <class Model, class A>
budget::Accounts peaks(const TinyHybrid& tiny, std::size_t checkpoints) {
  budget::Ledger ledger;
  {
    exec::Inline executor;
    Model model(tiny.document(), executor,
                {.n_ctx = 300, .chunk = 40, .logits_rows = 2, .checkpoints = checkpoints, .log = {}},
                {.allocator = A(ledger, budget::Account::weights)});
    auto cache = model.make_cache();
    const auto ids = random_ids(40, tiny.recipe().n_vocab);
    for (int i = 0; i < 2; ++i) REQUIRE(model.step(cache, ids) == model::StepStatus::ok);
  }
  CHECK(ledger.used() == 0);
  return ledger.peaks();
}

}  // namespace

TEST_CASE("a hybrid gives the same bits for any step, team, pager and kernels") {
  for (const HybridRecipe& recipe : recipes()) {
    CAPTURE(format::name(recipe.format));
    CAPTURE(recipe.experts);
    const TinyHybrid tiny(recipe);
    const auto ids = random_ids(70, recipe.n_vocab);
    exec::Inline executor;
    const auto expected = run<Hybrid>(tiny, ids, 70, executor);
    CHECK(std::all_of(expected.begin(), expected.end(), [](float x) { return std::isfinite(x); }));
    for (const std::size_t chunk : {1u, 7u, 64u}) {
      CAPTURE(chunk);
      CHECK(same_bits(expected, run<Hybrid>(tiny, ids, chunk, executor)));
    }
    exec::Team team(3);
    using Threaded = Hybrid::With<WithExecutor<exec::Team>>;
    CHECK(same_bits(expected, run<Threaded>(tiny, ids, 70, team)));
    CHECK(same_bits(expected, run<Threaded>(tiny, ids, 7, team)));
    CHECK(same_bits(expected, run<Hybrid::With<WithPager<paging::Resident<>>>>(tiny, ids, 70, executor)));
    CHECK(same_bits(expected, run<Hybrid::With<WithKernels<kernel::Scalar>>>(tiny, ids, 70, executor)));
  }
}

TEST_CASE("experts whose gate and up are one tensor give the bits of experts whose are two") {
  for (HybridRecipe recipe : {with_experts(), of_q8_0(with_experts())}) {
    const auto ids = random_ids(20, recipe.n_vocab);
    exec::Inline executor;
    const auto expected = run<Hybrid>(TinyHybrid(recipe), ids, 20, executor);
    recipe.fused_experts = true;
    CHECK(same_bits(expected, run<Hybrid>(TinyHybrid(recipe), ids, 20, executor)));
  }
}

TEST_CASE("a cache says how far a rewind went, and going on from there equals a fresh cache") {
  const TinyHybrid tiny(with_experts());
  const auto ids = random_ids(100, 67), other = random_ids(9, 67, 8);
  exec::Inline executor;
  Hybrid model(tiny.document(), executor,
               {.n_ctx = 300, .chunk = 32, .logits_rows = 32, .checkpoints = 2, .log = {}});
  const auto expect = [&](std::size_t keep,
                          std::size_t resident) {  // checkpoints after 64, 96, and 100 in their place
    CAPTURE(keep);
    auto cache = model.make_cache(), fresh = model.make_cache();
    static_cast<void>(feed(model, cache, ids, 32));
    CHECK(cache.rewind(keep) == resident);
    CHECK(cache.tokens == resident);
    static_cast<void>(feed(model, cache, std::span(ids).subspan(resident, keep - resident), 32));
    static_cast<void>(feed(model, fresh, std::span(ids).first(keep), 32));
    CHECK(same_bits(feed(model, cache, other, 32), feed(model, fresh, other, 32)));
  };
  expect(100, 100);
  expect(99, 96);
  expect(96, 96);
  expect(95, 0);
  expect(1, 0);
  expect(0, 0);
}

TEST_CASE("two caches of one hybrid do not know of each other") {
  const TinyHybrid tiny{HybridRecipe{}};
  const auto a = random_ids(12, 67, 1), b = random_ids(12, 67, 2);
  exec::Inline executor;
  Hybrid model(tiny.document(), executor, {.n_ctx = 64, .chunk = 12, .logits_rows = 12, .log = {}});
  auto cache_a = model.make_cache(), cache_b = model.make_cache(), alone = model.make_cache();
  std::vector<float> mixed;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto row = feed(model, cache_a, std::span(a).subspan(i, 1), 1);
    mixed.insert(mixed.end(), row.begin(), row.end());
    static_cast<void>(feed(model, cache_b, std::span(b).subspan(i, 1), 1));
  }
  CHECK(same_bits(mixed, feed(model, alone, a, 12)));
}

TEST_CASE("looking for a bad layer leaves a cache that can go on") {
  const TinyHybrid tiny{HybridRecipe{}};
  const auto ids = random_ids(20, 67), next = random_ids(3, 67, 2);
  exec::Inline executor;
  Hybrid model(tiny.document(), executor, {.n_ctx = 64, .chunk = 16, .logits_rows = 16, .log = {}});
  auto cache = model.make_cache(), fresh = model.make_cache();
  static_cast<void>(feed(model, cache, std::span(ids).first(16), 16));
  static_cast<void>(feed(model, cache, std::span(ids).subspan(16), 1));
  CHECK(model.first_non_finite_layer(cache, ids.back()) == 4);
  CHECK(cache.tokens == 16);
  static_cast<void>(feed(model, cache, std::span(ids).subspan(16), 16));
  static_cast<void>(feed(model, fresh, ids, 16));
  CHECK(same_bits(feed(model, cache, next, 16), feed(model, fresh, next, 16)));
}

TEST_CASE("a dry run of a hybrid books what a real run books, its state and checkpoints too") {
  for (const HybridRecipe& recipe : recipes()) {
    for (const std::size_t checkpoints : {0u, 3u}) {
      CAPTURE(recipe.experts);
      CAPTURE(checkpoints);
      const TinyHybrid tiny(recipe);
      const auto plan =
          peaks<Hybrid::With<WithAllocator<alloc::Counting>>, alloc::Counting>(tiny, checkpoints);
      const auto real = peaks<Hybrid::With<WithAllocator<Booked>>, Booked>(tiny, checkpoints);
      real.for_each([&](budget::Account account, std::uint64_t bytes) {
        CAPTURE(budget::name(account));
        CHECK(plan[account] == bytes);
      });
      CHECK(real[budget::Account::state] == tiny.state_floats() * sizeof(float));
      CHECK(real[budget::Account::checkpoints] == checkpoints * tiny.state_floats() * sizeof(float));
    }
  }
}

TEST_CASE("layers that keep a state take no cache") {
  HybridRecipe recipe;
  const TinyHybrid half(recipe);
  recipe.interval = 1;
  const TinyHybrid all(recipe);
  exec::Inline executor;
  const Hybrid a(half.document(), executor, {.n_ctx = 64, .chunk = 8, .log = {}});
  const Hybrid b(all.document(), executor, {.n_ctx = 64, .chunk = 8, .log = {}});
  CHECK(2 * a.kv_bytes_per_tile() == b.kv_bytes_per_tile());
  CHECK(a.config().recurrent());
  CHECK_FALSE(b.config().recurrent());
}

}  // namespace mica::test::hybrid_test
