// SPDX-License-Identifier: Apache-2.0
//
// Policies change where bytes lie and who computes, never a bit of the answer.

#include "mica/alloc/aligned.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/paging/any_pager.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::same_bits_test {
namespace {

using Plain = Transformer<arch::Llama>;

/// Logits of all ids, fed in chunks through a model of its own.
template <class Model>
std::vector<float> run(const TinyModel& tiny, std::span<const text::TokenId> ids, std::size_t chunk,
                       typename Model::Executor& executor) {
  Model model(tiny.document(), executor, {.n_ctx = 700, .chunk = chunk, .logits_rows = chunk, .log = {}});
  auto cache = model.make_cache();
  return feed(model, cache, ids, chunk);
}

template <class... With>
std::vector<float> run_with(const TinyModel& tiny, std::span<const text::TokenId> ids, std::size_t chunk) {
  exec::Inline executor;
  return run<Transformer<arch::Llama, With...>>(tiny, ids, chunk, executor);
}

/// A recipe for each way in which weights are computed with, and how many ids it runs over. The float model is
/// small enough to pass the boundary of an attention chunk; the others stay below it.
struct Subject {
  Recipe recipe;
  std::size_t tokens;
};

std::vector<Subject> subjects() {
  std::vector<Subject> out = {{Recipe{}, 300}};
  for (const auto id :
       {format::Q8_0::id, format::Q4_0::id, format::Q4_K::id, format::Q6_K::id, format::BF16::id}) {
    Subject subject{blocks_of(id), 40};
    subject.recipe.layers = 1;
    subject.recipe.tied = id == format::Q6_K::id;
    out.push_back(subject);
  }
  return out;
}

}  // namespace

TEST_CASE("threads, chunks, storages and pagers give the same bits") {
  for (const Subject& subject : subjects()) {
    const Recipe& recipe = subject.recipe;
    const std::size_t tokens = subject.tokens;
    CAPTURE(format::name(recipe.format));
    const TinyModel tiny(recipe);
    const auto ids = random_ids(tokens, recipe.n_vocab);
    const auto expected = run_with<>(tiny, ids, 512);
    REQUIRE(expected.size() == tokens * recipe.n_vocab);
    CHECK(std::isfinite(*std::max_element(expected.begin(), expected.end())));

    for (const std::size_t chunk : {1u, 7u, 100u}) {
      CAPTURE(chunk);
      CHECK(same_bits(expected, run_with<>(tiny, ids, chunk)));
    }
    for (const std::size_t threads : {1u, 2u, 3u}) {
      CAPTURE(threads);
      exec::Team team(threads);
      using Threaded = Transformer<arch::Llama, WithExecutor<exec::Team>>;
      CHECK(same_bits(expected, run<Threaded>(tiny, ids, 512, team)));
      CHECK(same_bits(expected, run<Threaded>(tiny, ids, 7, team)));
    }
    CHECK(same_bits(expected, run_with<WithKv<kv::Contiguous<>>>(tiny, ids, 512)));
    CHECK(same_bits(expected, run_with<WithKv<kv::Contiguous<>>>(tiny, ids, 1)));
    CHECK(same_bits(expected, run_with<WithKv<kv::AnyStorage<>>>(tiny, ids, 512)));
    CHECK(same_bits(expected, run_with<WithPager<paging::Resident<>>>(tiny, ids, 512)));
    CHECK(same_bits(expected, run_with<WithPager<paging::AnyPager<>>>(tiny, ids, 512)));
    CHECK(same_bits(expected, run_with<WithAllocator<alloc::Aligned>>(tiny, ids, 512)));
    CHECK(same_bits(expected, run_with<WithKernels<kernel::Scalar>>(tiny, ids, 512)));
  }
}

TEST_CASE("every KV element gives the same bits for one token at a time and for many") {
  const TinyModel tiny({.layers = 1});
  const auto ids = random_ids(40, 67);
  format::AllKv::for_each([&](auto type) {
    using Element = typename decltype(type)::type;
    CAPTURE(Element::name);
    CHECK(same_bits(run_with<WithKvElement<Element>>(tiny, ids, 512),
                    run_with<WithKvElement<Element>>(tiny, ids, 1)));
  });
  exec::Inline executor;
  using Any = Transformer<arch::Llama, WithKvElement<kv::AnyElements<>>>;
  using Fixed = Transformer<arch::Llama, WithKvElement<kv::Fixed<format::Q8_0, format::F16>>>;
  Any any(tiny.document(), executor, {.n_ctx = 64, .chunk = 40, .logits_rows = 40, .log = {}},
          {.elements = kv::AnyElements<>(kv::Element::q8_0, kv::Element::f16)});
  auto cache = any.make_cache();
  CHECK(same_bits(feed(any, cache, ids, 40), run<Fixed>(tiny, ids, 40, executor)));
}

TEST_CASE("a fused bias gives the bits of the biases that it is made of") {
  const auto with_biases = [](bool fused) {
    Recipe recipe;
    recipe.edit = [fused](gguf::Writer& writer) {
      for (std::size_t i = 0; i < 2; ++i) {
        std::vector<float> all(60 + 20 + 20);
        CounterRng rng(5 + i);
        for (float& x : all) x = static_cast<float>(rng.uniform() - 0.5);
        const auto add = [&](std::string_view part, std::size_t first, std::size_t n) {
          const std::vector<float> part_of(all.begin() + static_cast<std::ptrdiff_t>(first),
                                           all.begin() + static_cast<std::ptrdiff_t>(first + n));
          writer.add(arch::tensor_names::layer_bias(i, part), format::F32::id, {n},
                     [=](const gguf::Sink& sink) { sink(std::as_bytes(std::span(part_of))); });
        };
        if (fused) {
          add("attn_qkv", 0, 100);
        } else {
          add("attn_q", 0, 60);
          add("attn_k", 60, 20);
          add("attn_v", 80, 20);
        }
      }
    };
    return recipe;
  };
  const auto ids = random_ids(20, 67);
  const auto apart = run_with<>(TinyModel(with_biases(false)), ids, 20);
  CHECK(same_bits(apart, run_with<>(TinyModel(with_biases(true)), ids, 20)));
  CHECK_FALSE(same_bits(apart, run_with<>(TinyModel(Recipe{}), ids, 20)));
}

TEST_CASE("fused tensors give the bits of the tensors that they are made of") {
  for (const format::Id format : {format::F32::id, format::Q4_K::id}) {
    CAPTURE(format::name(format));
    const Recipe recipe = format == format::F32::id ? Recipe{} : blocks_of(format);
    const TinyModel plain(recipe);
    Recipe fused = recipe;
    const auto fuse = [&](std::size_t layer, std::string_view whole, const std::vector<std::string>& parts) {
      std::vector<std::byte> bytes;
      std::uint64_t rows = 0;
      for (const std::string& part : parts) {
        const std::string name = arch::tensor_names::layer(layer, part);
        const gguf::TensorInfo& tensor = plain.document().tensor(name);
        const auto first = plain.bytes().begin() + static_cast<std::ptrdiff_t>(tensor.offset);
        bytes.insert(bytes.end(), first, first + static_cast<std::ptrdiff_t>(tensor.bytes));
        rows += tensor.rows();
        fused.without.insert(name);
      }
      const auto before = fused.edit;
      fused.edit = [=, name = arch::tensor_names::layer(layer, whole)](gguf::Writer& writer) {
        if (before) before(writer);
        writer.add(name, format, {recipe.width, rows}, [=](const gguf::Sink& sink) { sink(bytes); });
      };
    };
    for (std::size_t i = 0; i < recipe.layers; ++i) {
      fuse(i, "attn_qkv", {"attn_q", "attn_k", "attn_v"});
      fuse(i, "ffn_up", {"ffn_gate", "ffn_up"});
    }
    const auto ids = random_ids(20, 67);
    CHECK(same_bits(run_with<>(plain, ids, 20), run_with<>(TinyModel(fused), ids, 20)));
  }
}

TEST_CASE("rewinding and going on equals a fresh cache") {
  const TinyModel tiny{Recipe{}};
  const auto ids = random_ids(300, 67), other = random_ids(20, 67, 8);
  exec::Inline executor;
  const auto check = [&](auto& model) {
    for (const std::size_t keep : {0u, 1u, 15u, 16u, 17u, 255u, 256u, 299u}) {
      CAPTURE(keep);
      auto cache = model.make_cache(), fresh = model.make_cache();
      static_cast<void>(feed(model, cache, ids, 64));
      cache.rewind(keep);
      static_cast<void>(feed(model, fresh, std::span(ids).first(keep), 64));
      CHECK(same_bits(feed(model, cache, other, 64), feed(model, fresh, other, 64)));
    }
  };
  const ModelOptions options{.n_ctx = 700, .chunk = 64, .logits_rows = 64, .log = {}};
  Plain segmented(tiny.document(), executor, options);
  check(segmented);
  Plain::With<WithKv<kv::Contiguous<>>> contiguous(tiny.document(), executor, options);
  check(contiguous);
}

TEST_CASE("logits of chosen rows are the logits of all rows at those places") {
  const TinyModel tiny{Recipe{}};
  const auto ids = random_ids(30, 67);
  exec::Inline executor;
  Plain model(tiny.document(), executor, {.n_ctx = 64, .chunk = 30, .logits_rows = 30, .log = {}});
  auto cache = model.make_cache();
  const auto all = feed(model, cache, ids, 30);
  const std::vector<std::size_t> rows = {29, 3, 3, 0};
  const auto some = model.logits(rows);
  REQUIRE(some.rows() == rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r)
    CHECK(same_bits(some[r], std::span(all).subspan(rows[r] * 67, 67)));
}

TEST_CASE("more rows of logits than a step holds tokens are computed in turns") {
  const TinyModel tiny{Recipe{}};
  const auto ids = random_ids(4, 67);
  exec::Inline executor;
  Plain model(tiny.document(), executor, {.n_ctx = 64, .chunk = 4, .logits_rows = 11, .log = {}});
  auto cache = model.make_cache();
  const auto all = feed(model, cache, ids, 4);
  const std::vector<std::size_t> rows = {0, 1, 2, 3, 0, 1, 2, 3, 2, 2, 1};
  const auto many = model.logits(rows);
  for (std::size_t r = 0; r < rows.size(); ++r)
    CHECK(same_bits(many[r], std::span(all).subspan(rows[r] * 67, 67)));
}

TEST_CASE("two caches of one model do not know of each other") {
  const TinyModel tiny{Recipe{}};
  const auto a = random_ids(20, 67, 1), b = random_ids(20, 67, 2);
  exec::Inline executor;
  Plain model(tiny.document(), executor, {.n_ctx = 64, .chunk = 1, .logits_rows = 1, .log = {}});
  auto cache_a = model.make_cache(), cache_b = model.make_cache(), alone = model.make_cache();
  std::vector<float> mixed;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto row = feed(model, cache_a, std::span(a).subspan(i, 1), 1);
    mixed.insert(mixed.end(), row.begin(), row.end());
    static_cast<void>(feed(model, cache_b, std::span(b).subspan(i, 1), 1));
  }
  CHECK(same_bits(mixed, feed(model, alone, a, 1)));
}

}  // namespace mica::test::same_bits_test
