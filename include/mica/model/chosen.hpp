// SPDX-License-Identifier: Apache-2.0
//
// The Transformer of programs: elements, storage, eviction and pager are chosen at run time, at the cost of a
// few comparisons for each call; kernels, formats and family stay types. Plans and runs are made from the
// same choices here.
#pragma once

#include "mica/kv/any_eviction.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/kv/elements.hpp"
#include "mica/model/choice.hpp"
#include "mica/model/transformer.hpp"
#include "mica/paging/any_pager.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace mica::model {

/// A Transformer whose KV elements, storage, eviction and pager are chosen at run time.
template <class Family, Allocator A, Executor E, class Formats = format::All>
using Chosen = Transformer<Family, WithKvElement<kv::AnyElements<>>, WithKv<kv::AnyStorage<>>,
                           WithEviction<kv::AnyEviction>, WithPager<paging::AnyPager<>>, WithAllocator<A>,
                           WithExecutor<E>, WithWeights<Formats>, WithRanks<ranks::Several<ranks::AnyLink>>>;

/// Tokens of a step of a head for multi-token prediction: its prompts are short, so that weights are read
/// often.
inline constexpr std::size_t mtp_chunk = 64;

/// The options of the head of a model with these options. It keeps all tokens.
[[nodiscard]] inline ModelOptions mtp_options(ModelOptions trunk) noexcept {
  trunk.mtp = true;
  trunk.chunk = std::min(trunk.chunk, mtp_chunk);
  trunk.logits_rows = 1;
  trunk.drafts = false;
  return trunk;
}
/// And its policies: weights in memory, no eviction, no file of old tokens.
[[nodiscard]] inline Choice mtp_choice(Choice trunk) noexcept {
  trunk.weights = paging::Choice::resident;
  trunk.weights_bytes = 0;
  trunk.evict = {};
  if (trunk.kv == kv::Choice::spilled) trunk.kv = kv::Choice::segmented;
  if (trunk.kv == kv::Choice::spilled_paged) trunk.kv = kv::Choice::paged;
  return trunk;
}

/// Makes a Chosen transformer. Raises as its constructor, and ErrorCode::usage for recent tokens in an
/// element that only old ones can have.
template <class T>
[[nodiscard]] T make_chosen(const gguf::Document& document, typename T::Executor& executor,
                            ModelOptions options, typename T::Allocator allocator, const Choice& choice) {
  options.fast8 = choice.fast8;
  const auto pager = [&](const paging::Table& table, typename T::Allocator a, LogSink log) {
    return typename T::Pager(table, a, log, choice.weights, choice.weights_bytes);
  };
  const auto storage = [kv = choice.kv](typename T::Allocator a, std::span<const kv::LayerShape> layers,
                                        std::size_t n_ctx) {
    return typename T::Storage(a, layers, n_ctx, kv);
  };
  return T(document, executor, options,
           {.allocator = allocator,
            .elements = kv::AnyElements<>(choice.cache_type_k, choice.cache_type_v, choice.cache_recent),
            .pager = pager,
            .eviction = choice.evict,
            .storage = storage,
            .ranks = choice.ranks});
}

}  // namespace mica::model
