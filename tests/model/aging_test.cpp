// SPDX-License-Identifier: Apache-2.0
//
// Keys and values that change with age: the same bits however a text is cut and wherever tiles lie, honest
// rewinds, every byte booked, and fewer bits lose more.

#include "archetype/kv_element.hpp"
#include "archetype/kv_storage.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/runtime/session.hpp"
#include "model/rewound_session.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"
#include "model/windowed_family.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mica::test::aging_test {
namespace {

template <class Family>
using Aged =
    Transformer<Family, WithKvElement<kv::AnyElements<>>, WithKv<kv::AnyStorage<>>, WithExecutor<exec::Team>>;

struct Way {
  std::size_t chunk;
  std::size_t threads;
  kv::Choice storage = kv::Choice::segmented;
};

template <class Model, class Tiny>
std::vector<float> run(const Tiny& tiny, std::span<const TokenId> ids, const kv::AnyElements<>& elements,
                       const Way& way) {
  exec::Team team(way.threads);
  Model model(tiny.document(), team, {.n_ctx = 700, .chunk = way.chunk, .logits_rows = way.chunk, .log = {}},
              {.elements = elements});
  auto cache = model.make_cache([&](auto allocator, std::span<const kv::LayerShape> layers, std::size_t n) {
    return typename Model::Storage(allocator, layers, n, way.storage);
  });
  return feed(model, cache, ids, way.chunk);
}

template <class Model, class Tiny>
void check_ways(const Tiny& tiny, const kv::AnyElements<>& elements, std::size_t tokens) {
  const auto ids = random_ids(tokens, 67);
  const auto expected = run<Model>(tiny, ids, elements, {512, 1, kv::Choice::contiguous});
  CHECK(std::isfinite(*std::max_element(expected.begin(), expected.end())));
  CHECK_FALSE(same_bits(expected, run<Model>(tiny, ids, kv::AnyElements<>(), {512, 1})));
  for (const Way& way :
       {Way{1, 1}, Way{7, 2}, Way{64, 3}, Way{512, 3}, Way{1, 2, kv::Choice::contiguous},
        Way{7, 1, kv::Choice::reserved}, Way{64, 2, kv::Choice::reserved}, Way{1, 1, kv::Choice::paged},
        Way{64, 3, kv::Choice::paged}, Way{7, 2, kv::Choice::spilled}, Way{64, 1, kv::Choice::spilled}}) {
    CAPTURE(way.storage);
    CAPTURE(way.chunk);
    CAPTURE(way.threads);
    CHECK(same_bits(expected, run<Model>(tiny, ids, elements, way)));
  }
}

std::vector<kv::AnyElements<>> all_elements() {
  using enum kv::Element;
  return {{kivi2, kivi2, 33},
          {kivi4, {q8_0, q4_s}, 64},
          {{f16, q4_0}, f16, 16},
          {{f16, q8_0}, kivi2, 100},
          {kvarn4, kvarn3, 48}};
}

using Llama = Transformer<arch::Llama>;

}  // namespace

TEST_CASE("elements that age give the same bits for any step, team and storage, in every kind of family") {
  const TinyModel dense{Recipe{}}, windows({.layers = 4});
  const TinyHybrid hybrid{HybridRecipe{}};
  for (const auto& elements : all_elements()) {
    check_ways<Aged<arch::Llama>>(dense, elements, 420);
    check_ways<Aged<Windowed<200>>>(windows, elements, 420);
    check_ways<
        Hybrid::With<WithKvElement<kv::AnyElements<>>, WithKv<kv::AnyStorage<>>, WithExecutor<exec::Team>>>(
        hybrid, elements, 300);
  }
}

TEST_CASE("elements that age and are named as types are those chosen by name") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  const ModelOptions options{.n_ctx = 700, .chunk = 64, .logits_rows = 64, .log = {}};
  const auto ids = random_ids(300, 67);
  using Types = kv::Aging<format::F16, format::KIVI2>;
  Llama::With<WithKvElement<Types>> types(tiny.document(), executor, options, {.elements = Types(40)});
  Llama::With<WithKvElement<kv::AnyElements<>>> words(
      tiny.document(), executor, options,
      {.elements = kv::AnyElements<>(kv::Element::kivi2, kv::Element::kivi2, 40)});
  auto a = types.make_cache();
  auto b = words.make_cache();
  CHECK(same_bits(feed(types, a, ids, 64), feed(words, b, ids, 64)));
}

TEST_CASE("a user's element ages, and is what others age into") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  const ModelOptions options{.n_ctx = 700, .chunk = 64, .logits_rows = 64, .log = {}};
  const auto ids = random_ids(200, 67);
  const auto run_with = [&]<class E>(Type<E>, const E& elements) {
    typename Llama::template With<WithKvElement<E>> model(tiny.document(), executor, options,
                                                          {.elements = elements});
    auto cache = model.make_cache();
    return feed(model, cache, ids, 64);
  };
  using User = archetype::KvElement;
  using Floats = kv::Aging<format::F32, User>;  // both hold the same numbers
  Llama::With<WithKvElement<User>> plain(tiny.document(), executor, options);
  auto cache = plain.make_cache();
  CHECK(same_bits(run_with(Type<Floats>{}, Floats(20)), feed(plain, cache, ids, 64)));
  using Rounds = kv::Aging<User, format::KIVI4>;
  CHECK_FALSE(same_bits(run_with(Type<Rounds>{}, Rounds(20)), run_with(Type<Floats>{}, Floats(20))));
}

TEST_CASE("layers that see no more than the recent tokens keep one element, and so does a short context") {
  const TinyModel tiny({.layers = 4});
  exec::Inline executor;
  const auto shapes = [&](std::size_t n_ctx, std::size_t recent) {
    using Model = Transformer<Windowed<100>, WithKvElement<kv::AnyElements<>>>;
    Model model(tiny.document(), executor, {.n_ctx = n_ctx, .chunk = 32, .log = {}},
                {.elements = kv::AnyElements<>(kv::Element::kivi2, kv::Element::kivi2, recent)});
    return model.make_cache().layers;
  };
  // Three layers store keys: a window of 105, all tokens, a window of 137.
  const auto none = shapes(120, 120);
  CHECK(none.size() == 3);
  const auto one = shapes(700, 200);
  REQUIRE(one.size() == 4);
  CHECK(one[0].window == 105);
  CHECK(one[1].window == 215);
  CHECK(one[2].window == 137);
  CHECK(one[3].window == 0);
  CHECK(one[3].tile_bytes < one[1].tile_bytes);
  const auto two = shapes(700, 120);
  REQUIRE(two.size() == 5);
  CHECK(two[4].window == 137);
}

TEST_CASE("a rewind says how far back recent tokens reach, and what follows is what it should be") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  const auto ids = random_ids(300, 67), other = random_ids(50, 67, 8);
  const auto check = [&](auto&& model) {
    for (const std::size_t keep : {0u, 1u, 100u, 199u, 250u, 255u, 256u, 267u, 268u, 287u, 288u, 299u}) {
      CAPTURE(keep);
      auto cache = model.make_cache(), fresh = model.make_cache();
      static_cast<void>(feed(model, cache, ids, 32));
      const std::size_t resident = cache.rewind(keep);
      CHECK(resident == cache.tokens);
      CHECK((resident == keep || resident == 0));
      if (keep >= 268) CHECK(resident == keep);  // a step can always be taken back
      if (keep <= 199) CHECK(resident == 0);
      static_cast<void>(feed(model, cache, std::span(ids).subspan(resident, keep - resident), 32));
      static_cast<void>(feed(model, fresh, std::span(ids).first(keep), 32));
      CHECK(same_bits(feed(model, cache, other, 32), feed(model, fresh, other, 32)));
    }
  };
  const ModelOptions options{.n_ctx = 700, .chunk = 32, .logits_rows = 32, .log = {}};
  using Elements = kv::Aging<format::F16, format::KIVI2>;
  check(Llama::With<WithKvElement<Elements>>(tiny.document(), executor, options, {.elements = Elements(40)}));
  check(Llama::With<WithKvElement<Elements>, WithKv<kv::Paged<>>>(tiny.document(), executor, options,
                                                                  {.elements = Elements(40)}));
}

TEST_CASE("a session runs the tokens again that are old") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  using Elements = kv::Aging<format::F16, format::KIVI4>;
  using Model = Llama::With<WithKvElement<Elements>>;
  Model model(tiny.document(), executor, {.n_ctx = 700, .chunk = 32, .log = {}}, {.elements = Elements(40)});
  const auto ids = random_ids(300, 67), next = random_ids(3, 67, 5);
  can_continue_after_rewind(model, ids, 70, next);
}

TEST_CASE("sequences that share pages age without knowing of each other") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  using Elements = kv::Aging<format::F16, format::KIVI2>;
  using Model = Llama::With<WithKvElement<Elements>, WithKv<kv::Paged<>>>;
  Model model(tiny.document(), executor, {.n_ctx = 700, .chunk = 64, .logits_rows = 64, .log = {}},
              {.elements = Elements(24)});
  const auto ids = random_ids(100, 67), other = random_ids(90, 67, 3);
  for (const std::size_t n : {15u, 16u, 40u, 70u, 99u}) {
    CAPTURE(n);
    auto a = model.make_cache(), b = model.make_cache(), alone = model.make_cache();
    static_cast<void>(feed(model, a, ids, 64));
    const std::size_t resident = b.adopt(a, n);
    CHECK((resident == n || resident == 0));
    if (n >= 70) CHECK(resident == n);
    static_cast<void>(feed(model, b, std::span(ids).subspan(resident, n - resident), 64));
    static_cast<void>(feed(model, alone, std::span(ids).first(n), 64));
    const auto of_b = feed(model, b, other, 7), expected = feed(model, alone, other, 64);
    CHECK(same_bits(of_b, expected));
    auto fresh = model.make_cache();
    static_cast<void>(feed(model, fresh, ids, 64));
    CHECK(same_bits(feed(model, a, other, 5), feed(model, fresh, other, 64)));
  }
}

TEST_CASE("the plan of elements that age is what they take, and that is less than F16 for a long context") {
  const TinyModel tiny(blocks_of(format::F32::id));
  const auto kv_bytes = [&](auto type, kv::Element element, kv::Choice storage) {
    using A = typename decltype(type)::type;
    using Model = Transformer<arch::Llama, WithKvElement<kv::AnyElements<>>, WithKv<kv::AnyStorage<>>,
                              WithAllocator<A>>;
    budget::Ledger ledger;
    {
      exec::Inline executor;
      Model model(tiny.document(), executor, {.n_ctx = 4000, .chunk = 64, .log = {}},
                  {.allocator = A(ledger, budget::Account::weights),
                   .elements = kv::AnyElements<>(element, element, 64)});
      auto cache =
          model.make_cache([&](auto allocator, std::span<const kv::LayerShape> layers, std::size_t n) {
            return typename Model::Storage(allocator, layers, n, storage);
          });
      const auto ids = random_ids(64, 67);
      for (int i = 0; i < 5; ++i) REQUIRE(model.step(cache, ids) == model::StepStatus::ok);
    }
    CHECK(ledger.used() == 0);
    return ledger.peaks()[budget::Account::kv];
  };
  // Two layers of two heads of 64: keys of three bits and values of two and a half, rounded to cache lines; a
  // ring of 79 + 63 tokens and two part tiles in F16.
  const std::size_t old = 384 + 320, ring = (79 + 63 + 30) / 16 * std::size_t{2 * 16 * 64 * 2};
  for (const kv::Choice storage : {kv::Choice::segmented, kv::Choice::contiguous, kv::Choice::reserved,
                                   kv::Choice::paged, kv::Choice::spilled}) {
    CAPTURE(storage);
    const auto plan = kv_bytes(Type<alloc::Counting>{}, kv::Element::kivi2, storage);
    CHECK(plan == kv_bytes(Type<alloc::Budgeted<alloc::Huge>>{}, kv::Element::kivi2, storage));
    if (storage == kv::Choice::contiguous) {
      CHECK(plan == 4 * (250 * old + ring));
      CHECK(plan * 4 < kv_bytes(Type<alloc::Counting>{}, kv::Element::f16, storage));
    }
  }
}

TEST_CASE("fewer bits for old tokens lose more, and recent ones nothing") {
  const TinyModel tiny(blocks_of(format::F32::id));
  const auto ids = random_ids(300, 67);
  using Model = Aged<arch::Llama>;
  const auto expected = run<Model>(tiny, ids, kv::AnyElements<>(kv::Element::f32, kv::Element::f32), {64, 2});
  const auto lost = [&](kv::ElementChoice element, std::size_t first, std::size_t last) {
    const auto logits = run<Model>(tiny, ids, kv::AnyElements<>(element, element, 100), {64, 2});
    double sum = 0;
    for (std::size_t i = first * 67; i < last * 67; ++i) {
      const double off = static_cast<double>(logits[i]) - static_cast<double>(expected[i]);
      sum += off * off;
    }
    return sum;
  };
  using enum kv::Element;
  CHECK(lost(kivi2, 0, 115) == lost(f16, 0, 115));
  CHECK(lost(f16, 116, 300) > 0);
  CHECK(lost(kivi4, 116, 300) > 2 * lost(f16, 116, 300));
  CHECK(lost(kivi2, 116, 300) > 2 * lost(kivi4, 116, 300));
  CHECK(lost({f16, q8_0}, 116, 300) < lost(q8_0, 116, 300));
  CHECK(lost({f16, q4_0}, 116, 300) < lost(q4_0, 116, 300));
}

}  // namespace mica::test::aging_test
