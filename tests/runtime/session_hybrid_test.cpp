// SPDX-License-Identifier: Apache-2.0
//
// Sessions on models with a recurrent state: going back, and going on after a read that failed.

#include "mica/paging/mapped.hpp"
#include "mica/runtime/session.hpp"
#include "mica/runtime/shared_step.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace mica::test::session_hybrid_test {
namespace {

using model::StepStatus;

/// What a failing pager and its test share.
struct Desk {
  std::size_t bad = none;   // the unit that cannot be read
  int held = 0;             // units acquired and not released
  std::vector<bool> asked;  // by unit

  static constexpr std::size_t none = 9999;
};

/// A pager that cannot read one of its units, and counts.
struct Failing : paging::Mapped<> {
  template <mica::Allocator A>
  using Rebind = Failing;

  Failing(const paging::Table& table, alloc::Huge allocator, LogSink log, Desk* desk = nullptr)
      : Mapped(table, allocator, log), desk_(desk) {
    if (desk != nullptr) desk->asked.assign(table.units, false);
  }
  [[nodiscard]] bool acquire(std::size_t unit) noexcept {
    desk_->asked[unit] = true;
    if (unit == desk_->bad) return false;
    ++desk_->held;
    return true;
  }
  void release(std::size_t /*unit*/) noexcept { --desk_->held; }

 private:
  Desk* desk_;
};
static_assert(Pager<Failing>);

using Model = Hybrid::With<WithPager<Failing>>;

/// A hybrid whose pager sits at a desk.
struct Fixture {
  explicit Fixture(const HybridRecipe& recipe, std::size_t checkpoints = 1)
      : tiny(recipe),
        model(tiny.document(), executor,
              {.n_ctx = 200, .chunk = 32, .logits_rows = 1, .checkpoints = checkpoints, .log = {}},
              {.pager = [this](const paging::Table& table, alloc::Huge a, LogSink log) {
                return Failing(table, a, log, &desk);
              }}) {}

  /// Logits after all of these tokens, in a session of their own.
  std::vector<float> fresh(std::span<const TokenId> first, std::span<const TokenId> then = {}) {
    Session session(model);
    REQUIRE(session.feed(first) == StepStatus::ok);
    REQUIRE(session.feed(then) == StepStatus::ok);
    return logits(session);
  }
  static std::vector<float> logits(Session<Model>& session) {
    const auto row = session.logits();
    return {row.begin(), row.end()};
  }

  TinyHybrid tiny;
  exec::Inline executor;
  Desk desk;
  Model model;
};

}  // namespace

TEST_CASE("a session on a hybrid may go back to any position, whatever checkpoints there are") {
  const auto ids = random_ids(140, 67), other = random_ids(5, 67, 8);
  for (const std::size_t checkpoints : {0u, 1u, 3u}) {
    CAPTURE(checkpoints);
    Fixture f(HybridRecipe{}, checkpoints);
    for (const std::size_t keep :
         {0u, 1u, 31u, 32u, 33u, 63u, 64u, 95u, 96u, 97u, 127u, 128u, 129u, 139u, 140u}) {
      CAPTURE(keep);
      Session session(f.model);
      REQUIRE(session.feed(ids) == StepStatus::ok);
      session.rewind(keep);
      CHECK(session.tokens().size() == keep);
      REQUIRE(session.feed(other) == StepStatus::ok);
      CHECK(session.tokens().size() == keep + 5);
      const auto row = Fixture::logits(session);
      CHECK(same_bits(row, f.fresh(std::span(ids).first(keep), other)));
    }
  }
}

TEST_CASE(
    "a session that takes drafts back has the bits of one that never had them, and runs no step for it") {
  const TinyHybrid tiny(with_experts());
  exec::Inline executor;
  for (const std::size_t checkpoints : {0u, 2u}) {
    Hybrid model(
        tiny.document(), executor,
        {.n_ctx = 400, .chunk = 16, .logits_rows = 1, .checkpoints = checkpoints, .drafts = true, .log = {}});
    CHECK(model.takes_drafts());
    Session session(model);
    std::vector<TokenId> text = random_ids(20, 67);
    REQUIRE(session.feed(text) == StepStatus::ok);
    for (std::size_t round = 0; round < 40; ++round) {
      CAPTURE(round);
      const std::size_t certain = 1 + round % 3, drafts = round % 5, kept = round * 7 % (drafts + 1);
      const auto ids = random_ids(certain + drafts, 67, static_cast<unsigned>(round));
      const std::uint64_t steps = model.step_count();
      REQUIRE(session.feed_drafts(ids, drafts) == StepStatus::ok);
      CHECK(model.step_count() == steps + 1);
      text.insert(text.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(certain + kept));
      session.rewind(text.size());
      CHECK(session.cached() + 4 >= text.size());
      if (round % 4 != 3) continue;
      Session fresh(model);
      REQUIRE(fresh.feed(text) == StepStatus::ok);
      const auto last = random_ids(1, 67, 99);
      REQUIRE(fresh.feed(last) == StepStatus::ok);
      const auto row = fresh.logits();
      const std::vector<float> expected(row.begin(), row.end());
      REQUIRE(session.feed_drafts(last, 0) == StepStatus::ok);
      CHECK(same_bits(session.logits(), expected));
      text.push_back(last[0]);
    }
  }
}

TEST_CASE("sessions in shared steps take drafts back, each its own") {
  const TinyHybrid tiny(with_experts());
  exec::Inline executor;
  Hybrid model(tiny.document(), executor,
               {.n_ctx = 300, .chunk = 12, .logits_rows = 3, .drafts = true, .log = {}});
  std::vector<Session<Hybrid>> sessions;
  std::vector<std::vector<TokenId>> texts(3);
  for (std::size_t s = 0; s < 3; ++s) sessions.emplace_back(model);
  SharedStep<Hybrid> together(model);
  for (std::size_t round = 0; round < 30; ++round) {
    CAPTURE(round);
    std::vector<std::vector<TokenId>> ids;
    std::vector<SharedStep<Hybrid>::Feed> feeds;
    for (std::size_t s = 0; s < 3; ++s) ids.push_back(random_ids(1 + (round + s) % 4, 67, 3 * round + s));
    for (std::size_t s = 0; s < 3; ++s) feeds.push_back({&sessions[s], ids[s], ids[s].size() - 1});
    REQUIRE(together.step(feeds).status == StepStatus::ok);
    std::vector<std::size_t> rows;
    for (std::size_t s = 0; s < 3; ++s) rows.push_back(sessions[s].row(sessions[s].tokens().size() - 1));
    const auto logits = model.logits(rows);
    std::vector<std::vector<float>> got;
    for (std::size_t s = 0; s < 3; ++s) got.emplace_back(logits[s].begin(), logits[s].end());
    for (std::size_t s = 0; s < 3; ++s) {
      Session fresh(model);
      std::vector<TokenId> all = texts[s];
      all.insert(all.end(), ids[s].begin(), ids[s].end());
      REQUIRE(fresh.feed(all) == StepStatus::ok);
      CHECK(same_bits(fresh.logits(), got[s]));
      const std::size_t kept = 1 + (round + 2 * s) % ids[s].size();
      texts[s].insert(texts[s].end(), ids[s].begin(), ids[s].begin() + static_cast<std::ptrdiff_t>(kept));
      sessions[s].rewind(texts[s].size());
    }
  }
}

TEST_CASE("a session on a hybrid may go back again and again, with tokens in between and without") {
  const auto ids = random_ids(100, 67), other = random_ids(40, 67, 8);
  for (const std::size_t checkpoints : {0u, 1u, 3u}) {
    CAPTURE(checkpoints);
    Fixture f(with_experts(), checkpoints);
    Session session(f.model);
    REQUIRE(session.feed(ids) == StepStatus::ok);
    for (const std::size_t keep : {90u, 70u, 64u, 33u})
      session.rewind(keep);  // past checkpoints that were used
    REQUIRE(session.feed(other) == StepStatus::ok);
    session.rewind(50);
    for (std::size_t i = 0; i < 10; ++i) {  // as a text is written, one by one
      REQUIRE(session.feed(std::span(other).subspan(i, 1)) == StepStatus::ok);
    }
    session.rewind(55);
    REQUIRE(session.feed(std::span(other).subspan(30)) == StepStatus::ok);
    std::vector<TokenId> text(ids.begin(), ids.begin() + 33);
    text.insert(text.end(), other.begin(), other.begin() + 17);
    text.insert(text.end(), other.begin(), other.begin() + 5);
    text.insert(text.end(), other.begin() + 30, other.end());
    CHECK(std::equal(text.begin(), text.end(), session.tokens().begin(), session.tokens().end()));
    const auto row = Fixture::logits(session);
    CHECK(same_bits(row, f.fresh(text)));
  }
}

TEST_CASE(
    "a unit that cannot be read, an expert's too, leaves a session that can go on with the right bits") {
  const auto ids = random_ids(40, 67), next = random_ids(6, 67, 2);
  for (const std::size_t checkpoints : {0u, 1u}) {
    CAPTURE(checkpoints);
    Fixture f(with_experts(), checkpoints);
    const auto expected = f.fresh(ids, next);
    std::size_t failed = 0;
    const std::size_t units = f.desk.asked.size();
    REQUIRE(units == 1 + 4 + 1 + 4 * 9);  // embedding, layers, head, experts
    for (std::size_t bad = 0; bad < units; ++bad) {
      if (bad == 5) continue;  // the head is not read by a step
      CAPTURE(bad);
      Session session(f.model);
      REQUIRE(session.feed(ids) == StepStatus::ok);
      f.desk.bad = bad;
      f.desk.asked.assign(units, false);
      const StepStatus status = session.feed(next);
      CHECK(status == (f.desk.asked[bad] ? StepStatus::read_failed : StepStatus::ok));
      CHECK(f.desk.held == 0);
      f.desk.bad = Desk::none;
      if (status == StepStatus::read_failed) {
        ++failed;
        CHECK(session.tokens().size() == 40);
        REQUIRE(session.feed(next) == StepStatus::ok);
      }
      CHECK(same_bits(Fixture::logits(session), expected));
    }
    CHECK(failed > 5);  // an expert among them
  }
}

TEST_CASE("a read that fails while lost tokens are run again may be tried once more, or rewound") {
  const auto ids = random_ids(60, 67), next = random_ids(6, 67, 2);
  for (const std::size_t keep : {50u, 20u}) {
    CAPTURE(keep);
    Fixture f(HybridRecipe{}, 0);
    Session session(f.model);
    REQUIRE(session.feed(ids) == StepStatus::ok);
    session.rewind(55);
    f.desk.bad = 2;
    CHECK(session.feed(next) == StepStatus::read_failed);
    CHECK(session.tokens().size() == 55);
    session.rewind(keep);
    f.desk.bad = Desk::none;
    REQUIRE(session.feed(next) == StepStatus::ok);
    const auto row = Fixture::logits(session);
    CHECK(same_bits(row, f.fresh(std::span(ids).first(keep), next)));
  }
}

}  // namespace mica::test::session_hybrid_test
