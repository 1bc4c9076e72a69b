// SPDX-License-Identifier: Apache-2.0
//
// Sessions whose keys and values wait in a file answer as those that kept them, and run nothing again.

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/idle_sessions.hpp"
#include "model/kv_same_bits.hpp"

#include <doctest/doctest.h>

#include <deque>

namespace mica::test::parking_test {
namespace {

using A = alloc::Budgeted<alloc::Aligned>;
using Pages = kv::Spilled<kv::Paged<>>;
constexpr ModelOptions options{.n_ctx = 700, .chunk = 64, .logits_rows = 64, .log = {}};
constexpr auto ok = model::StepStatus::ok;

template <class Model>
std::vector<float> logits_of(Session<Model>& session) {
  const auto row = session.logits();
  return {row.begin(), row.end()};
}

/// Two sequences with a beginning in common, one of which always waits, against two that never do.
template <class Family>
void take_turns(const gguf::Document& document) {
  exec::Inline executor;
  using Model = typename Family::template With<WithKv<Pages>>;
  using Plain = typename Family::template With<WithKv<kv::Contiguous<>>>;
  Model model(document, executor, options);
  Plain plain(document, executor, options);
  std::deque<Session<Model>> own;
  std::deque<Session<Plain>> whole;
  for (int i = 0; i < 2; ++i) {
    own.emplace_back(model);
    whole.emplace_back(plain);
  }
  const auto common = random_ids(100, 67);
  REQUIRE(own[0].feed(common) == ok);
  CHECK(own[1].adopt(own[0], 100) == 100);
  for (auto& session : whole) REQUIRE(session.feed(common) == ok);
  for (std::size_t turn = 0; turn < 6; ++turn) {
    CAPTURE(turn);
    auto& session = own[turn % 2];
    CHECK(own[1 - turn % 2].park());
    const auto ids = random_ids(20 + 13 * turn, 67, turn);
    const std::size_t cached = session.cached();
    CHECK(cached == session.tokens().size());  // nothing was lost
    REQUIRE(session.feed(ids) == ok);
    REQUIRE(whole[turn % 2].feed(ids) == ok);
    CHECK(same_bits(logits_of(session), logits_of(whole[turn % 2])));
  }
  CHECK(own[0].park());
  own[0].rewind(90);  // while it waits
  whole[0].rewind(90);
  REQUIRE(own[0].feed(common) == ok);
  REQUIRE(whole[0].feed(common) == ok);
  CHECK(same_bits(logits_of(own[0]), logits_of(whole[0])));
}

}  // namespace

TEST_CASE("shared pages with a file give the bits of a contiguous storage") { check_same_bits_on<Pages>(); }

TEST_CASE("sequences that take turns in memory answer as those that are always there") {
  const TinyModel dense({.layers = 1}), windows({.layers = 4});
  const TinyHybrid hybrid{HybridRecipe{}};
  take_turns<Transformer<arch::Llama>>(dense.document());
  take_turns<Transformer<Windowed<20>>>(windows.document());
  take_turns<Hybrid>(hybrid.document());
}

TEST_CASE("memory is taken from who was left longest ago, who goes on without running anything again") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  budget::Ledger ledger;
  using Model = Transformer<arch::Llama, WithKv<Pages>, WithAllocator<A>>;
  Model model(tiny.document(), executor, options, {.allocator = A(ledger, budget::Account::weights)});
  Session<Model> a(model), b(model), kept(model);
  const auto ids = random_ids(160, 67);
  for (auto* session : {&a, &b, &kept}) REQUIRE(session->feed(ids) == ok);
  const auto all = ledger.used(budget::Account::kv);
  IdleSessions<Model> idle;
  idle.add(a);
  idle.add(b);
  idle.add(a);  // was used again
  CHECK(idle.drop_one());
  CHECK(b.cached() == 160);
  CHECK(ledger.used(budget::Account::kv) < all / 3 * 2 + all / 30);
  CHECK(idle.drop_one());
  CHECK_FALSE(idle.drop_one());
  idle.remove(b);
  REQUIRE(b.feed(std::span(ids).first(3)) == ok);
  const auto logits = logits_of(b);
  REQUIRE(kept.feed(std::span(ids).first(3)) == ok);
  CHECK(same_bits(logits, logits_of(kept)));
  idle.add(b);
  CHECK(idle.drop_one());
  CHECK_FALSE(idle.drop_one());  // a waits still
}

TEST_CASE("a session that waits is saved like any other, and waits no more") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  using Model = Transformer<arch::Llama, WithKv<Pages>>;
  Model model(tiny.document(), executor, options);
  const TemporaryFolder folder;
  const auto ids = random_ids(100, 67);
  Session<Model> session(model);
  REQUIRE(session.feed(ids) == ok);
  session.save(folder.path("before"));
  CHECK(session.park());
  session.save(folder.path("after"));
  CHECK(contents(folder.path("before")) == contents(folder.path("after")));
  auto again = Session<Model>::open(model, folder.path("after"));
  REQUIRE(again.feed(std::span(ids).first(1)) == ok);
  const auto logits = logits_of(again);
  REQUIRE(session.feed(std::span(ids).first(1)) == ok);
  CHECK(same_bits(logits, logits_of(session)));
}

TEST_CASE("a storage chosen by name parks where it can, and says so where it cannot") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  for (const kv::Choice name : {kv::Choice::spilled_paged, kv::Choice::paged, kv::Choice::segmented}) {
    CAPTURE(name);
    using Model = Transformer<arch::Llama, WithKv<kv::AnyStorage<>>>;
    const auto storage = [&](auto allocator, std::span<const kv::LayerShape> layers, std::size_t n_ctx) {
      return kv::AnyStorage<>(allocator, layers, n_ctx, name);
    };
    const auto model =
        AnyModel::of<Model>([&] { return Model(tiny.document(), executor, options, {.storage = storage}); });
    Session session(*model), other(*model);
    const auto ids = random_ids(100, 67);
    REQUIRE(session.feed(ids) == ok);
    CHECK(session.park() == (name == kv::Choice::spilled_paged));
    REQUIRE(session.feed(std::span(ids).first(1)) == ok);
    const auto logits = logits_of(session);
    REQUIRE(other.feed(ids) == ok);
    REQUIRE(other.feed(std::span(ids).first(1)) == ok);
    CHECK(same_bits(logits, logits_of(other)));
  }
}

}  // namespace mica::test::parking_test
