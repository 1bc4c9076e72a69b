// SPDX-License-Identifier: Apache-2.0
//
// The ToolTypes of a list of tools as the APIs of OpenAI, Anthropic and Ollama describe them. Needs
// nlohmann/json.
#pragma once

#include "mica_tools/calls/tool_types.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace mica::calls {

namespace detail {

/// The schema itself, or the one that its $ref names in the same document; null if there is none.
template <class Json>
const Json* resolved(const Json& schema, const Json& root) {
  const auto ref = schema.find("$ref");
  if (ref == schema.end()) return &schema;
  const std::string text = ref->is_string() ? ref->template get<std::string>() : "";
  try {
    if (!text.starts_with('#')) return nullptr;
    const typename Json::json_pointer pointer(text.substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const typename Json::exception&) {
    return nullptr;
  }
}

/// Whether a string may satisfy the schema; true also where the schema does not say. Alternatives and
/// references are followed a few levels deep.
template <class Json>
bool may_be_string(const Json& unresolved, const Json& root, int levels = 4) {
  if (!unresolved.is_object() || levels == 0) return true;
  const Json* const found = resolved(unresolved, root);
  if (found == nullptr || !found->is_object()) return true;
  const Json& schema = *found;
  const auto is_string = [](const Json& value) { return value == "string"; };
  if (const auto type = schema.find("type"); type != schema.end())
    return type->is_array() ? std::any_of(type->begin(), type->end(), is_string) : is_string(*type);
  if (const auto only = schema.find("const"); only != schema.end()) return only->is_string();
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array())
    return std::any_of(values->begin(), values->end(), [](const Json& value) { return value.is_string(); });
  const auto may = [&](const Json& each) { return may_be_string(each, root, levels - 1); };
  for (const char* const name : {"anyOf", "oneOf"}) {
    const auto each = schema.find(name);
    if (each != schema.end() && each->is_array()) return std::any_of(each->begin(), each->end(), may);
  }
  const auto all = schema.find("allOf");
  return all == schema.end() || !all->is_array() || std::all_of(all->begin(), all->end(), may);
}

/// The part of an entry that has name and schema, or null: OpenAI and Ollama put it into "function".
template <class Json>
const Json* described_tool(const Json& entry) {
  if (!entry.is_object()) return nullptr;
  const auto function = entry.find("function");
  const Json& tool = function != entry.end() && function->is_object() ? *function : entry;
  const auto name = tool.find("name");
  return name != tool.end() && name->is_string() ? &tool : nullptr;
}

/// The schema of a tool's parameters, or null.
template <class Json>
const Json* parameters_of(const Json& tool) {
  for (const char* const name : {"parameters", "input_schema"}) {
    const auto schema = tool.find(name);
    if (schema != tool.end() && !schema->is_null()) return &*schema;
  }
  return nullptr;
}

}  // namespace detail

/// Reads names and parameters; what is not as the APIs describe it is left out.
template <class Json>
[[nodiscard]] std::vector<ToolTypes> tools_of_json(const Json& tools) {
  std::vector<ToolTypes> out;
  if (!tools.is_array()) return out;
  for (const Json& each : tools) {
    const Json* const tool = detail::described_tool(each);
    if (tool == nullptr) continue;
    ToolTypes types{tool->at("name").template get<std::string>()};
    const Json* const root = detail::parameters_of(*tool);
    const Json* const schema =
        root == nullptr || !root->is_object() ? nullptr : detail::resolved(*root, *root);
    const bool has_properties = schema != nullptr && schema->is_object() && schema->contains("properties");
    const Json properties = has_properties ? (*schema)["properties"] : Json::object();
    for (const auto& [key, value] : properties.items()) {
      if (!detail::may_be_string(value, *root)) types.json_parameters.push_back(key);
    }
    out.push_back(std::move(types));
  }
  return out;
}

}  // namespace mica::calls
