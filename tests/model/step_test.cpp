// SPDX-License-Identifier: Apache-2.0
//
// What a step answers when something is short, and what it leaves behind.

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/arch/llama.hpp"
#include "mica/kv/contiguous.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace mica::test::step_test {
namespace {

using Plain = Transformer<arch::Llama>;
using model::StepStatus;

constexpr ModelOptions options{.n_ctx = 40, .chunk = 32, .logits_rows = 32, .log = {}};

/// What a failing pager and its test share.
struct Desk {
  std::size_t bad = none;  // the unit that cannot be read
  int acquired = 0;        // units acquired and not released

  static constexpr std::size_t none = 99;
};

/// A pager that cannot read one of its units, and counts.
struct Failing : paging::Mapped<> {
  template <mica::Allocator A>
  using Rebind = Failing;

  Failing(const paging::Table& table, alloc::Huge allocator, LogSink log, Desk* desk = nullptr)
      : Mapped(table, allocator, log), desk_(desk) {}
  [[nodiscard]] bool acquire(std::size_t unit) noexcept {
    if (unit == desk_->bad) return false;
    ++desk_->acquired;
    return true;
  }
  void release(std::size_t /*unit*/) noexcept { --desk_->acquired; }

 private:
  Desk* desk_;
};
static_assert(Pager<Failing>);

/// Overwrites one number of a vector of the model.
void spoil(TinyModel& tiny, std::string_view tensor, float value) {
  std::memcpy(tiny.tensor(tensor).data(), &value, sizeof value);
}

}  // namespace

TEST_CASE("a step beyond the context changes nothing") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  Plain model(tiny.document(), executor, options);
  auto cache = model.make_cache(), fresh = model.make_cache();
  const auto ids = random_ids(32, 67), rest = random_ids(8, 67, 3);
  static_cast<void>(feed(model, cache, ids, 32));
  CHECK(model.step(cache, random_ids(9, 67)) == StepStatus::context_full);
  CHECK(cache.tokens == 32);
  static_cast<void>(feed(model, fresh, ids, 32));
  CHECK(same_bits(feed(model, cache, rest, 32), feed(model, fresh, rest, 32)));
  CHECK(model.step(cache, random_ids(1, 67)) == StepStatus::context_full);
}

TEST_CASE("a step that the budget refuses changes nothing, and another may follow when there is room") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  using Budgeted = Plain::With<WithAllocator<alloc::Budgeted<alloc::Aligned>>>;
  budget::Ledger probe;
  std::uint64_t model_bytes = 0, tile_bytes = 0;
  {
    Budgeted model(tiny.document(), executor, {.n_ctx = 700, .chunk = 8, .logits_rows = 8, .log = {}},
                   {.allocator = alloc::Budgeted<alloc::Aligned>(probe, budget::Account::weights)});
    model_bytes = probe.used();
    tile_bytes = model.kv_bytes_per_tile();
  }
  CHECK(probe.used() == 0);
  budget::Ledger ledger(model_bytes + 16 * tile_bytes);  // room for 256 tokens
  Budgeted model(tiny.document(), executor, {.n_ctx = 700, .chunk = 8, .logits_rows = 8, .log = {}},
                 {.allocator = alloc::Budgeted<alloc::Aligned>(ledger, budget::Account::weights)});
  auto cache = model.make_cache();
  const auto ids = random_ids(256, 67);
  static_cast<void>(feed(model, cache, ids, 8));
  CHECK(ledger.left() == 0);
  CHECK(model.step(cache, random_ids(1, 67)) == StepStatus::no_memory);
  CHECK(cache.tokens == 256);
  CHECK(ledger.left() == 0);
  cache.rewind(255);
  CHECK(model.step(cache, random_ids(1, 67)) == StepStatus::ok);
}

TEST_CASE("a unit that cannot be read ends the step, the cache is as before, and no unit stays acquired") {
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    const TinyModel tiny({.tied = tied});
    exec::Inline executor;
    Desk desk;
    using Model = Plain::With<WithPager<Failing>>;
    Model model(tiny.document(), executor, options,
                {.pager = [&](const paging::Table& table, alloc::Huge a, LogSink log) {
                  return Failing(table, a, log, &desk);
                }});
    auto cache = model.make_cache(), fresh = model.make_cache();
    const auto ids = random_ids(10, 67), next = random_ids(5, 67, 2);
    static_cast<void>(feed(model, cache, ids, 32));
    for (desk.bad = 0; desk.bad <= 2; ++desk.bad) {  // the embedding, either layer
      CAPTURE(desk.bad);
      CHECK(model.step(cache, next) == StepStatus::read_failed);
      CHECK(cache.tokens == 10);
      CHECK(desk.acquired == 0);
    }
    desk.bad = Desk::none;
    static_cast<void>(feed(model, fresh, ids, 32));
    CHECK(same_bits(feed(model, cache, next, 32), feed(model, fresh, next, 32)));
    for (const std::size_t head : {0u, 3u}) {
      desk.bad = head;
      const std::vector<std::size_t> rows = {0};
      CHECK(model.logits(rows).rows() == (head == 0 && !tied ? 1 : 0));
      CHECK(desk.acquired == 0);
    }
  }
}

TEST_CASE("the first layer that is not finite is found by number") {
  exec::Inline executor;
  for (const std::size_t layer : {0u, 1u}) {
    for (const auto part : {"attn_norm", "ffn_norm"}) {
      CAPTURE(layer);
      CAPTURE(part);
      TinyModel tiny{Recipe{}};
      spoil(tiny, arch::tensor_names::layer(layer, part), std::numeric_limits<float>::quiet_NaN());
      Plain model(tiny.document(), executor, options);
      auto cache = model.make_cache();
      const auto ids = random_ids(5, 67);
      const auto logits = feed(model, cache, ids, 32);
      CHECK_FALSE(std::isfinite(logits.back()));
      CHECK(model.first_non_finite_layer(cache, ids.back()) == layer);
      CHECK(cache.tokens == 5);
    }
  }
}

TEST_CASE("an infinite activation reaches the logits of quantised weights") {
  exec::Inline executor;
  TinyModel tiny(blocks_of(format::Q8_0::id));
  spoil(tiny, "blk.1.attn_norm.weight", std::numeric_limits<float>::infinity());
  Plain model(tiny.document(), executor, options);
  auto cache = model.make_cache();
  const auto ids = random_ids(3, 67);
  const auto logits = feed(model, cache, ids, 32);
  CHECK(std::none_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
  CHECK(model.first_non_finite_layer(cache, ids.back()) == 1);
}

TEST_CASE("looking for a layer that is not finite leaves the cache as it was") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  Plain model(tiny.document(), executor, options);
  auto cache = model.make_cache(), fresh = model.make_cache();
  const auto ids = random_ids(9, 67), next = random_ids(3, 67, 2);
  CHECK(model.first_non_finite_layer(cache, 0) == 2);
  static_cast<void>(feed(model, cache, ids, 32));
  CHECK(model.first_non_finite_layer(cache, ids.back()) == 2);
  static_cast<void>(feed(model, fresh, ids, 32));
  CHECK(same_bits(feed(model, cache, next, 32), feed(model, fresh, next, 32)));
}

TEST_CASE("a model without options has the context it was trained for, and a chunk is never longer") {
  const TinyModel tiny({.n_ctx = 48});
  exec::Inline executor;
  const Plain model(tiny.document(), executor);
  CHECK(model.n_ctx() == 48);
  CHECK(model.chunk() == 48);
  CHECK(model.logits_rows() == 1);
  const Plain min(tiny.document(), executor, {.n_ctx = 0, .chunk = 0, .logits_rows = 0, .log = {}});
  CHECK(min.chunk() == 1);
  CHECK(min.logits_rows() == 1);
}

}  // namespace mica::test::step_test
