// SPDX-License-Identifier: Apache-2.0
//
// Sequences of a batch that begin alike compute their beginning once, and memory comes from sessions that nobody feeds.

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/kv/paged.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/runtime/idle_sessions.hpp"
#include "runtime/counted_rows.hpp"
#include "runtime/talking_family.hpp"

#include <doctest/doctest.h>

#include <deque>

namespace mica::test::batch_prefix_test {
namespace {

using A = alloc::Budgeted<alloc::Aligned>;
using Model = Transformer<arch::Llama, WithKv<kv::Paged<>>, WithAllocator<A>, WithObserver<Rows>>;

const text::Spm& bytes() {
  static const text::Spm tokenizer = byte_tokenizer();
  return tokenizer;
}

/// A text under way.
struct Guest {
  explicit Guest(Model& model) : session(model), sampler({.temperature = 0}, talking_vocabulary) {}
  Session<Model> session;
  sample::Standard<> sampler;
  std::size_t id = 0;
};

const GenerateOptions how{.max_tokens = 5, .stop_at_end = false};

/// A prompt of a common part and one of its own.
std::vector<TokenId> prompt(std::size_t common, std::size_t own, std::uint64_t seed) {
  auto ids = random_ids(common, 250);
  const auto rest = random_ids(own, 250, seed);
  ids.insert(ids.end(), rest.begin(), rest.end());
  return ids;
}

std::vector<TokenId> alone(Model& model, std::span<const TokenId> ids) {
  Guest guest(model);
  return generate(guest.session, bytes(), guest.sampler, ids, how, [](std::string_view) { return true; })
      .tokens;
}

constexpr ModelOptions options{.n_ctx = 400, .chunk = 64, .logits_rows = 64, .log = {}};

}  // namespace

TEST_CASE("a batch computes a common prefix once, and every answer is the one that it would be alone") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  budget::Ledger ledger;
  Model model(tiny.document(), executor, options, {.allocator = A(ledger, budget::Account::weights)});
  const std::vector<std::size_t> commons = {200, 200, 200, 150, 7, 0, 200, 201};
  std::vector<std::vector<TokenId>> prompts, expected;
  for (std::size_t i = 0; i < commons.size(); ++i) prompts.push_back(prompt(commons[i], 9 + i, 50 + i));
  prompts.push_back(prompts[0]);  // the same again
  for (const auto& ids : prompts) expected.push_back(alone(model, ids));
  for (const std::size_t gap : {0u, 1u, 3u}) {
    for (const bool leaves : {false, true}) {
      CAPTURE(gap);
      CAPTURE(leaves);
      Rows rows;
      model.observe(&rows);
      std::deque<Guest> guests;
      Batch<Model, text::Spm> batch(model, bytes(), {.prompt_tokens = 40, .reuse_prefixes = true});
      const auto join = [&] {
        Guest& guest = guests.emplace_back(model);
        guest.id = batch.add(guest.session, guest.sampler, prompts[guests.size() - 1], how,
                             [](std::string_view) { return true; });
      };
      std::vector<std::vector<TokenId>> answers(prompts.size());
      bool left = false;
      for (std::size_t step = 0;; ++step) {
        while (guests.size() < prompts.size() && step >= guests.size() * gap) join();
        if (leaves && !left && step == 2) {
          answers[0] = batch.remove(guests[0].id).tokens;  // while others wait for what he reads
          left = true;
        }
        if (!batch.step() && guests.size() == prompts.size()) break;
      }
      for (std::size_t i = leaves ? 1 : 0; i < prompts.size(); ++i) {
        CAPTURE(i);
        CHECK(batch.remove(guests[i].id).tokens == expected[i]);
      }
      std::size_t tokens = 0, shared = 0;
      for (const auto& ids : prompts) tokens += ids.size() + how.max_tokens - 1;
      shared = 4 * 200 + 150 + prompts[0].size() - 1;
      if (!leaves) CHECK(rows.count == tokens - shared);
      if (leaves) CHECK(rows.count < tokens - shared + 260);
      model.observe(nullptr);
    }
  }
}

TEST_CASE("a marked prompt is stored where the next one divides from it, on every kind of model") {
  const auto is_stored_at_marks = [](auto& model) {
    using M = std::remove_reference_t<decltype(model)>;
    PrefixCache<M> prefixes(model);
    Batch<M, text::Spm> batch(model, bytes(), {.prompt_tokens = 40}, &prefixes);
    // The second prompt has the first 100 tokens of the first one, the third one its first 130.
    std::vector<TokenId> first = prompt(100, 60, 3), second = prompt(100, 40, 4), third = first;
    third.resize(130);
    for (const TokenId id : random_ids(20, 250, 9)) third.push_back(id);
    const auto run = [&](const std::vector<TokenId>& ids, std::vector<std::size_t> marks) {
      Session<M> session(model);
      sample::Standard<> sampler({.temperature = 0}, talking_vocabulary);
      const std::size_t id = batch.add(session, sampler, ids, how, [](std::string_view) { return true; });
      batch.mark(id, std::move(marks));
      while (batch.step()) {
      }
      CHECK(batch.result(id).tokens.size() == how.max_tokens);
      return batch.remove(id);
    };
    const auto expected = [&](const std::vector<TokenId>& ids) {
      Session<M> session(model);
      sample::Standard<> sampler({.temperature = 0}, talking_vocabulary);
      return generate(session, bytes(), sampler, ids, how, [](std::string_view) { return true; }).tokens;
    };
    const auto wanted = {expected(first), expected(second), expected(third)};
    CHECK(run(first, {100, 130}).tokens == wanted.begin()[0]);
    for (std::size_t i = 1; i < 3; ++i) {
      const auto& ids = i == 1 ? second : third;
      const std::size_t known = i == 1 ? 100 : 130;
      const GenerateResult result = run(ids, {});
      CHECK(result.tokens == wanted.begin()[i]);
      // Whole pages, or to the mark where a recurrent state is stored there.
      CHECK(ids.size() - result.timings.prompt.tokens >= known / 16 * 16);
    }
  };
  exec::Inline executor;
  const TinyModel dense = talking_dense();
  Transformer<arch::Llama, WithKv<kv::Paged<>>> llama(dense.document(), executor, options);
  is_stored_at_marks(llama);
  FamilyFile windows = talking_windows();
  Transformer<arch::Gemma3, WithKv<kv::Paged<>>> gemma(windows.document(), executor, options);
  is_stored_at_marks(gemma);
  const TinyHybrid recurrent = talking_hybrid();
  Hybrid::With<WithKv<kv::Paged<>>> hybrid(recurrent.document(), executor, options);
  is_stored_at_marks(hybrid);
}

TEST_CASE("a sequence that waits for one that is cancelled goes on by itself") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  Transformer<arch::Llama, WithKv<kv::Paged<>>> model(tiny.document(), executor, options);
  using M = decltype(model);
  const auto ids = prompt(200, 9, 1);
  const std::vector<TokenId> expected = [&] {
    Session<M> session(model);
    sample::Standard<> sampler({.temperature = 0}, talking_vocabulary);
    return generate(session, bytes(), sampler, ids, how, [](std::string_view) { return true; }).tokens;
  }();
  for (const std::size_t steps : {0u, 1u, 2u}) {
    Batch<M, text::Spm> batch(model, bytes(), {.prompt_tokens = 40, .reuse_prefixes = true});
    std::atomic<bool> cancel{false};
    GenerateOptions leaving = how;
    leaving.cancel = &cancel;
    Session<M> first(model), second(model);
    sample::Standard<> greedy({.temperature = 0}, talking_vocabulary),
        other({.temperature = 0}, talking_vocabulary);
    const auto any = [](std::string_view) { return true; };
    const auto leaver = batch.add(first, greedy, ids, leaving, any);
    const auto stayer = batch.add(second, other, ids, how, any);
    for (std::size_t i = 0; i < steps; ++i) batch.step();
    cancel = true;
    while (batch.step()) {
    }
    CHECK(batch.remove(leaver).reason == StopReason::cancelled);
    CHECK(batch.remove(stayer).tokens == expected);
  }
}

TEST_CASE("a batch takes memory from sessions that nobody feeds before anybody goes without") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  budget::Ledger probe;
  const auto ids = prompt(0, 100, 5);
  std::vector<TokenId> expected;
  {
    Model model(tiny.document(), executor, options, {.allocator = A(probe, budget::Account::weights)});
    expected = alone(model, ids);
  }
  budget::Ledger ledger(probe.peak() + probe.peak(budget::Account::kv) / 2);  // one and a half
  Model model(tiny.document(), executor, options, {.allocator = A(ledger, budget::Account::weights)});
  for (const bool takes : {true, false}) {
    CAPTURE(takes);
    Guest before(model), guest(model);
    REQUIRE(before.session.feed(ids) == model::StepStatus::ok);
    IdleSessions<Model> idle;
    idle.add(before.session);
    BatchOptions with;
    if (takes) with.free_memory = [&] { return idle.drop_one(); };
    Batch<Model, text::Spm> batch(model, bytes(), with);
    guest.id = batch.add(guest.session, guest.sampler, ids, how, [](std::string_view) { return true; });
    while (batch.step()) {
    }
    const auto result = batch.remove(guest.id);
    CHECK((result.reason == StopReason::no_memory) == !takes);
    if (takes) CHECK(result.tokens == expected);
    CHECK(before.session.cached() == (takes ? 0 : 100));
    CHECK(before.session.tokens().size() == 100);
  }
}

}  // namespace mica::test::batch_prefix_test
