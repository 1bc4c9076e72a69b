// SPDX-License-Identifier: Apache-2.0
//
// Numbers that other tools keep by the name of a quantisation.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace mica::fit::detail {

/// A name and its number.
struct Named {
  std::string_view name;
  double number;
};

/// The number of that name, or `otherwise`.
template <std::size_t N>
[[nodiscard]] constexpr double number_of(std::string_view name, const std::array<Named, N>& table,
                                         double otherwise) noexcept {
  for (const Named& each : table) {
    if (each.name == name) return each.number;
  }
  return otherwise;
}

}  // namespace mica::fit::detail
