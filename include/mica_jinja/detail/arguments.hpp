// SPDX-License-Identifier: Apache-2.0
//
// What a call, filter or test was given, and how it is matched to the names that the callee knows.
#pragma once

#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// Arguments of one call. find and bind point into them, so a temporary has neither.
struct Arguments {
  std::vector<Value> positional;
  Value::Entries keyword;  ///< by name

  [[nodiscard]] bool empty() const noexcept { return positional.empty() && keyword.empty(); }

  /// The last keyword argument of that name, or null.
  [[nodiscard]] const Value* find(std::string_view name) const& {
    for (std::size_t i = keyword.size(); i-- > 0;) {
      if (keyword[i].first.text() == name) return &keyword[i].second;
    }
    return nullptr;
  }
  void find(std::string_view name) const&& = delete;

  /// Arguments in the order of the callee's names; null for those that were not given.
  /// Throws TemplateError for too many, unknown and doubled arguments.
  template <std::size_t N>
  [[nodiscard]] std::array<const Value*, N> bind(std::string_view callee,
                                                 const std::string_view (&names)[N]) const& {
    if (positional.size() > N) {
      fail("'", callee, "' takes at most ", N, " arguments, ", positional.size(), " were given");
    }
    std::array<const Value*, N> bound{};
    for (std::size_t i = 0; i < positional.size(); ++i) bound[i] = &positional[i];
    for (const auto& [key, value] : keyword) {
      const std::string_view name = key.text();
      std::size_t at = 0;
      while (at < N && names[at] != name) ++at;
      if (at == N) fail("'", callee, "' knows no argument '", name, "'");
      if (bound[at] != nullptr) fail("'", callee, "' was given the argument '", name, "' twice");
      bound[at] = &value;
    }
    return bound;
  }
  template <std::size_t N>
  void bind(std::string_view callee, const std::string_view (&names)[N]) const&& = delete;

  void expect_none(std::string_view callee) const {
    if (!empty()) fail("'", callee, "' takes no arguments");
  }
};

}  // namespace mica::jinja::detail
