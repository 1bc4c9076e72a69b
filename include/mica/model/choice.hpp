// SPDX-License-Identifier: Apache-2.0
//
// The policies that a program chooses at run time. model/chosen.hpp makes a Transformer of them.
#pragma once

#include "mica/kv/any_eviction.hpp"
#include "mica/kv/choice.hpp"
#include "mica/paging/choice.hpp"
#include "mica/ranks/several.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::model {

struct Choice {
  kv::Choice kv = kv::Choice::segmented;              // the storage of keys and values
  kv::AnyEviction evict = {};                         // the policy of a full cache
  paging::Choice weights = paging::Choice::resident;  // the pager
  /// For streamed weights: resident ones, ring, experts. 0: the minimum; with open(), the rest of the budget.
  std::uint64_t weights_bytes = 0;
  kv::ElementChoice cache_type_k = {};        // of keys; F16 by default
  kv::ElementChoice cache_type_v = {};        // of values; F16 by default
  std::size_t cache_recent = 128;             // tokens that are not old, of elements that age
  bool fast8 = false;                         // products of many tokens follow kernel/fast8.hpp
  ranks::Several<ranks::AnyLink> ranks = {};  // which run the model together; their link outlives it
};

}  // namespace mica::model
