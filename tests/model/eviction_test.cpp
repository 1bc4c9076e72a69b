// SPDX-License-Identifier: Apache-2.0
//
// A cache that forgets gives the answers of attention that does not see what was forgotten, the same bits for
// steps of any size, threads and storages, and never takes more memory than it may.

#include "arch/reference.hpp"
#include "archetype/kv_storage.hpp"
#include "io/temporary_folder.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/kv/any_eviction.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/runtime/session.hpp"
#include "model/rewound_session.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"
#include "model/windowed_family.hpp"

#include <doctest/doctest.h>

#include <set>

namespace mica::test::eviction_test {
namespace {

using kv::HeavyHitters;
using kv::KeepAll;
using kv::SinksAndWindow;

constexpr ModelOptions options{.n_ctx = 2000, .chunk = 64, .logits_rows = 64, .log = {}};

/// Built on a policy without scores, and wants them.
struct Watching : SinksAndWindow {
  [[nodiscard]] static constexpr bool needs_scores() noexcept { return true; }
};
static_assert(model::detail::scores<Watching> && model::detail::scores<kv::AnyEviction>);
static_assert(!model::detail::scores<SinksAndWindow> && !model::detail::scores<KeepAll>);

/// What tells these policies apart where a test fails.
std::string words(const kv::AnyEviction& policy) {
  return join(policy.needs_scores() ? "heavy:" : "sinks:", policy.capacity());
}

template <class... Policies>
std::vector<kv::AnyEviction> policies(Policies... each) {
  return {kv::AnyEviction(each)...};
}

/// Whose storage and policy are chosen at run time.
template <class Family>
using Forgetting =
    Transformer<Family, WithExecutor<exec::Team>, WithEviction<kv::AnyEviction>, WithKv<kv::AnyStorage<>>>;

/// A model whose numbers a reference computes with. Scores are large, so that what is seen matters.
FamilyFile sharp_file() {
  FamilyFile file("llama");
  file.shape(2, 20, 4, 2, 6, 30).matrix("token_embd.weight", family_vocabulary, 20, 4);
  file.vector("output_norm.weight", 20);
  for (std::size_t i = 0; i < 2; ++i) {
    add_attention(file, i, 20, 24, 12);
    file.layer_matrix(i, "attn_q", 24, 20, 2);
    add_feed_forward(file, i, 20, 30);
  }
  return file;
}

/// The tiles that are held while the 64 tokens before position 64 (i + 1) run, and what their queries look
/// at.
using Sets = std::vector<std::set<std::size_t>>;
using TileScores = std::vector<double>;  // by tile

/// Logits of a model whose queries see the tiles of sets[position / 64]. looked: what they look at, added to.
reference::Rows masked(const FamilyFile& file, std::span<const text::TokenId> ids, const Sets& sets,
                       std::vector<TileScores>& looked) {
  using namespace reference;
  const auto shares = [&](std::size_t position, std::size_t token, double share) {
    TileScores& of = looked.at(position / 64);
    of.resize(std::max(of.size(), token / 16 + 1));
    of[token / 16] += share;
  };
  reference::Attention a{4, 2, 6, 1 / std::sqrt(6.0), false, 6};
  a.sees = [&](std::size_t position, std::size_t token) {
    return token / 16 >= position / 64 * 4 || sets.at(position / 64).contains(token / 16);
  };
  a.query_scores = shares;
  Rows x = embedded(file, ids);
  for (std::size_t i = 0; i < 2; ++i) {
    const Rows attended = attention(file, i, a, normed_rows(x, file.layer(i, "attn_norm")));
    for (std::size_t t = 0; t < x.size(); ++t) {
      x[t] = add(x[t], attended[t]);
      x[t] = add(x[t], feed_forward(file, i, normed(x[t], file.layer(i, "ffn_norm")), silu));
    }
  }
  return logits(file, x);
}

/// The same for tiles that choose() keeps, decided 64 tokens at a time.
template <class Choose>
reference::Rows evicting(const FamilyFile& file, std::span<const text::TokenId> ids, std::size_t keep,
                         double decay, Choose&& choose) {
  Sets sets;
  reference::Rows out;
  TileScores sums;
  std::set<std::size_t> resident;
  for (std::size_t pos = 0; pos < ids.size(); pos += 64) {
    for (std::size_t n = 0; resident.size() == keep / 16 && n < 4; ++n)
      resident.erase(choose(resident, sums));
    while (resident.size() > keep / 16 - 4) resident.erase(choose(resident, sums));
    sets.push_back(resident);
    const std::size_t end = std::min(pos + 64, ids.size());
    std::vector<TileScores> looked(sets.size());
    out = masked(file, ids.first(end), sets, looked);
    for (std::size_t tile = pos / 16; tile * 16 < end; ++tile) resident.insert(tile);
    looked.back().resize(end / 16 + 1);
    sums.resize(looked.back().size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] * decay + looked.back()[i];
  }
  return out;
}

void check_reference(const kv::AnyEviction& policy, const reference::Rows& expected, FamilyFile& file,
                     std::span<const text::TokenId> ids) {
  exec::Inline executor;
  using Model = FamilyModel<arch::Llama>::With<WithEviction<kv::AnyEviction>>;
  Model model(file.document(), executor, options, {.eviction = policy});
  auto cache = model.make_cache();
  const std::vector<float> found = feed(model, cache, ids, 64);
  REQUIRE(found.size() == expected.size() * family_vocabulary);
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(found[i]) -
                                      expected[i / family_vocabulary][i % family_vocabulary]));
  }
  CHECK(worst < 2e-4);
}

/// A cache whose storage is that of a name.
template <class Model>
typename Model::Cache cache_of(const Model& model, kv::Choice storage) {
  using S = typename Model::Storage;
  return model.make_cache([&](typename Model::Allocator a, std::span<const kv::LayerShape> layers,
                              std::size_t n_ctx) { return S(a, layers, n_ctx, storage); });
}

template <class Family>
std::vector<float> run(const TinyModel& tiny, std::span<const TokenId> ids, std::size_t chunk,
                       std::size_t threads, kv::Choice storage, const kv::AnyEviction& policy) {
  exec::Team team(threads);
  Forgetting<Family> model(tiny.document(), team,
                           {.n_ctx = 2000, .chunk = chunk, .logits_rows = chunk, .log = {}},
                           {.eviction = policy});
  auto cache = cache_of(model, storage);
  return feed(model, cache, ids, chunk);
}

template <class Family>
void check_bits(const TinyModel& tiny, std::span<const TokenId> ids, const kv::AnyEviction& policy) {
  const auto expected = run<Family>(tiny, ids, 64, 1, kv::Choice::segmented, policy);
  for (const std::size_t chunk : {1u, 7u, 64u, 512u}) {
    CAPTURE(chunk);
    CHECK(same_bits(expected, run<Family>(tiny, ids, chunk, 1, kv::Choice::segmented, policy)));
    CHECK(same_bits(expected, run<Family>(tiny, ids, chunk, 3, kv::Choice::segmented, policy)));
  }
  for (const kv::Choice storage : {kv::Choice::contiguous, kv::Choice::reserved, kv::Choice::paged,
                                   kv::Choice::spilled, kv::Choice::spilled_paged}) {
    CAPTURE(storage);
    CHECK(same_bits(expected, run<Family>(tiny, ids, 100, 2, storage, policy)));
    CHECK(same_bits(expected, run<Family>(tiny, ids, 1, 1, storage, policy)));
  }
}

}  // namespace

TEST_CASE("the first tokens and a window give the answers of a mask that hides the others") {
  FamilyFile file = sharp_file();
  const auto ids = random_ids(420, family_vocabulary);
  const auto oldest_behind = [](std::size_t sinks) {
    return [sinks](const std::set<std::size_t>& resident, const TileScores&) {
      return *std::next(resident.begin(), static_cast<std::ptrdiff_t>(sinks / 16));
    };
  };
  for (const std::size_t sinks : {16u, 64u}) {
    CAPTURE(sinks);
    const auto expected = evicting(file, ids, 192, 1, oldest_behind(sinks));
    check_reference(SinksAndWindow(192, sinks), expected, file, ids);
  }
}

TEST_CASE("heavy hitters are what queries of all heads and layers looked at most") {
  FamilyFile file = sharp_file();
  const auto ids = random_ids(420, family_vocabulary);
  const auto min = [](const std::set<std::size_t>& resident, const TileScores& sums) {
    std::vector<std::size_t> tiles(std::next(resident.begin()), std::prev(resident.end(), 6));
    return *std::min_element(tiles.begin(), tiles.end(),
                             [&](std::size_t a, std::size_t b) { return sums[a] < sums[b]; });
  };
  for (const float decay : {0.0f, 0.5f, 1.0f}) {
    CAPTURE(decay);
    const auto expected = evicting(file, ids, 256, static_cast<double>(decay), min);
    check_reference(HeavyHitters(256, {.recent = 96, .decay = decay}), expected, file, ids);
  }
}

TEST_CASE("what is forgotten does not depend on steps, threads or storages") {
  const TinyModel tiny{Recipe{}};
  const auto ids = random_ids(900, 67);
  const auto whole = run<arch::Llama>(tiny, ids, 512, 1, kv::Choice::segmented, kv::KeepAll{});
  for (const kv::AnyEviction& policy :
       policies(SinksAndWindow(320), HeavyHitters(320), HeavyHitters(320, {.recent = 64}))) {
    CAPTURE(words(policy));
    check_bits<arch::Llama>(tiny, ids, policy);
    const auto some = run<arch::Llama>(tiny, ids, 512, 1, kv::Choice::segmented, policy);
    CHECK(same_bits(std::span(whole).first(320 * 67), std::span(some).first(320 * 67)));
    CHECK_FALSE(same_bits(std::span(whole).subspan(320 * 67, 67), std::span(some).subspan(320 * 67, 67)));
  }
}

TEST_CASE("a storage that knows of no bounds gives the same answers") {
  using Whole =
      Transformer<arch::Llama, WithEviction<kv::AnyEviction>, WithKv<archetype::KvStorage<alloc::Huge>>>;
  const TinyModel tiny{Recipe{}};
  const auto ids = random_ids(500, 67);
  exec::Inline executor;
  Whole model(tiny.document(), executor, options, {.eviction = kv::HeavyHitters(256)});
  auto cache = model.make_cache();
  CHECK(same_bits(feed(model, cache, ids, 64),
                  run<arch::Llama>(tiny, ids, 64, 1, kv::Choice::segmented, kv::HeavyHitters(256))));
}

TEST_CASE("layers with a window keep it, and the others forget") {
  const TinyModel tiny({.layers = 4});
  const auto ids = random_ids(700, 67);
  check_bits<Windowed<50>>(tiny, ids, SinksAndWindow(320));
  check_bits<Windowed<50>>(tiny, ids, HeavyHitters(320, {.recent = 64}));
}

TEST_CASE("sequences that share steps forget as they would alone") {
  const TinyModel tiny{Recipe{}};
  std::vector<std::vector<TokenId>> texts;
  for (const std::size_t n : {500u, 300u, 400u}) texts.push_back(random_ids(n, 67, n));
  for (const kv::AnyEviction& policy : policies(SinksAndWindow(192), HeavyHitters(256))) {
    CAPTURE(words(policy));
    exec::Team team(2);
    Forgetting<arch::Llama> model(tiny.document(), team,
                                  {.n_ctx = 600, .chunk = 400, .logits_rows = 400, .log = {}},
                                  {.eviction = policy});
    for (const auto& sizes : std::vector<std::vector<std::size_t>>{{1}, {50, 1, 70}, {1, 90}}) {
      const auto together = feed_shared(model, texts, sizes);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        auto cache = model.make_cache();
        CHECK(same_bits(together[i], feed(model, cache, texts[i], 400)));
      }
    }
  }
}

TEST_CASE(
    "a rewind goes back to where something was forgotten last, or to the beginning, and what follows is what "
    "it should be") {
  const TinyModel tiny{Recipe{}};
  const auto ids = random_ids(500, 67), other = random_ids(90, 67, 8);
  for (const kv::AnyEviction& policy : policies(SinksAndWindow(256), HeavyHitters(256))) {
    CAPTURE(words(policy));
    exec::Team team(1);
    Forgetting<arch::Llama> model(tiny.document(), team, options, {.eviction = policy});
    const bool needs_scores = policy.needs_scores();
    for (const kv::Choice storage : {kv::Choice::segmented, kv::Choice::contiguous, kv::Choice::paged}) {
      for (const std::size_t had : {200u, 256u, 257u, 330u, 500u}) {
        for (const std::size_t count :
             {0u, 1u, 63u, 64u, 100u, 130u, 191u, 255u, 256u, 319u, 320u, 329u, 448u, 499u}) {
          if (count >= had) continue;
          CAPTURE(had);
          CAPTURE(count);
          auto cache = cache_of(model, storage), fresh = cache_of(model, storage);
          static_cast<void>(feed(model, cache, std::span(ids).first(had), 64));
          const std::size_t resident = cache.rewind(count), border = had <= 256 ? 0 : (had - 1) / 64 * 64;
          const std::size_t segment = (had - 1) / 64 * 64;
          CHECK(resident == cache.tokens);
          CHECK(resident == (count < border ? 0 : needs_scores && count < segment ? count / 64 * 64 : count));
          static_cast<void>(feed(model, cache, std::span(ids).subspan(resident, count - resident), 7));
          static_cast<void>(feed(model, fresh, std::span(ids).first(count), 64));
          CHECK(same_bits(feed(model, cache, other, 64), feed(model, fresh, other, 64)));
        }
      }
    }
  }
}

TEST_CASE("a session goes on after a rewind to what was forgotten") {
  const TinyModel tiny{Recipe{}};
  exec::Team team(1);
  using Model = Forgetting<arch::Llama>;
  Model model(tiny.document(), team, options, {.eviction = kv::HeavyHitters(256)});
  const auto ids = random_ids(700, 67), next = random_ids(90, 67, 5);
  can_continue_after_rewind(model, ids, 333, next);
}

TEST_CASE("a saved session goes on as it would have, whatever it had forgotten") {
  const TinyModel tiny{Recipe{}};
  const TemporaryFolder folder;
  exec::Team team(1);
  using Model = Forgetting<arch::Llama>;
  const auto ids = random_ids(500, 67), next = random_ids(90, 67, 5);
  const auto after = [&](Session<Model>& session) {
    REQUIRE(session.feed(next) == model::StepStatus::ok);
    const auto row = session.logits();
    return std::vector<float>(row.begin(), row.end());
  };
  for (const kv::AnyEviction& saver : policies(KeepAll(), SinksAndWindow(256), HeavyHitters(256))) {
    for (const kv::AnyEviction& opener : policies(KeepAll(), SinksAndWindow(256), HeavyHitters(256))) {
      for (const std::size_t tokens : {200u, 500u}) {
        CAPTURE(words(saver));
        CAPTURE(words(opener));
        CAPTURE(tokens);
        Model from(tiny.document(), team, options, {.eviction = saver});
        Model to(tiny.document(), team, options, {.eviction = opener});
        Session<Model> session(from), fresh(to);
        REQUIRE(session.feed(std::span(ids).first(tokens)) == model::StepStatus::ok);
        session.save(folder.path("session"));
        auto opened = Session<Model>::open(to, folder.path("session"));
        REQUIRE(fresh.feed(std::span(ids).first(tokens)) == model::StepStatus::ok);
        CHECK(same_bits(after(opened), after(fresh)));
      }
    }
  }
}

TEST_CASE("a sequence takes over what another one has read until that forgets something") {
  const TinyModel tiny{Recipe{}};
  const auto ids = random_ids(400, 67), own = random_ids(300, 67, 9);
  exec::Team team(1);
  for (const kv::AnyEviction& policy : policies(SinksAndWindow(256), HeavyHitters(256))) {
    CAPTURE(words(policy));
    Forgetting<arch::Llama> model(tiny.document(), team, options, {.eviction = policy});
    for (const std::size_t had : {150u, 256u, 257u}) {
      for (const std::size_t count : {1u, 64u, 100u, 150u}) {
        CAPTURE(had);
        CAPTURE(count);
        auto cache = cache_of(model, kv::Choice::paged), other = cache_of(model, kv::Choice::paged),
             fresh = cache_of(model, kv::Choice::paged);
        static_cast<void>(feed(model, other, std::span(ids).first(had), 64));
        const std::size_t has = cache.adopt(other, count);
        const bool floored = policy.needs_scores() && count / 64 < (had - 1) / 64;
        CHECK(has == (had > 256 ? 0 : floored ? count / 64 * 64 : count));
        static_cast<void>(feed(model, other, std::span(ids).subspan(had), 64));  // writes every place again
        static_cast<void>(feed(model, cache, std::span(ids).subspan(has, count - has), 64));
        static_cast<void>(feed(model, fresh, std::span(ids).first(count), 64));
        CHECK(same_bits(feed(model, cache, own, 64), feed(model, fresh, own, 64)));
      }
    }
  }
}

TEST_CASE("an endless text stays within the memory of what is kept, as planned") {
  const TinyModel tiny{Recipe{}};
  const auto ids = random_ids(3000, 67);
  exec::Team team(1);
  using A = alloc::Budgeted<alloc::Huge>;
  using Booked = Forgetting<arch::Llama>::With<WithAllocator<A>>;
  using Dry = Forgetting<arch::Llama>::With<WithAllocator<alloc::Counting>>;
  const ModelOptions many{.n_ctx = 3000, .chunk = 64, .logits_rows = 64, .log = {}};
  for (const kv::AnyEviction& policy : policies(SinksAndWindow(256), HeavyHitters(256))) {
    for (const kv::Choice storage : {kv::Choice::segmented, kv::Choice::contiguous, kv::Choice::reserved,
                                     kv::Choice::paged, kv::Choice::spilled, kv::Choice::spilled_paged}) {
      CAPTURE(words(policy));
      CAPTURE(storage);
      budget::Ledger ledger, planned;
      Booked model(tiny.document(), team, many,
                   {.allocator = A(ledger, budget::Account::weights), .eviction = policy});
      Dry plan(tiny.document(), team, many,
               {.allocator = alloc::Counting(planned, budget::Account::weights), .eviction = policy});
      auto cache = cache_of(model, storage);
      auto dry = cache_of(plan, storage);
      std::uint64_t at_keep = 0;
      for (std::size_t done = 0; done < ids.size();) {
        const auto step = std::span(ids).subspan(done, std::min<std::size_t>(64, ids.size() - done));
        REQUIRE(model.step(cache, step) == model::StepStatus::ok);
        REQUIRE(plan.step(dry, step) == model::StepStatus::ok);
        done += step.size();
        if (done == 256) at_keep = ledger.used();
      }
      CHECK(ledger.used() == at_keep);
      CHECK(ledger.peak() == at_keep);
      CHECK(planned.peak() == at_keep);
      const std::size_t tile =
          2 * round_up<std::size_t>(2 * 16 * 10, 64) * 2 * 2;  // two layers of two heads, keys and values
      CHECK(ledger.used(budget::Account::kv) >= 16 * tile);
      CHECK(model.step(cache, std::span(ids).first(1)) == model::StepStatus::context_full);
    }
  }
}

TEST_CASE("a recurrent state is not touched, and goes back with what is forgotten") {
  const TinyHybrid tiny{HybridRecipe{}};
  exec::Inline executor;
  using Model = Hybrid::With<WithEviction<kv::AnyEviction>>;
  const auto ids = random_ids(400, HybridRecipe{}.n_vocab), other = random_ids(20, HybridRecipe{}.n_vocab, 8);
  for (const kv::AnyEviction& policy : policies(KeepAll(), SinksAndWindow(192), HeavyHitters(256))) {
    CAPTURE(words(policy));
    std::vector<float> first;
    for (const std::size_t chunk : {64u, 1u, 100u}) {
      Model model(tiny.document(), executor, {.n_ctx = 500, .chunk = chunk, .logits_rows = chunk, .log = {}},
                  {.eviction = policy});
      auto cache = model.make_cache(), fresh = model.make_cache();
      const auto logits = feed(model, cache, ids, chunk);
      if (first.empty()) first = logits;
      CHECK(same_bits(first, logits));
      const std::size_t resident = cache.rewind(390);
      CHECK(resident <= 390);
      static_cast<void>(feed(model, cache, std::span(ids).subspan(resident, 390 - resident), chunk));
      static_cast<void>(feed(model, fresh, std::span(ids).first(390), chunk));
      CHECK(same_bits(feed(model, cache, other, chunk), feed(model, fresh, other, chunk)));
    }
  }
}

}  // namespace mica::test::eviction_test
