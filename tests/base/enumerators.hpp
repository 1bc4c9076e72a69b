// SPDX-License-Identifier: Apache-2.0
//
// The names of enumerators, as the compiler spells them: a list of types and the enumeration of its members
// are compared when they are compiled.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace mica::test {

/// "paged" for Choice::paged; for a number without an enumerator, a text with a parenthesis.
template <auto value>
[[nodiscard]] constexpr std::string_view enumerator_name() noexcept {
  std::string_view text = __PRETTY_FUNCTION__;  // "... [with auto value = mica::kv::Choice::paged; ...]"
  text = text.substr(text.find("value = "));
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

/// Whether Enum has an enumerator for each name, in this order, and none after them. An enumerator is spelt
/// in lower case, and with _ for -.
template <class Enum, std::size_t n>
[[nodiscard]] constexpr bool enumerators_are(const std::array<std::string_view, n>& names) noexcept {
  const auto spelt = [](char c) {
    return c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const auto same = [&](std::string_view enumerator, std::string_view name) {
    return std::equal(enumerator.begin(), enumerator.end(), name.begin(), name.end(),
                      [&](char a, char b) { return a == spelt(b); });
  };
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return (same(enumerator_name<static_cast<Enum>(i)>(), names[i]) && ...) &&
           enumerator_name<static_cast<Enum>(n)>().find(')') != std::string_view::npos;
  }
  (std::make_index_sequence<n>{});
}

}  // namespace mica::test
