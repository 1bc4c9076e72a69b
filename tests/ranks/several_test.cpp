// SPDX-License-Identifier: Apache-2.0
//
// A model whose rows, or layers, are divided among ranks has the logits of one rank alone, bit by bit, and so
// has its saved cache.

#include "mica/ranks/several.hpp"

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/arch/llama.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kv/elements.hpp"
#include "mica/kv/heavy_hitters.hpp"
#include "mica/paging/resident.hpp"
#include "mica/paging/streamed.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"
#include "ranks/crew.hpp"
#include "ranks/kit_models.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace mica::test::several_test {
namespace {

using AnyAlone = Transformer<arch::AnyOf<arch::All>, WithKvElement<kv::AnyElements<>>>;
using Alone = Transformer<arch::Llama>;

/// Saves the cache of `ids` to the file `to`, and answers one that was loaded from the file `from`.
template <class Model>
typename Model::Cache through_files(Model& model, typename Model::Cache& cache,
                                    std::span<const text::TokenId> ids, bool first, const std::string& to,
                                    const std::string& from) {
  kv::SnapshotInfo info = model.describe(cache);
  info.tokens.assign(ids.begin(), ids.end());
  if (first) {
    kv::SnapshotWriter out(to, info);
    model.save(cache, out);
    out.commit();
  } else {
    kv::SnapshotWriter none(info);
    model.save(cache, none);
  }
  const auto description = kv::detail::describe(info);
  const auto in = first ? kv::SnapshotReader(from) : kv::SnapshotReader("rank 0", description);
  auto loaded = model.make_cache();
  REQUIRE(model.load(loaded, in, info.cached) == model::StepStatus::ok);
  if (loaded.tokens == 0) static_cast<void>(feed(model, loaded, ids, 20));  // saved as tokens alone
  REQUIRE(loaded.tokens == ids.size());
  return loaded;
}

/// Ids in a prompt of 20, then one by one, then through a file, then a prompt again.
template <class Model>
std::vector<float> logits_of(const gguf::Document& document, const std::vector<text::TokenId>& ids,
                             typename Model::Ranks ranks, const std::string& to, const std::string& from) {
  exec::Inline executor;
  typename Model::Parts parts;
  parts.ranks = ranks;
  Model model(document, executor, {.n_ctx = 128, .chunk = 32, .logits_rows = 32}, parts);
  auto cache = model.make_cache();
  const std::span all(ids);
  std::vector<float> out = feed(model, cache, all.first(20), 20);
  for (std::size_t i = 20; i < 24; ++i) {
    const auto one = feed(model, cache, all.subspan(i, 1), 1);
    out.insert(out.end(), one.begin(), one.end());
  }
  auto saved = through_files(model, cache, all.first(24), ranks.division().rank() == 0, to, from);
  const auto rest = feed(model, saved, all.subspan(24), 32);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

/// Checks that all divisions give the bits of one rank.
template <class Model>
void check_divisions(const gguf::Document& document, std::size_t n_vocab,
                     const std::vector<std::vector<double>>& divisions,
                     ranks::Split split = ranks::Split::rows) {
  using Divided = typename Model::template With<WithRanks<RanksOfThreads>>;
  const auto ids = random_ids(40, n_vocab);
  const TemporaryFolder folder;
  const std::string one = folder.path("one"), several = folder.path("several");
  const auto alone = logits_of<Model>(document, ids, {}, one, one);
  REQUIRE(alone.size() == ids.size() * n_vocab);
  for (const auto& shares : divisions) {
    CAPTURE(shares.size());
    const auto results = each_rank(
        shares, [&](RanksOfThreads ranks) { return logits_of<Divided>(document, ids, ranks, several, one); },
        split);
    for (const auto& each : results) CHECK(same_bits(each, alone));
    if (split == ranks::Split::rows || !Model::Arch::config(document).recurrent())
      CHECK(contents(several) == contents(one));
  }
}

}  // namespace

TEST_CASE("a dense model has the same bits for any number of ranks and any shares") {
  for (const format::Id id : {format::F32::id, format::Q8_0::id, format::Q4_K::id, format::BF16::id}) {
    CAPTURE(id.value);
    Recipe recipe = id == format::F32::id ? Recipe{} : blocks_of(id);
    recipe.tied = id == format::Q8_0::id;
    if (id == format::Q4_K::id) recipe.ff_width = 1024;
    const TinyModel tiny(recipe);
    check_divisions<Alone>(tiny.document(), recipe.n_vocab,
                           {{1}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1}, {5, 1, 2}, {1, 100}});
  }
}

TEST_CASE("a model whose layers are divided has the same bits") {
  for (const bool tied : {false, true}) {
    Recipe recipe = blocks_of(format::Q8_0::id);
    recipe.layers = 5;
    recipe.tied = tied;
    const TinyModel tiny(recipe);
    const std::vector<std::vector<double>> divisions = {{1}, {1, 1}, {1, 3, 1}, {1, 1, 1, 1, 1}};
    check_divisions<Alone>(tiny.document(), recipe.n_vocab, divisions, ranks::Split::layers);
    check_divisions<Alone::With<WithPager<paging::Streamed<>>>>(tiny.document(), recipe.n_vocab, divisions,
                                                                ranks::Split::layers);
  }
}

TEST_CASE("a rank with some layers has their weights, and keys and values, alone") {
  Recipe recipe = blocks_of(format::Q8_0::id);
  recipe.layers = 4;
  const TinyModel tiny(recipe);
  struct Bytes {
    std::uint64_t weights = 0, kv = 0;
  };
  const auto bytes_of = [&]<class M>(typename M::Ranks ranks) {
    exec::Inline executor;
    typename M::Parts parts;
    parts.ranks = ranks;
    const M model(tiny.document(), executor, {.n_ctx = 64}, parts);
    return Bytes{model.weight_bytes(), model.kv_bytes_per_tile()};
  };
  using Divided = Alone::With<WithRanks<RanksOfThreads>>;
  const Bytes all = bytes_of.template operator()<Alone>({});
  const auto each = each_rank(
      {1, 3}, [&](RanksOfThreads ranks) { return bytes_of.template operator()<Divided>(ranks); },
      ranks::Split::layers);
  CHECK(each[0].weights + each[1].weights == all.weights);
  CHECK(each[0].kv * 4 == all.kv);
  CHECK(each[1].kv * 4 == 3 * all.kv);
}

TEST_CASE("ranks that cannot divide layers are refused, with a reason") {
  Recipe recipe;
  recipe.layers = 2;
  const TinyModel tiny(recipe);
  using Divided = Alone::With<WithRanks<RanksOfThreads>>;
  exec::Inline executor;
  Divided::Parts parts;
  parts.ranks = RanksOfThreads(ranks::Division({1, 1, 1}, 0), ranks::Split::layers);
  CHECK_THROWS_WITH_AS(Divided(tiny.document(), executor, {.n_ctx = 64}, parts),
                       doctest::Contains("rank 1 of 3 has none of the 2 layers"), const Error&);
}

TEST_CASE("a rank passes a prompt on and reads its next part before the others have seen it") {
  Recipe recipe;
  recipe.layers = 2;
  const TinyModel tiny(recipe);
  const auto ids = random_ids(40, 67);
  using Divided = Alone::With<WithRanks<RanksOfThreads>>;
  std::atomic<std::size_t> passed = 0;
  each_rank(
      {1, 1},
      [&](RanksOfThreads ranks) {
        exec::Inline executor;
        Divided::Parts parts;
        parts.ranks = ranks;
        Divided model(tiny.document(), executor, {.n_ctx = 64, .chunk = 16}, parts);
        auto cache = model.make_cache();
        const bool first = ranks.division().rank() == 0;
        for (std::size_t i = 0; i < 2; ++i) {
          if (!first && i == 1) {
            while (passed == 0) std::this_thread::yield();
          }
          CHECK(model.step(cache, std::span(ids).subspan(16 * i, 16)) == model::StepStatus::ok);
          if (first) ++passed;
        }
        return 0;
      },
      ranks::Split::layers);
  CHECK(passed == 2);
}

TEST_CASE("pagers give the same bits, and each rank has its share of the weights") {
  Recipe recipe = blocks_of(format::Q8_0::id);
  recipe.heads = 8;
  recipe.kv_heads = 4;
  recipe.ff_width = 1024;
  recipe.n_vocab = 256;
  const TinyModel tiny(recipe);
  const std::vector<std::vector<double>> divisions = {{1, 1}, {1, 2, 1}};
  check_divisions<Alone::With<WithPager<paging::Resident<>>>>(tiny.document(), recipe.n_vocab, divisions);
  check_divisions<Alone::With<WithPager<paging::Streamed<>>>>(tiny.document(), recipe.n_vocab, divisions);

  using Divided = Alone::With<WithRanks<RanksOfThreads>>;
  exec::Inline executor;
  const std::uint64_t all = Alone(tiny.document(), executor, {.n_ctx = 64}).weight_bytes();
  const auto bytes = each_rank({1, 1}, [&](RanksOfThreads ranks) {
    Divided::Parts parts;
    parts.ranks = ranks;
    return Divided(tiny.document(), executor, {.n_ctx = 64}, parts).weight_bytes();
  });
  CHECK(bytes[0] + bytes[1] < all + all / 50);  // norms are on both
  CHECK(bytes[0] + bytes[1] > all);
  CHECK(bytes[0] == bytes[1]);
}

TEST_CASE("sequences of a shared step, rewound ones too, have the bits of one rank") {
  const TinyModel tiny(Recipe{});
  const std::vector<std::vector<text::TokenId>> texts = {random_ids(40, 67, 1), random_ids(9, 67, 2),
                                                         random_ids(25, 67, 3), random_ids(12, 67, 4)};
  const auto run = [&]<class Model>(typename Model::Ranks ranks) {
    exec::Inline executor;
    typename Model::Parts parts;
    parts.ranks = ranks;
    Model model(tiny.document(), executor, {.n_ctx = 128, .chunk = 64, .logits_rows = 64}, parts);
    auto all = feed_shared(model, texts, {1, 5, 3});
    auto cache = model.make_cache();
    static_cast<void>(feed(model, cache, texts[0], 16));
    cache.rewind(17);
    all.push_back(feed(model, cache, texts[1], 4));
    return all;
  };
  const auto alone = run.template operator()<Alone>({});
  using Divided = Alone::With<WithRanks<RanksOfThreads>>;
  for (const auto& each :
       each_rank({2, 1, 1}, [&](RanksOfThreads ranks) { return run.template operator()<Divided>(ranks); })) {
    REQUIRE(each.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(same_bits(each[i], alone[i]));
  }
}

TEST_CASE("a step ends where a rank has gone, and the cache is as before") {
  const TinyModel tiny(Recipe{});
  using Divided = Alone::With<WithRanks<RanksOfThreads>>;
  const auto ids = random_ids(10, 67);
  const auto statuses = each_rank({1, 1, 1}, [&](RanksOfThreads ranks) -> std::vector<int> {
    exec::Inline executor;
    Divided::Parts parts;
    parts.ranks = ranks;
    Divided model(tiny.document(), executor, {.n_ctx = 64}, parts);
    auto cache = model.make_cache();
    std::vector<int> out{static_cast<int>(model.step(cache, ids))};
    if (ranks.division().rank() == 1) return out;
    for (int i = 0; i < 2; ++i) out.push_back(static_cast<int>(model.step(cache, ids)));
    out.push_back(static_cast<int>(cache.tokens));
    return out;
  });
  const int ok = static_cast<int>(model::StepStatus::ok),
            lost = static_cast<int>(model::StepStatus::rank_lost);
  CHECK(statuses[1] == std::vector<int>{ok});
  CHECK(statuses[0] == std::vector<int>{ok, lost, lost, 10});
  CHECK(statuses[2] == statuses[0]);
}

TEST_CASE("a step that one rank has no memory for is refused on all, and nothing has changed") {
  const TinyModel tiny(Recipe{});
  using Small = Alone::With<WithRanks<RanksOfThreads>, WithAllocator<alloc::Budgeted<alloc::Aligned>>>;
  struct Seen {
    std::size_t steps = 0, tokens = 0;
    model::StepStatus status = model::StepStatus::ok, afterwards = model::StepStatus::ok;
  };
  const auto ids = random_ids(16, 67);
  const auto seen = each_rank({1, 1}, [&](RanksOfThreads ranks) {
    exec::Inline executor;
    budget::Ledger ledger(std::uint64_t{1} << 30);
    Small model(tiny.document(), executor, {.n_ctx = 700, .chunk = 16},
                {.allocator = Small::Allocator(ledger, budget::Account::weights), .ranks = ranks});
    auto cache = model.make_cache();
    Seen out;
    out.status = model.step(cache, ids);
    if (ranks.division().rank() == 1) REQUIRE(ledger.book(budget::Account::process, ledger.left()));
    for (; out.status == model::StepStatus::ok; ++out.steps) out.status = model.step(cache, ids);
    out.tokens = cache.tokens;
    cache.rewind(0);
    out.afterwards = model.step(cache, ids);
    return out;
  });
  CHECK(seen[0].status == model::StepStatus::no_memory);
  CHECK(seen[1].status == model::StepStatus::no_memory);
  CHECK(seen[0].steps == seen[1].steps);
  CHECK(seen[0].tokens == 16 * seen[0].steps);
  CHECK(seen[1].tokens == seen[0].tokens);
  CHECK(seen[0].afterwards == model::StepStatus::ok);
}

TEST_CASE("what several ranks cannot do is refused when the model is made") {
  const TinyModel tiny({.mtp = true});
  using Divided = Alone::With<WithRanks<RanksOfThreads>>;
  exec::Inline executor;
  ranks::Threads meeting(2);
  ranks::Threads::Link link(meeting, 0);
  Divided::Parts parts;
  parts.ranks = RanksOfThreads(link);
  CHECK_THROWS_WITH_AS(Divided(tiny.document(), executor, {.n_ctx = 64, .mtp = true}, parts),
                       "a head for multi-token prediction runs on one rank alone", const Error&);
  using Evicting = Divided::With<WithEviction<kv::HeavyHitters>>;
  const Evicting::Parts evicting{.eviction = kv::HeavyHitters(256), .ranks = RanksOfThreads(link)};
  CHECK_THROWS_WITH_AS(Evicting(tiny.document(), executor, {.n_ctx = 512}, evicting),
                       doctest::Contains("by their attention scores"), const Error&);
  CHECK_THROWS_WITH_AS(RanksOfThreads(link, {1, 1, 1}), "shares of ranks: found 3 for 2 ranks", const Error&);
}

TEST_CASE("every family and format of the conformance kit has the same bits on 2, 3 and 5 ranks") {
  for_each_kit_model(
      "every family and format on several ranks", [](const auto& document, const auto& config) {
        check_divisions<AnyAlone>(document, config.n_vocab, {{1, 1}, {3, 1, 2}, {1, 1, 1, 1, 1}});
      });
}

TEST_CASE("every family of the conformance kit has the same bits where two ranks divide its layers") {
  using Divided = AnyAlone::With<WithRanks<RanksOfThreads>>;
  std::string refused;
  std::size_t checked = 0;
  const auto check = [&](const gguf::Document& document, const arch::Config& config) {
    if (config.layers.size() < 2) return;
    try {
      exec::Inline executor;
      Divided::Parts parts;
      parts.ranks = RanksOfThreads(ranks::Division({1, 1}, 0), ranks::Split::layers);
      static_cast<void>(Divided(document, executor, {.n_ctx = 64}, parts));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::unsupported);
      refused += config.arch + " ";
      return;
    }
    ++checked;
    check_divisions<AnyAlone>(document, config.n_vocab, {{1, 1}}, ranks::Split::layers);
  };
  if (!for_each_kit_model("every family by layers", check)) return;
  CHECK(refused == "gemma4 ");  // its layers read a second embedding
  CHECK(checked > 10);
}

}  // namespace mica::test::several_test
