// SPDX-License-Identifier: Apache-2.0
//
// The least class of every axis, alone and all at once: a Transformer asks of its policies what their concepts
// say, and nothing more.

#include "archetype/allocator.hpp"
#include "archetype/arch.hpp"
#include "archetype/executor.hpp"
#include "archetype/integer_format.hpp"
#include "archetype/kernels.hpp"
#include "archetype/kv_element.hpp"
#include "archetype/kv_storage.hpp"
#include "archetype/pager.hpp"
#include "archetype/weight_format.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/arch/llama.hpp"
#include "mica/kv/contiguous.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

namespace mica::test {
namespace {

static_assert(KvStorageFor<archetype::KvStorage<archetype::Allocator>, archetype::Allocator>);
static_assert(PagerFor<archetype::Pager<archetype::Allocator>, archetype::Allocator>);

// The default policies, but for the element: the archetype keeps all of a float.
using Default = Transformer<arch::Llama, WithKvElement<format::F32>>;

template <class... With>
using Changed = Default::With<With...>;

template <class Model, class... Args>
std::vector<float> run(const TinyModel& tiny, Args&&... args) {
  typename Model::Executor executor;
  const ModelOptions options{.n_ctx = 0, .chunk = 32, .logits_rows = 32, .log = {}};
  Model model(tiny.document(), executor, options, std::forward<Args>(args)...);
  auto cache = model.make_cache();
  return feed(model, cache, random_ids(40, model.config().n_vocab), 32);
}

}  // namespace

TEST_CASE("each archetype alone computes the bits of the default policies") {
  const TinyModel tiny({.format = format::Id::F16});
  const auto expected = run<Default>(tiny);
  CHECK(same_bits(expected, run<Changed<WithExecutor<archetype::Executor>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithKernels<archetype::Kernels>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithKvElement<archetype::KvElement>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithKv<archetype::KvStorage<alloc::Huge>>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithPager<archetype::Pager<alloc::Huge>>>>(tiny)));
  CHECK(same_bits(expected, run<Changed<WithWeights<archetype::WeightFormat>>>(tiny)));
  CHECK(same_bits(expected, run<Transformer<archetype::Arch, WithKvElement<format::F32>>>(tiny)));
  std::size_t blocks = 0;
  CHECK(same_bits(expected,
                  run<Changed<WithAllocator<archetype::Allocator>>>(tiny, archetype::Allocator(blocks))));
  CHECK(blocks == 0);
}

TEST_CASE("all archetypes together compute the bits of the default policies") {
  using Least =
      Transformer<archetype::Arch, WithExecutor<archetype::Executor>, WithKernels<archetype::Kernels>,
                  WithKvElement<archetype::KvElement>, WithAllocator<archetype::Allocator>,
                  WithKv<archetype::KvStorage<archetype::Allocator>>,
                  WithPager<archetype::Pager<archetype::Allocator>>, WithWeights<archetype::WeightFormat>>;
  const TinyModel tiny({.format = format::Id::F16});
  std::size_t blocks = 0;
  CHECK(same_bits(run<Default>(tiny), run<Least>(tiny, archetype::Allocator(blocks))));
  CHECK(blocks == 0);
}

TEST_CASE("an integer format of the user's own computes the bits of the format it copies") {
  const TinyModel tiny(blocks_of(format::Id::Q8_0));
  using Own = Changed<WithWeights<archetype::IntegerFormat>>;
  CHECK(same_bits(run<Default>(tiny), run<Own>(tiny)));
}

TEST_CASE("the order of policies does not matter, and the last of an axis wins") {
  using A = Transformer<arch::Llama, WithKv<kv::Contiguous<>>, WithKvElement<format::Q8_0>>;
  using B = Transformer<arch::Llama, WithKvElement<format::F32>, WithKvElement<format::Q8_0>,
                        WithKv<kv::Contiguous<>>>;
  static_assert(std::is_same_v<A::Storage, B::Storage> && std::is_same_v<A::Elements, B::Elements>);
  using C = A::With<WithKv<kv::Segmented<>>>;
  static_assert(std::is_same_v<C::Storage, Default::Storage> && std::is_same_v<C::Elements, A::Elements>);
  using D = A::With<WithAllocator<alloc::Counting>>;
  static_assert(std::is_same_v<D::Storage, kv::Contiguous<alloc::Counting>> && D::dry && !A::dry);
}

}  // namespace mica::test
