// SPDX-License-Identifier: Apache-2.0
//
// The minimal class of every axis, alone and all at once: a Transformer asks of its policies what their
// concepts say, and nothing more.

#include "archetype/allocator.hpp"
#include "archetype/arch.hpp"
#include "archetype/block.hpp"
#include "archetype/eviction.hpp"
#include "archetype/executor.hpp"
#include "archetype/family.hpp"
#include "archetype/integer_format.hpp"
#include "archetype/kernels.hpp"
#include "archetype/kv_element.hpp"
#include "archetype/kv_storage.hpp"
#include "archetype/observer.hpp"
#include "archetype/pager.hpp"
#include "archetype/ranks.hpp"
#include "archetype/weight_format.hpp"
#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/llama.hpp"
#include "mica/kv/contiguous.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::transformer_test {
namespace {

static_assert(KvStorageFor<archetype::KvStorage<archetype::Allocator>, archetype::Allocator>);
static_assert(PagerFor<archetype::Pager<archetype::Allocator>, archetype::Allocator>);

// The default policies, but for the element: the archetype keeps all of a float.
using Default = Transformer<arch::Llama, WithKvElement<format::F32>>;

template <class... With>
using Changed = Default::With<With...>;

template <class Model>
std::vector<float> run(const TinyModel& tiny, typename Model::Parts parts = {}) {
  typename Model::Executor executor;
  const ModelOptions options{.n_ctx = 0, .chunk = 32, .logits_rows = 32, .log = {}};
  Model model(tiny.document(), executor, options, std::move(parts));
  auto cache = model.make_cache();
  return feed(model, cache, random_ids(40, model.config().n_vocab), 32);
}

/// A tiny model of the family that archetype/family.hpp adds.
Recipe pebble(std::size_t window) {
  Recipe recipe;
  recipe.format = format::F16::id;
  recipe.edit = [=](gguf::Writer& writer) {
    writer.set("general.architecture", "pebble");
    const auto number = [&](std::string_view key, std::size_t value) {
      writer.set(join("pebble.", key), static_cast<std::uint32_t>(value));
    };
    number("block_count", 2);
    number("context_length", 700);
    number("embedding_length", 50);
    number("feed_forward_length", 70);
    number("attention.head_count", 6);
    number("attention.head_count_kv", 2);
    number("attention.key_length", 10);
    number("attention.value_length", 10);
    number("attention.sliding_window", window);
    writer.set("pebble.attention.layer_norm_rms_epsilon", 1e-5f);
  };
  return recipe;
}

}  // namespace

TEST_CASE("each archetype alone computes the bits of the default policies") {
  const TinyModel tiny({.format = format::F16::id});
  const auto expected = run<Default>(tiny);
  CHECK(same_bits(expected, run<Changed<WithExecutor<archetype::Executor>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithKernels<archetype::Kernels>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithKvElement<archetype::KvElement>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithKv<archetype::KvStorage<alloc::Huge>>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithPager<archetype::Pager<alloc::Huge>>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithWeights<archetype::WeightFormat>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithEviction<archetype::Eviction>>>(tiny)));  // nothing must go
  CHECK(same_bits(expected, run<Changed<WithObserver<archetype::Observer>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithRanks<archetype::Ranks>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithRanks<ranks::Several<archetype::RankLink>>>>(tiny)));
  CHECK(same_bits(expected, run<Transformer<archetype::Arch, WithKvElement<format::F32>>>(tiny)));
  CHECK(same_bits(expected, run<Transformer<archetype::ArchWithBlock, WithKvElement<format::F32>>>(tiny)));
  std::size_t blocks = 0;
  CHECK(same_bits(expected, run<Changed<WithAllocator<archetype::Allocator>>>(
                                tiny, {.allocator = archetype::Allocator(blocks)})));
  CHECK(blocks == 0);
}

TEST_CASE("all archetypes together compute the bits of the default policies") {
  using Least =
      Transformer<archetype::Arch, WithExecutor<archetype::Executor>, WithKernels<archetype::Kernels>,
                  WithKvElement<archetype::KvElement>, WithAllocator<archetype::Allocator>,
                  WithKv<archetype::KvStorage<archetype::Allocator>>,
                  WithPager<archetype::Pager<archetype::Allocator>>, WithWeights<archetype::WeightFormat>,
                  WithEviction<archetype::Eviction>, WithObserver<archetype::Observer>,
                  WithRanks<archetype::Ranks>>;
  const TinyModel tiny({.format = format::F16::id});
  std::size_t blocks = 0;
  CHECK(same_bits(run<Default>(tiny), run<Least>(tiny, {.allocator = archetype::Allocator(blocks)})));
  CHECK(blocks == 0);
}

TEST_CASE("the minimal observer counts what a model shows it") {
  const TinyModel tiny({.format = format::F16::id});
  exec::Inline executor;
  Changed<WithObserver<archetype::Observer>> model(tiny.document(), executor, {.chunk = 32, .log = {}});
  archetype::Observer observer;
  model.observe(&observer);
  auto cache = model.make_cache();
  for (int i = 0; i < 3; ++i) REQUIRE(model.step(cache, random_ids(20, 67)) == model::StepStatus::ok);
  CHECK(observer.layers == 3 * 2);
  CHECK(observer.products == 3 * 2 * 7);  // q, k, v, output; gate, up, down
}

TEST_CASE("a family of the user's own runs alone, and from a list with others") {
  const TinyModel narrow(pebble(7)), wide(pebble(40)), wider(pebble(600)), llama({.format = format::F16::id});
  using Own = Transformer<archetype::Family, WithKvElement<format::F32>>;
  using Any = Transformer<arch::AnyOf<TypeList<arch::Llama, archetype::Family>>, WithKvElement<format::F32>>;
  const auto seen = run<Own>(narrow), all = run<Own>(wide);  // 40 tokens
  CHECK(same_bits(all, run<Own>(wider)));
  CHECK(same_bits(std::span(seen).first(7 * 67), std::span(all).first(7 * 67)));
  CHECK_FALSE(same_bits(std::span(seen).subspan(7 * 67, 67), std::span(all).subspan(7 * 67, 67)));
  CHECK(same_bits(seen, run<Any>(narrow)));
  CHECK(same_bits(run<Default>(llama), run<Any>(llama)));
  CHECK_FALSE(same_bits(all, run<Any>(llama)));  // its embeddings are scaled
}

TEST_CASE("a model without a block that its file needs names the block") {
  const TinyModel tiny({.format = format::F16::id});
  exec::Inline executor;
  using Short =
      Transformer<archetype::ArchWithBlock, WithBlocks<TypeList<block::Attention, block::DenseFeedForward>>>;
  const Error error = refusal([&] { return Short(tiny.document(), executor); });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "layer 0", "'minimal'", "attention, dense feed-forward", "WithBlocks"));
}

TEST_CASE("an integer format of the user's own computes the bits of the format it copies") {
  const TinyModel tiny(blocks_of(format::Q8_0::id));
  using Own = Changed<WithWeights<archetype::IntegerFormat>>;
  CHECK(same_bits(run<Default>(tiny), run<Own>(tiny)));
}

// Equal choices are one type.
using A = Transformer<arch::Llama, WithKv<kv::Contiguous<>>, WithKvElement<format::Q8_0>>;
static_assert(
    std::same_as<A, Transformer<arch::Llama, WithKvElement<format::Q8_0>, WithKv<kv::Contiguous<>>>>);
static_assert(std::same_as<A, A::With<WithExecutor<exec::Inline>, WithKv<kv::Contiguous<alloc::Aligned>>>>);
static_assert(std::same_as<A, A::With<WithKvElement<kv::Fixed<format::Q8_0>>, WithWeights<format::All>>>);
static_assert(std::same_as<A::With<WithKv<kv::Segmented<>>, WithKvElement<format::F32>>, Default>);
static_assert(std::same_as<A, A::With<WithBlocks<arch::Llama::Blocks>>>);
static_assert(std::same_as<Default::With<WithWeights<format::Q4_0>>,
                           Default::With<WithWeights<TypeList<format::Q4_0>>>>);
static_assert(
    std::same_as<A::With<WithAllocator<alloc::Counting>>::Storage, kv::Contiguous<alloc::Counting>>);

}  // namespace mica::test::transformer_test
