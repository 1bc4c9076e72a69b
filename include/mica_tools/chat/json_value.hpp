// SPDX-License-Identifier: Apache-2.0
//
// JSON documents as values for chat templates. The only header of the room that needs nlohmann/json; include
// it in one .cpp of a program. Use nlohmann::ordered_json: the order of keys shows in what templates write.
#pragma once

#include "mica/base/error.hpp"
#include "mica_jinja/value.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mica::text {

namespace detail {

template <class Json>
jinja::Value value_of_json(const Json& json, std::size_t depth) {
  using Type = nlohmann::json::value_t;
  if (json.is_structured() && depth == jinja::max_container_depth) {  // one more could not become a value
    raise(ErrorCode::limit, "chat template: JSON nests deeper than ", jinja::max_container_depth);
  }
  switch (json.type()) {
    case Type::boolean:
      return json.template get<bool>();
    case Type::number_integer:
      return json.template get<std::int64_t>();
    case Type::number_unsigned:
      break;
    case Type::number_float:
      return json.template get<double>();
    case Type::string:
      return json.template get<std::string>();
    case Type::array: {
      std::vector<jinja::Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(value_of_json(item, depth + 1));
      return jinja::Value::list(std::move(items));
    }
    case Type::object: {
      jinja::Value::Entries entries;
      entries.reserve(json.size());
      for (const auto& [key, value] : json.items())
        entries.emplace_back(key, value_of_json(value, depth + 1));
      return jinja::Value::mapping(std::move(entries));
    }
    default:
      return nullptr;
  }
  const auto number = json.template get<std::uint64_t>();
  if (number > static_cast<std::uint64_t>(INT64_MAX)) return static_cast<double>(number);
  return static_cast<std::int64_t>(number);
}

}  // namespace detail

/// The document as a value for a template. Raises Error when it nests deeper than values may.
/// Limit: integers above the 63rd bit become floats.
template <class Json>
[[nodiscard]] jinja::Value value_of_json(const Json& json) {
  return detail::value_of_json(json, 0);
}

}  // namespace mica::text
