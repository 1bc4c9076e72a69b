// SPDX-License-Identifier: Apache-2.0
//
// From the words of flags to choices of the library. Flags have checked the words already.
#pragma once

#include "mica/base/error.hpp"
#include "mica/kv/any_eviction.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/kv/elements.hpp"
#include "mica/model/choice.hpp"
#include "mica/paging/any_pager.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

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

/// none, sinks:KEEP, sinks:KEEP,SINKS, heavy:KEEP or heavy:KEEP,RECENT, in tokens. Raises ErrorCode::usage for
/// other words, and what the policies raise.
[[nodiscard]] inline kv::AnyEviction parse_eviction(std::string_view words) {
  const std::size_t colon = words.find(':');
  const std::string_view kind = words.substr(0, colon);
  std::string_view rest = colon == words.npos ? std::string_view() : words.substr(colon);
  std::array<std::size_t, 2> numbers{};
  std::size_t count = 0;
  for (; count < numbers.size() && rest.starts_with(count == 0 ? ':' : ','); ++count) {
    const char* const end = rest.data() + rest.size();
    const auto [next, error] = std::from_chars(rest.data() + 1, end, numbers[count]);
    if (error != std::errc()) break;
    rest = {next, end};
  }
  if (rest.empty() && kind == kv::KeepAll::name && count == 0) return {};
  if (rest.empty() && kind == kv::SinksAndWindow::name && count > 0)
    return count == 1 ? kv::SinksAndWindow(numbers[0]) : kv::SinksAndWindow(numbers[0], numbers[1]);
  if (rest.empty() && kind == kv::HeavyHitters::name && count > 0)
    return kv::HeavyHitters(numbers[0], {.recent = numbers[1]});
  raise(
      ErrorCode::usage, "eviction '", escaped(words),
      "': not known; choose none, sinks:KEEP, sinks:KEEP,SINKS, heavy:KEEP or heavy:KEEP,RECENT, in tokens");
}

[[nodiscard]] inline model::Choice choice_of(const ChoiceWords& words) {
  return {.kv = choice_at<kv::Choice>(kv::choice_names, words.kv),
          .evict = parse_eviction(words.evict),
          .weights = choice_at<paging::Choice>(paging::choice_names, words.weights),
          .cache_type_k = kv::parse_elements(words.cache_type_k, "keys"),
          .cache_type_v = kv::parse_elements(words.cache_type_v, "values"),
          .cache_recent = words.cache_recent,
          .fast8 = words.kernels == "fast8"};
}

[[nodiscard]] inline kv::AnyElements<> elements_of(const model::Choice& choice) {
  return {choice.cache_type_k, choice.cache_type_v, choice.cache_recent};
}

}  // namespace mica::program
