// SPDX-License-Identifier: Apache-2.0
//
// Several sequences in one step: the bits of steps of their own, and all or nothing when room is short.

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::sequence_step_test {
namespace {

using Plain = Transformer<arch::Llama>;
using model::StepStatus;
using Texts = std::vector<std::vector<text::TokenId>>;

/// One token each, some tokens beside many, and more than attention takes in a block.
const std::vector<std::vector<std::size_t>> rounds = {{1}, {1, 7, 2}, {40, 1, 1}};

Texts texts(std::size_t n_vocab) {
  return {random_ids(90, n_vocab, 1), random_ids(33, n_vocab, 2), random_ids(60, n_vocab, 3),
          random_ids(1, n_vocab, 4)};
}

template <class Model>
void check_independence(Model& model, const Texts& texts) {
  for (const auto& sizes : rounds) {
    const auto together = feed_shared(model, texts, sizes);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      CAPTURE(i);
      auto cache = model.make_cache();
      CHECK(same_bits(together[i], feed(model, cache, texts[i], 64)));
    }
  }
}

constexpr ModelOptions options{.n_ctx = 300, .chunk = 128, .logits_rows = 128, .log = {}};

}  // namespace

TEST_CASE("a sequence gets the same bits whatever else is in its steps") {
  for (const auto id : {format::F32::id, format::Q8_0::id, format::Q4_K::id}) {
    CAPTURE(format::name(id));
    const TinyModel tiny(id == format::F32::id ? Recipe{} : blocks_of(id));
    exec::Inline executor;
    Plain model(tiny.document(), executor, options);
    check_independence(model, texts(67));
    exec::Team team(3);
    Plain::With<WithExecutor<exec::Team>> threaded(tiny.document(), team, options);
    check_independence(threaded, texts(67));
  }
}

TEST_CASE("a sequence of a hybrid gets the same bits whatever else is in its steps") {
  for (const HybridRecipe& recipe : {HybridRecipe{}, with_experts(), of_q8_0(with_experts())}) {
    CAPTURE(format::name(recipe.format));
    CAPTURE(recipe.experts);
    const TinyHybrid tiny(recipe);
    exec::Team team(2);
    Hybrid::With<WithExecutor<exec::Team>> model(tiny.document(), team, options);
    check_independence(model, texts(recipe.n_vocab));
  }
}

TEST_CASE("a part without room in the context is named, and nothing happens to any") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  Plain model(tiny.document(), executor, {.n_ctx = 40, .chunk = 64, .logits_rows = 64, .log = {}});
  const auto ids = random_ids(38, 67), more = random_ids(3, 67, 2);
  auto a = model.make_cache(), full = model.make_cache(), fresh = model.make_cache();
  static_cast<void>(feed(model, full, ids, 64));
  const std::vector<Plain::SequenceStep> sequences = {{&a, more}, {&full, more}};
  const auto result = model.step(sequences);
  CHECK(result.status == StepStatus::context_full);
  CHECK(result.part == 1);
  CHECK(a.tokens == 0);
  CHECK(full.tokens == 38);
  const std::vector<Plain::SequenceStep> fitting = {{&a, more}, {&full, std::span(more).first(2)}};
  CHECK(model.step(fitting).status == StepStatus::ok);
  const std::vector<std::size_t> row = {2};
  const auto logits = model.logits(row)[0];
  const std::vector<float> kept(logits.begin(), logits.end());
  const auto alone = feed(model, fresh, more, 64);
  CHECK(same_bits(kept, std::span(alone).last(67)));
}

TEST_CASE("a part that the budget refuses is named, and what the others had reserved goes back") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  using Budgeted = Plain::With<WithAllocator<alloc::Budgeted<alloc::Aligned>>>;
  const ModelOptions small{.n_ctx = 700, .chunk = 8, .logits_rows = 8, .log = {}};
  const auto ids = random_ids(2, 67);
  budget::Ledger probe;
  std::uint64_t one = 0;  // what a sequence of two tokens takes
  {
    Budgeted model(tiny.document(), executor, small,
                   {.allocator = alloc::Budgeted<alloc::Aligned>(probe, budget::Account::weights)});
    auto cache = model.make_cache();
    const auto before = probe.used();
    REQUIRE(model.step(cache, ids) == StepStatus::ok);
    one = probe.used() - before;
  }
  budget::Ledger ledger(probe.peak() + one);
  Budgeted model(tiny.document(), executor, small,
                 {.allocator = alloc::Budgeted<alloc::Aligned>(ledger, budget::Account::weights)});
  auto a = model.make_cache(), b = model.make_cache(), c = model.make_cache();
  REQUIRE(model.step(a, ids) == StepStatus::ok);
  const auto used = ledger.used();
  REQUIRE(ledger.left() == one);
  const std::vector<Budgeted::SequenceStep> sequences = {{&a, ids}, {&b, ids}, {&c, ids}};
  const auto result = model.step(sequences);
  CHECK(result.status == StepStatus::no_memory);
  CHECK(result.part == 2);
  CHECK(ledger.used() == used);
  CHECK(a.tokens == 2);
  CHECK(b.tokens == 0);
  CHECK(model.step(std::span(sequences).first(2)).status == StepStatus::ok);
  CHECK(a.tokens == 4);
  CHECK(b.tokens == 2);
}

}  // namespace mica::test::sequence_step_test
