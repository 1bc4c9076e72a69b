// SPDX-License-Identifier: Apache-2.0
//
// From the words of flags to choices of the library. Flags have checked the words already.
#pragma once

#include "mica/kv/any_storage.hpp"
#include "mica/model/choice.hpp"
#include "mica/paging/any_pager.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace mica::program {

struct ChoiceWords {
  std::string kv = "segmented";
  std::string evict = "none";
  std::string weights = "resident";
  std::string cache_type_k = "F16";
  std::string cache_type_v = "F16";
  std::size_t cache_recent = 128;
  std::string kernels = "exact";
};

/// The enumerator at the index of a word in `names`.
template <class Choice, class Names>
[[nodiscard]] Choice choice_at(const Names& names, std::string_view word) {
  return static_cast<Choice>(std::find(names.begin(), names.end(), word) - names.begin());
}

[[nodiscard]] inline model::Choice choice_of(const ChoiceWords& words) {
  return {.kv = choice_at<kv::Choice>(kv::choice_names(), words.kv),
          .evict = kv::AnyEviction(words.evict),
          .weights = choice_at<paging::Choice>(paging::choice_names(), words.weights),
          .cache_type_k = words.cache_type_k,
          .cache_type_v = words.cache_type_v,
          .cache_recent = words.cache_recent,
          .fast8 = words.kernels == "fast8"};
}

}  // namespace mica::program
