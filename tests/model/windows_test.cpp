// SPDX-License-Identifier: Apache-2.0
//
// Layers with a window hold the tokens that can still be seen and no more; the answers are those of a cache
// that keeps all.

#include "archetype/kv_storage.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/exec/team.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/runtime/session.hpp"
#include "model/rewound_session.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"
#include "model/windowed_family.hpp"

#include <doctest/doctest.h>

namespace mica::test::windows_test {
namespace {

const Recipe four_layers{.layers = 4};

/// Logits of ids fed in chunks through a model of its own.
template <class Model>
std::vector<float> run(const TinyModel& tiny, std::span<const TokenId> ids, std::size_t chunk,
                       std::size_t threads = 1) {
  typename Model::Executor executor(threads);
  Model model(tiny.document(), executor, {.n_ctx = 700, .chunk = chunk, .logits_rows = chunk, .log = {}});
  auto cache = model.make_cache();
  return feed(model, cache, ids, chunk);
}

template <class Family>
using Team = Transformer<Family, WithExecutor<exec::Team>>;
template <class Family>
using Whole = typename Team<Family>::template With<WithKv<archetype::KvStorage<alloc::Huge>>>;

template <class Family>
void check_family(std::size_t tokens) {
  const TinyModel tiny(four_layers);
  const auto ids = random_ids(tokens, four_layers.n_vocab);
  const auto expected = run<Whole<Family>>(tiny, ids, 64);
  for (const std::size_t chunk : {1u, 7u, 64u, 300u}) {
    CAPTURE(chunk);
    CHECK(same_bits(expected, run<Team<Family>>(tiny, ids, chunk)));
    CHECK(same_bits(expected, run<Team<Family>>(tiny, ids, chunk, 3)));
    using Contiguous = typename Team<Family>::template With<WithKv<kv::Contiguous<>>>;
    CHECK(same_bits(expected, run<Contiguous>(tiny, ids, chunk)));
    using Paged = typename Team<Family>::template With<WithKv<kv::Paged<>>>;
    CHECK(same_bits(expected, run<Paged>(tiny, ids, chunk)));
    using Any = typename Team<Family>::template With<WithKv<kv::AnyStorage<>>>;
    CHECK(same_bits(expected, run<Any>(tiny, ids, chunk, 2)));
  }
}

using Small = Transformer<Windowed<20>>;
constexpr ModelOptions small{.n_ctx = 700, .chunk = 32, .logits_rows = 32, .log = {}};

}  // namespace

TEST_CASE("a cache that keeps windows gives the bits of one that keeps everything") {
  check_family<Windowed<1>>(150);
  check_family<Windowed<16>>(150);
  check_family<Windowed<50>>(300);
  check_family<Windowed<270>>(640);
  check_family<Chunked<16>>(100);
  check_family<Chunked<100>>(320);
}

TEST_CASE("a layer's window is the widest of those who read it, and none where one of them sees everything") {
  const TinyModel tiny(four_layers);
  arch::Config config = Windowed<20>::config(tiny.document());
  const block::StatePlan state = config.state();
  REQUIRE(state.kv().size() == 3);
  CHECK(state.kv()[0].window() == 25);  // layer 3 reads it
  CHECK(state.kv()[1].window() == 0);
  CHECK(state.kv()[2].window() == 57);
  config.layers[3].get<block::Attention>().reach = block::Reach::all;
  CHECK(config.state().kv()[0].window() == 0);
}

TEST_CASE("the bytes of a cache are those of its windows and of the layers without one") {
  const TinyModel tiny(four_layers);
  exec::Inline executor;
  using A = alloc::Budgeted<alloc::Huge>;
  const auto used = [&](auto type, std::size_t tokens) {
    budget::Ledger ledger;
    typename decltype(type)::type model(tiny.document(), executor, small,
                                        {.allocator = A(ledger, budget::Account::weights)});
    auto cache = model.make_cache();
    static_cast<void>(feed(model, cache, random_ids(tokens, four_layers.n_vocab), 32));
    return ledger.used(budget::Account::kv);
  };
  const std::size_t tile = 2 * 2 * 32 * 10;  // two heads, keys and values, F16
  const std::size_t rounded = (tile / 2 + 63) / 64 * 64 * 2;
  const std::size_t rings = (25 + 32 - 1 + 30) / 16 + (57 + 32 - 1 + 30) / 16;
  using Segmented = Small::With<WithAllocator<A>>;
  using Contiguous = Segmented::With<WithKv<kv::Contiguous<A>>>;
  CHECK(used(Type<Contiguous>{}, 1) == (44 + rings) * rounded);
  CHECK(used(Type<Segmented>{}, 1) == (16 + rings) * rounded);
  CHECK(used(Type<Segmented>{}, 700) == (44 + rings) * rounded);
  const Small model(tiny.document(), executor, small);
  CHECK(model.kv_bytes_per_tile() == rounded);
  CHECK(model.kv_window_bytes() == rings * rounded);
}

TEST_CASE("a rewind says how far back a window lets it go, and what follows is what it should be") {
  const TinyModel tiny(four_layers);
  exec::Inline executor;
  const auto ids = random_ids(300, four_layers.n_vocab), other = random_ids(50, four_layers.n_vocab, 8);
  const auto check = [&](auto& model) {
    for (const std::size_t keep : {0u, 1u, 19u, 20u, 100u, 200u, 255u, 267u, 268u, 269u, 287u, 288u, 299u}) {
      CAPTURE(keep);
      auto cache = model.make_cache(), fresh = model.make_cache();
      static_cast<void>(feed(model, cache, ids, 32));
      const std::size_t resident = cache.rewind(keep);
      CHECK(resident == cache.tokens);
      CHECK((resident == keep || resident == 0));
      if (keep >= 288) CHECK(resident == keep);  // the last step can always be taken back
      if (keep <= 200) CHECK(resident == 0);
      static_cast<void>(feed(model, cache, std::span(ids).subspan(resident, keep - resident), 32));
      static_cast<void>(feed(model, fresh, std::span(ids).first(keep), 32));
      const auto expected = feed(model, fresh, other, 32);
      CHECK(same_bits(feed(model, cache, other, 32), expected));
      const std::size_t again = cache.rewind(std::min(cache.tokens, keep + 20));  // and once more
      CHECK((again == cache.tokens && (again == 0 || again == keep + 20)));
      if (again != 0) {
        const auto rest = feed(model, cache, std::span(other).subspan(20), 32);
        CHECK(same_bits(rest, std::span(expected).subspan(20 * four_layers.n_vocab)));
      }
    }
  };
  Small segmented(tiny.document(), executor, small);
  check(segmented);
  Small::With<WithKv<kv::Contiguous<>>> contiguous(tiny.document(), executor, small);
  check(contiguous);
}

TEST_CASE("a session runs the tokens again that a window has lost") {
  const TinyModel tiny(four_layers);
  exec::Inline executor;
  Small model(tiny.document(), executor, small);
  const auto ids = random_ids(200, four_layers.n_vocab), next = random_ids(3, four_layers.n_vocab, 5);
  can_continue_after_rewind(model, ids, 50, next);
}

}  // namespace mica::test::windows_test
