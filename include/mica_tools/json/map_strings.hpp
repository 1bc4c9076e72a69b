// SPDX-License-Identifier: Apache-2.0
//
// A JSON value with other strings in the same places.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace mica::io {

/// Replaces each string and each key by f(const std::string&). Recursive: for values of parse_json(), which
/// nest at most max_json_depth levels.
template <class Json, class F>
[[nodiscard]] Json map_strings(const Json& value, F&& f) {
  if (value.is_string()) return f(value.template get_ref<const std::string&>());
  if (!value.is_structured()) return value;
  Json out = value.is_array() ? Json::array() : Json::object();
  for (auto at = value.begin(); at != value.end(); ++at) {
    Json mapped = map_strings(*at, f);
    value.is_array() ? out.push_back(std::move(mapped)) : void(out[f(at.key())] = std::move(mapped));
  }
  return out;
}

}  // namespace mica::io
