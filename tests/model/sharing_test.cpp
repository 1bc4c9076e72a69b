// SPDX-License-Identifier: Apache-2.0
//
// Sequences that begin alike hold and compute their beginning once, and answer as if they had it for themselves.

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/kv/paged.hpp"
#include "mica/runtime/idle_sessions.hpp"
#include "mica/runtime/session.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"
#include "model/windowed_family.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace mica::test::sharing_test {
namespace {

using A = alloc::Budgeted<alloc::Aligned>;
using Paged = Transformer<arch::Llama, WithKv<kv::Paged<>>, WithAllocator<A>>;

std::vector<float> logits_of(auto& session) {
  const auto row = session.logits();
  return {row.begin(), row.end()};
}

}  // namespace

TEST_CASE("64 sessions with a common prefix of 1,024 tokens hold it once") {
  const TinyModel tiny({.layers = 1, .n_ctx = 1400});
  exec::Inline executor;
  budget::Ledger ledger;
  Paged model(tiny.document(), executor, {.n_ctx = 1400, .chunk = 64, .logits_rows = 1, .log = {}},
              {.allocator = A(ledger, budget::Account::weights)});
  const auto prefix = random_ids(1024, 67);
  Session<Paged> first(model);
  REQUIRE(first.feed(prefix) == model::StepStatus::ok);
  const auto page = ledger.used(budget::Account::kv) / 64;
  std::vector<Session<Paged>> sessions;
  std::size_t tails = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    auto& session = sessions.emplace_back(model);
    CHECK(session.adopt(first, 1024) == 1024);
    const auto tail = random_ids(250 + i, 67, i);
    REQUIRE(session.feed(tail) == model::StepStatus::ok);
    tails += tail.size();
  }
  const double expected = static_cast<double>(1024 + tails) / 16 * static_cast<double>(page);
  const auto used = static_cast<double>(ledger.used(budget::Account::kv));
  CHECK(used >= expected);
  CHECK(used <= 1.03 * expected);
  for (const std::size_t i : {0u, 17u, 63u}) {
    Session<Paged> alone(model);
    REQUIRE(alone.feed(sessions[i].tokens()) == model::StepStatus::ok);
    const auto tail = random_ids(250 + i, 67, i);
    CHECK(std::equal(tail.begin(), tail.end(), alone.tokens().begin() + 1024));
    REQUIRE(sessions[i].feed(std::span(prefix).first(1)) == model::StepStatus::ok);
    const auto shared = logits_of(sessions[i]);
    REQUIRE(alone.feed(std::span(prefix).first(1)) == model::StepStatus::ok);
    CHECK(same_bits(shared, logits_of(alone)));
  }
}

TEST_CASE(
    "sequences that share a prefix of any length write, go back and end without knowing of each other") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  budget::Ledger ledger;
  Paged model(tiny.document(), executor, {.n_ctx = 700, .chunk = 32, .logits_rows = 32, .log = {}},
              {.allocator = A(ledger, budget::Account::weights)});
  const auto ids = random_ids(100, 67), other = random_ids(60, 67, 3);
  for (const std::size_t n : {1u, 15u, 16u, 17u, 64u, 99u}) {
    CAPTURE(n);
    auto a = model.make_cache(), b = model.make_cache(), alone = model.make_cache();
    static_cast<void>(feed(model, a, ids, 32));
    CHECK(b.adopt(a, n) == n);
    a.rewind(n / 2);
    const auto of_a = feed(model, a, other, 32), of_b = feed(model, b, std::span(ids).subspan(n), 7);
    const auto expected = feed(model, alone, ids, 32);
    CHECK(same_bits(of_b, std::span(expected).subspan(n * 67)));
    alone.rewind(n / 2);
    CHECK(same_bits(of_a, feed(model, alone, other, 32)));
  }
}

TEST_CASE("a window that has gone on cannot be shared, one that has not can") {
  const TinyModel tiny({.layers = 4});
  exec::Inline executor;
  using Windows = Transformer<Windowed<20>, WithKv<kv::Paged<>>>;
  Windows model(tiny.document(), executor, {.n_ctx = 700, .chunk = 16, .logits_rows = 16, .log = {}});
  const auto ids = random_ids(300, 67);
  auto a = model.make_cache(), b = model.make_cache(), c = model.make_cache(), alone = model.make_cache();
  static_cast<void>(feed(model, a, std::span(ids).first(200), 16));
  CHECK(b.adopt(a, 100) == 0);
  CHECK(b.tokens == 0);
  CHECK(b.adopt(a, 190) == 190);
  static_cast<void>(feed(model, a, std::span(ids).first(90), 16));
  static_cast<void>(feed(model, alone, std::span(ids).first(190), 16));
  const auto rest = std::span(ids).subspan(190);
  CHECK(same_bits(feed(model, b, rest, 16), feed(model, alone, rest, 16)));
  CHECK(c.adopt(b, 300) == 300);
}

TEST_CASE("a recurrent state is shared where it is known: at the end, or at a checkpoint") {
  const TinyHybrid tiny{HybridRecipe{}};
  exec::Inline executor;
  using Model = Hybrid::With<WithKv<kv::Paged<>>>;
  Model model(tiny.document(), executor, {.n_ctx = 200, .chunk = 32, .logits_rows = 32, .log = {}});
  const auto ids = random_ids(90, 67);
  for (const std::size_t count : {70u, 50u}) {
    auto a = model.make_cache(), b = model.make_cache(), alone = model.make_cache();
    static_cast<void>(feed(model, a, std::span(ids).first(64), 32));
    static_cast<void>(feed(model, a, std::span(ids).subspan(64, 6), 1));
    const std::size_t had = b.adopt(a, count);
    CHECK(had == (count == 70 ? 70 : 0));  // one checkpoint, after 64
    const auto expected = feed(model, alone, ids, 32);
    CHECK(same_bits(feed(model, b, std::span(ids).subspan(had), 32), std::span(expected).subspan(had * 67)));
  }
  auto a = model.make_cache(), b = model.make_cache();
  static_cast<void>(feed(model, a, std::span(ids).first(64), 32));
  static_cast<void>(feed(model, a, std::span(ids).subspan(64, 6), 1));
  CHECK(b.adopt(a, 68) == 64);
}

TEST_CASE("a storage that does not share gives nothing away") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  Transformer<arch::Llama> model(tiny.document(), executor, {.n_ctx = 64, .chunk = 32, .log = {}});
  Session<Transformer<arch::Llama>> a(model), b(model);
  REQUIRE(a.feed(random_ids(20, 67)) == model::StepStatus::ok);
  CHECK(b.adopt(a, 20) == 0);
  CHECK(b.feed(random_ids(20, 67)) == model::StepStatus::ok);
}

TEST_CASE("who was left longest ago gives memory back first, and goes on as if nothing had been") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  budget::Ledger ledger;
  Paged model(tiny.document(), executor, {.n_ctx = 700, .chunk = 32, .logits_rows = 1, .log = {}},
              {.allocator = A(ledger, budget::Account::weights)});
  Session<Paged> a(model), b(model), kept(model);
  const auto ids = random_ids(50, 67);
  for (auto* session : {&a, &b, &kept}) REQUIRE(session->feed(ids) == model::StepStatus::ok);
  IdleSessions<Paged> idle;
  idle.add(a);
  idle.add(b);
  idle.add(a);  // was used again
  const auto used = ledger.used(budget::Account::kv);
  CHECK(idle.drop_one());
  CHECK(b.cached() == 0);
  CHECK(a.cached() == 50);
  CHECK(ledger.used(budget::Account::kv) == used / 3 * 2);
  CHECK(idle.drop_one());
  CHECK_FALSE(idle.drop_one());
  CHECK(idle.size() == 2);
  idle.remove(b);
  CHECK(idle.size() == 1);
  CHECK(b.tokens().size() == 50);
  for (auto* session : {&b, &kept}) REQUIRE(session->feed(std::span(ids).first(3)) == model::StepStatus::ok);
  const auto expected = logits_of(kept);
  REQUIRE(b.feed({}) == model::StepStatus::ok);
  CHECK(b.cached() == 53);
  b.rewind(50);
  REQUIRE(b.feed(std::span(ids).first(3)) == model::StepStatus::ok);
  CHECK(same_bits(logits_of(b), expected));
}

}  // namespace mica::test::sharing_test
