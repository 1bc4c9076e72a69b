// SPDX-License-Identifier: Apache-2.0
//
// Beginnings that were read once are found again, share their memory, and go when memory is asked back.

#include "mica/runtime/prefix_cache.hpp"

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/kv/paged.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/runtime/idle_sessions.hpp"
#include "model/windowed_family.hpp"
#include "runtime/counted_rows.hpp"
#include "runtime/talking_family.hpp"

#include <doctest/doctest.h>

#include <list>

namespace mica::test::prefix_cache_test {
namespace {

using A = alloc::Budgeted<alloc::Aligned>;
template <class Family>
using Paged = Transformer<Family, WithKv<kv::Paged<>>, WithAllocator<A>, WithObserver<Rows>>;
using Llama = Paged<arch::Llama>;

constexpr ModelOptions options{.n_ctx = 700, .chunk = 64, .logits_rows = 64, .log = {}};
constexpr auto ok = model::StepStatus::ok;

/// A text that begins as another one does.
std::vector<TokenId> text(std::size_t common, std::size_t own, std::uint64_t seed) {
  auto ids = random_ids(common, 67);
  const auto rest = random_ids(own, 67, seed);
  ids.insert(ids.end(), rest.begin(), rest.end());
  return ids;
}

template <class Model>
std::vector<float> logits_of(Session<Model>& session) {
  const auto row = session.logits();
  return {row.begin(), row.end()};
}

/// What a session of its own answers to a text.
template <class Model>
std::vector<float> alone(Model& model, std::span<const TokenId> ids) {
  Session<Model> session(model);
  REQUIRE(session.feed(ids) == ok);
  return logits_of(session);
}

/// Reads a text on what a tree knows of it and leaves it there; answers how many tokens were there already.
template <class Model>
std::size_t read(Model& model, PrefixCache<Model>& tree, std::span<const TokenId> ids) {
  Session<Model> session(model);
  const std::size_t had = tree.take(session, ids.first(ids.size() - 1));
  CHECK(had == session.tokens().size());
  REQUIRE(session.feed(ids.subspan(had)) == ok);
  const auto logits = logits_of(session);  // before the model is used for something else
  CHECK(same_bits(logits, alone(model, ids)));
  static_cast<void>(tree.keep(session));
  return had;
}

/// A model whose pages are counted: two layers of two KV heads.
struct Counted {
  TinyModel tiny{Recipe{}};
  exec::Inline executor;
  budget::Ledger ledger;
  Llama model{tiny.document(), executor, options, {.allocator = A(ledger, budget::Account::weights)}};

  [[nodiscard]] std::size_t bytes() const { return ledger.used(budget::Account::kv); }
  [[nodiscard]] std::size_t page() {
    Session<Llama> session(model);
    const std::size_t before = bytes();
    REQUIRE(session.feed(random_ids(1, 67)) == ok);
    return bytes() - before;
  }
};

}  // namespace

TEST_CASE("a beginning is found after its session has ended, and gives the same bits") {
  Counted counted;
  PrefixCache<Llama> tree(counted.model);
  const auto ids = text(200, 0, 0);
  CHECK(tree.match(ids) == 0);
  CHECK(read(counted.model, tree, ids) == 0);
  CHECK(tree.match(ids) == 200);
  CHECK(counted.bytes() == 13 * counted.page());
  CHECK(read(counted.model, tree, ids) == 192);  // a token is left to run, and pages before it are whole
  CHECK(read(counted.model, tree, text(100, 30, 1)) == 96);
  CHECK(read(counted.model, tree, text(100, 30, 1)) == 128);
  CHECK(read(counted.model, tree, text(15, 30, 2)) == 0);
  CHECK(read(counted.model, tree, text(192, 1, 3)) == 192);
  CHECK(read(counted.model, tree, text(192, 0, 3)) == 176);  // a token is left to run
  tree.clear();
  CHECK(tree.size() == 0);
  CHECK(tree.match(ids) == 0);
  CHECK(counted.bytes() == 0);
}

TEST_CASE("texts that branch share exactly the pages that they have in common") {
  Counted counted;
  const std::size_t page = counted.page();
  PrefixCache<Llama> tree(counted.model);
  CHECK(read(counted.model, tree, text(160, 160, 1)) == 0);
  CHECK(counted.bytes() == 20 * page);
  CHECK(read(counted.model, tree, text(160, 64, 2)) == 160);
  CHECK(counted.bytes() == 24 * page);
  CHECK(read(counted.model, tree, text(87, 64, 3)) == 80);  // 151 tokens: ten pages, five of them shared
  CHECK(counted.bytes() == 29 * page);
  CHECK(read(counted.model, tree, text(160, 160, 1)) == 304);
  CHECK(counted.bytes() == 29 * page);
  CHECK(tree.size() == 5);  // 80 tokens; to 160; two on from there, one on from 80
}

TEST_CASE("the leaf that was left longest ago goes first and gives its own pages back") {
  Counted counted;
  const std::size_t page = counted.page();
  PrefixCache<Llama> tree(counted.model);
  for (const std::uint64_t seed : {1u, 2u, 3u}) read(counted.model, tree, text(160, 16 * seed, seed));
  CHECK(counted.bytes() == (10 + 1 + 2 + 3) * page);
  read(counted.model, tree, text(160, 16, 1));  // was used again
  CHECK(tree.drop_one());
  CHECK(counted.bytes() == (10 + 1 + 3) * page);
  CHECK(tree.match(text(160, 32, 2)) == 160);
  Session<Llama> session(counted.model);
  CHECK(tree.take(session, text(160, 48, 3)) == 208);
  CHECK(tree.drop_one());  // the first one: the third was just taken
  CHECK(counted.bytes() == (10 + 3) * page);
  CHECK(tree.drop_one());
  CHECK(counted.bytes() == (10 + 3) * page);  // the session has them
  CHECK(tree.match(text(160, 48, 3)) == 160);
  CHECK(tree.drop_one());
  CHECK_FALSE(tree.drop_one());
  CHECK(counted.bytes() == (10 + 3) * page);
  session.drop();
  CHECK(counted.bytes() == 0);
}

TEST_CASE("a tree has no more nodes than it was allowed, and those that are asked for stay") {
  Counted counted;
  PrefixCache<Llama> tree(counted.model, 8);
  const auto kept = text(64, 64, 99);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    read(counted.model, tree, text(seed % 3 * 32, 48, seed));
    CHECK(read(counted.model, tree, kept) == (seed == 0 ? 0 : 112));
    CHECK(tree.size() <= 8);
  }
}

TEST_CASE("who takes a beginning and goes elsewhere changes nothing for those who have it") {
  Counted counted;
  PrefixCache<Llama> tree(counted.model);
  const auto ids = text(100, 60, 1);
  Session<Llama> owner(counted.model), guest(counted.model);
  REQUIRE(owner.feed(ids) == ok);
  CHECK(tree.keep(owner) == 160);
  CHECK(tree.take(guest, ids) == 160);
  guest.rewind(70);
  REQUIRE(guest.feed(random_ids(90, 67, 8)) == ok);
  std::vector<TokenId> other(ids.begin(), ids.begin() + 70);
  for (const TokenId id : random_ids(90, 67, 8)) other.push_back(id);
  const auto logits = logits_of(guest);
  CHECK(same_bits(logits, alone(counted.model, other)));
  owner.drop();
  CHECK(read(counted.model, tree, ids) == 144);
  CHECK(tree.keep(guest) == 160);
  CHECK(read(counted.model, tree, other) == 144);
}

TEST_CASE("windows and recurrent states are taken over where texts were kept, and never wrong") {
  exec::Inline executor;
  const TinyModel tiny({.layers = 4});
  Transformer<Windowed<20>, WithKv<kv::Paged<>>> windows(tiny.document(), executor, options);
  const TinyHybrid tiny_hybrid{HybridRecipe{}};
  Hybrid::With<WithKv<kv::Paged<>>> hybrid(tiny_hybrid.document(), executor, options);
  const auto check = [](auto& model) {
    PrefixCache tree(model);
    std::size_t taken = 0;
    CHECK(read(model, tree, text(150, 0, 0)) == 0);
    for (const std::uint64_t seed : {1u, 2u}) {
      CHECK(read(model, tree, text(150, 150, seed)) == 150);  // from where a text was kept
      CHECK(read(model, tree, text(150, 150, seed)) >= 150);
      taken += read(model, tree, text(70, 20, seed + 5));
    }
    CHECK(taken <= 2 * 70);
    std::vector<TokenId> longer = text(150, 150, 1);
    for (const TokenId id : random_ids(40, 67, 9)) longer.push_back(id);
    CHECK(read(model, tree, longer) == 300);  // a conversation that goes on
  };
  check(windows);
  check(hybrid);
}

TEST_CASE("a model whose caches do not share keeps nothing in a tree") {
  exec::Inline executor;
  const TinyModel tiny{Recipe{}};
  Transformer<arch::Llama> model(tiny.document(), executor, options);
  PrefixCache tree(model);
  CHECK(read(model, tree, text(100, 0, 0)) == 0);
  CHECK(read(model, tree, text(100, 0, 0)) == 0);
  CHECK(tree.size() == 0);
}

namespace {

/// A text under way.
struct Guest {
  explicit Guest(Llama& model) : session(model), sampler({.temperature = 0}, talking_vocabulary) {}
  Session<Llama> session;
  sample::Standard<> sampler;
};
const GenerateOptions how{.max_tokens = 5, .stop_at_end = false};

std::vector<TokenId> prompt(std::size_t common, std::size_t own, std::uint64_t seed) {
  auto ids = random_ids(common, 250);
  for (const TokenId id : random_ids(own, 250, seed)) ids.push_back(id);
  return ids;
}

}  // namespace

TEST_CASE("64 answers of a batch, few at a time, read a common beginning once and hold it once") {
  Recipe recipe;
  recipe.layers = 1;
  recipe.n_vocab = talking_vocabulary;
  recipe.n_ctx = 1400;
  const TinyModel tiny(recipe);
  const text::Spm tokenizer = byte_tokenizer();
  exec::Inline executor;
  budget::Ledger ledger;
  Llama model(tiny.document(), executor, {.n_ctx = 1400, .chunk = 64, .logits_rows = 64, .log = {}},
              {.allocator = A(ledger, budget::Account::weights)});
  PrefixCache<Llama> tree(model);
  std::size_t tails = 0, expected_rows = 1024, page = 0;
  Rows rows;
  model.observe(&rows);
  {
    Batch batch(model, tokenizer, {.prompt_tokens = 40}, &tree);
    std::list<std::pair<std::size_t, Guest>> guests;
    for (std::size_t i = 0; i < 64; ++i) {
      const auto ids = prompt(1024, 250 + i, i);
      auto& [id, guest] = guests.emplace_back(0, Guest(model));
      id = batch.add(guest.session, guest.sampler, ids, how, [](std::string_view) { return true; });
      tails += (250 + i + how.max_tokens - 1) / 16 * 16;
      expected_rows += 250 + i + how.max_tokens - 1;
      if (i % 5 != 4 && i != 63) continue;
      while (batch.step()) {
      }
      for (const auto& [over, session] : guests) CHECK(batch.remove(over).tokens.size() == 5);
      guests.clear();  // nobody is here until the next ones come
      if (page == 0) page = ledger.used(budget::Account::kv) / (64 + tails / 16);
    }
  }
  CHECK(rows.count == expected_rows);
  const double expected = static_cast<double>(1024 + tails) / 16 * static_cast<double>(page);
  CHECK(static_cast<double>(ledger.used(budget::Account::kv)) >= expected);
  CHECK(static_cast<double>(ledger.used(budget::Account::kv)) <= 1.04 * expected);  // and last pages
  model.observe(nullptr);
  Session<Llama> late(model);
  CHECK(tree.take(late, prompt(1024, 250 + 17, 17)) == 1024 + 250 + 17);
}

TEST_CASE("a batch on a tree gives every answer as alone, and asks it for memory") {
  const TinyModel tiny = talking_dense();
  const text::Spm tokenizer = byte_tokenizer();
  exec::Inline executor;
  budget::Ledger probe;
  std::vector<std::vector<TokenId>> prompts, expected;
  for (std::size_t i = 0; i < 12; ++i) prompts.push_back(prompt(i % 4 * 50, 100, i));
  {
    Llama model(tiny.document(), executor, options, {.allocator = A(probe, budget::Account::weights)});
    for (const auto& ids : prompts) {
      Guest guest(model);
      expected.push_back(generate(guest.session, tokenizer, guest.sampler, ids, how, [](std::string_view) {
                           return true;
                         }).tokens);
    }
  }
  budget::Ledger ledger(probe.peak() + 2 * probe.peak(budget::Account::kv));
  Llama model(tiny.document(), executor, options, {.allocator = A(ledger, budget::Account::weights)});
  for (const bool asks : {true, false}) {
    CAPTURE(asks);
    PrefixCache<Llama> tree(model);
    IdleSessions<Llama> idle;
    BatchOptions with;
    if (asks) with.free_memory = [&] { return tree.drop_one() || idle.drop_one(); };
    Batch batch(model, tokenizer, with, &tree);
    std::size_t refused = 0;
    for (std::size_t i = 0; i + 1 < prompts.size(); i += 2) {
      Guest a(model), b(model);
      const auto id_a =
          batch.add(a.session, a.sampler, prompts[i], how, [](std::string_view) { return true; });
      const auto id_b =
          batch.add(b.session, b.sampler, prompts[i + 1], how, [](std::string_view) { return true; });
      while (batch.step()) {
      }
      const auto of_a = batch.remove(id_a), of_b = batch.remove(id_b);
      if (asks || of_a.reason == StopReason::length) CHECK(of_a.tokens == expected[i]);
      if (asks || of_b.reason == StopReason::length) CHECK(of_b.tokens == expected[i + 1]);
      refused += (of_a.reason == StopReason::no_memory) + (of_b.reason == StopReason::no_memory);
    }
    CHECK((refused > 0) == !asks);
  }
}

}  // namespace mica::test::prefix_cache_test
