// SPDX-License-Identifier: Apache-2.0
//
// Equality of JSON values as JSON Schema has it: numbers by their values, objects in any order of members.
#pragma once

#include "mica_tools/schema/decimal.hpp"
#include "mica_tools/schema/document.hpp"

#include <algorithm>

namespace mica::schema {

/// Whether two values are equal.
[[nodiscard]] inline bool equal(const Json& a, const Json& b) {
  if (a.is_object() && b.is_object()) {
    return a.size() == b.size() && std::all_of(a.items().begin(), a.items().end(), [&](const auto& member) {
             const auto other = b.find(member.key());
             return other != b.end() && equal(member.value(), *other);
           });
  }
  if (a.is_array() && b.is_array())
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) { return equal(x, y); });
  if (a.is_number_float() || b.is_number_float())
    return a.is_number() && b.is_number() && decimal_of(a) == decimal_of(b);
  return a == b;
}

}  // namespace mica::schema
