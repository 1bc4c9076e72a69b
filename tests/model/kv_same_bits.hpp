// SPDX-License-Identifier: Apache-2.0
//
// Models on a KV storage or a KV element, any: those of the library, and yours. Where keys and values lie
// changes no bit of an answer; how they are rounded does, but not with chunks, threads, kernels and storages.
// In a test case of doctest:
//
//   check_same_bits_on<MyStorage<>>();      check_same_bits_with<MyElement>();
//
// Weights are random numbers: a family with all tokens in all layers, one with windows and shared keys, and
// one with recurrent layers.

#pragma once

#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/contiguous.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"
#include "model/windowed_family.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace mica::test {

/// Logits of all ids, in steps of `chunk`, by a model of its own.
template <class Model>
std::vector<float> logits_of_all(const gguf::Document& document, std::span<const text::TokenId> ids,
                                 std::size_t chunk, std::size_t threads) {
  exec::Team team(threads);
  using Threaded = typename Model::template With<WithExecutor<exec::Team>>;
  Threaded model(document, team, {.n_ctx = 700, .chunk = chunk, .logits_rows = chunk, .log = {}});
  auto cache = model.make_cache();
  return feed(model, cache, ids, chunk);
}

/// Runs, goes back and runs on, on a storage and on a contiguous one.
template <class Model, class Storage>
void compare_storages(const gguf::Document& document) {
  using Own = typename Model::template With<WithKv<Storage>, WithExecutor<exec::Team>>;
  using Plain = typename Model::template With<WithKv<kv::Contiguous<>>, WithExecutor<exec::Team>>;
  exec::Team team(2);
  const auto ids = random_ids(330, 67), other = random_ids(40, 67, 4);
  for (const std::size_t chunk : {1u, 7u, 64u}) {
    CAPTURE(chunk);
    const ModelOptions options{.n_ctx = 700, .chunk = chunk, .logits_rows = chunk, .log = {}};
    Own own(document, team, options);
    Plain plain(document, team, options);
    auto cache = own.make_cache();
    auto expected = plain.make_cache();
    CHECK(same_bits(feed(own, cache, ids, chunk), feed(plain, expected, ids, chunk)));
    for (const std::size_t count : {320u, 257u, 64u, 5u, 0u}) {
      CAPTURE(count);
      // A storage may keep more or less of a window than another one: what it has lost is run again.
      const std::size_t resident = cache.rewind(count), there = expected.rewind(count);
      static_cast<void>(feed(own, cache, std::span(ids).subspan(resident, count - resident), chunk));
      static_cast<void>(feed(plain, expected, std::span(ids).subspan(there, count - there), chunk));
      CHECK(same_bits(feed(own, cache, other, chunk), feed(plain, expected, other, chunk)));
      static_cast<void>(cache.rewind(0));
      static_cast<void>(expected.rewind(0));
      static_cast<void>(feed(own, cache, ids, chunk));
      static_cast<void>(feed(plain, expected, ids, chunk));
    }
  }
}

/// A storage of any allocator.
template <class Storage>
void check_same_bits_on() {
  const TinyModel dense({.layers = 1}), windows({.layers = 4});
  const TinyHybrid hybrid{HybridRecipe{}};
  compare_storages<Transformer<arch::Llama>, Storage>(dense.document());
  compare_storages<Transformer<Windowed<20>>, Storage>(windows.document());
  compare_storages<Hybrid, Storage>(hybrid.document());
}

/// Chunks, threads and kernels of one element.
template <class Model>
void compare_steps(const gguf::Document& document) {
  const auto ids = random_ids(300, 67);
  const auto expected = logits_of_all<Model>(document, ids, 100, 1);
  CHECK(std::isfinite(*std::max_element(expected.begin(), expected.end())));
  CHECK(same_bits(expected, logits_of_all<Model>(document, ids, 1, 1)));
  CHECK(same_bits(expected, logits_of_all<Model>(document, ids, 7, 3)));
  using Specified = typename Model::template With<WithKernels<kernel::Scalar>>;
  CHECK(same_bits(expected, logits_of_all<Specified>(document, ids, 100, 2)));
}

template <class Element>
void check_same_bits_with() {
  const TinyModel dense({.layers = 1}), windows({.layers = 4});
  const TinyHybrid hybrid{HybridRecipe{}};
  compare_steps<Transformer<arch::Llama, WithKvElement<Element>>>(dense.document());
  compare_steps<Transformer<Windowed<20>, WithKvElement<Element>>>(windows.document());
  compare_steps<Hybrid::With<WithKvElement<Element>>>(hybrid.document());
}

}  // namespace mica::test
