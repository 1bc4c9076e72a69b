// SPDX-License-Identifier: Apache-2.0
//
// What becomes of each keyword of a schema, for people.
#pragma once

#include "mica_tools/schema/document.hpp"
#include "mica_tools/schema/formats.hpp"
#include "mica_tools/schema/schema.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::schema {

/// A keyword at a place of a schema.
struct KeywordUse {
  std::string place;      // "#/properties/a"
  std::string keyword;    // "minLength"
  std::string_view what;  // enforced; refused; annotation; unknown, which JSON Schema ignores
};

/// What a schema is worth as a constraint.
struct Explanation {
  std::vector<KeywordUse> keywords;
  std::vector<std::string> refusals;  // why it cannot be enforced, by keyword; empty: it is
};

/// Whether a keyword is enforced. Those of older drafts are among them.
[[nodiscard]] inline bool is_enforced(std::string_view keyword) {
  constexpr std::string_view known[] = {"type",
                                        "enum",
                                        "const",
                                        "allOf",
                                        "anyOf",
                                        "oneOf",
                                        "not",
                                        "if",
                                        "then",
                                        "else",
                                        "$ref",
                                        "$dynamicRef",
                                        "minimum",
                                        "maximum",
                                        "multipleOf",
                                        "pattern",
                                        "exclusiveMinimum",
                                        "exclusiveMaximum",
                                        "minLength",
                                        "maxLength",
                                        "properties",
                                        "required",
                                        "patternProperties",
                                        "additionalProperties",
                                        "propertyNames",
                                        "minProperties",
                                        "maxProperties",
                                        "items",
                                        "prefixItems",
                                        "additionalItems",
                                        "contains",
                                        "minContains",
                                        "maxContains",
                                        "minItems",
                                        "maxItems",
                                        "uniqueItems",
                                        "dependencies",
                                        "dependentRequired",
                                        "dependentSchemas",
                                        "unevaluatedItems",
                                        "unevaluatedProperties",
                                        "nullable"};
  return std::find(std::begin(known), std::end(known), keyword) != std::end(known);
}
[[nodiscard]] inline bool is_annotation(std::string_view keyword) {
  constexpr std::string_view known[] = {
      "title",        "description", "default", "examples",       "example",          "deprecated",
      "$schema",      "$id",         "id",      "readOnly",       "writeOnly",        "$comment",
      "$defs",        "definitions", "$anchor", "$dynamicAnchor", "contentMediaType", "contentEncoding",
      "contentSchema"};
  return std::find(std::begin(known), std::end(known), keyword) != std::end(known);
}

namespace detail {

/// The schemas within a schema, with their places.
template <class Add>
void for_each_part(const Json& schema, const std::string& place, Add&& add) {
  constexpr std::string_view named[] = {"properties",  "patternProperties", "$defs",
                                        "definitions", "dependentSchemas",  "dependencies"};
  for (auto at = schema.begin(); at != schema.end(); ++at) {
    const std::string path = place + "/" + pointer_part(at.key());
    const bool is_map = std::find(std::begin(named), std::end(named), at.key()) != std::end(named);
    if (at->is_object() && is_map) {
      for (auto each = at->begin(); each != at->end(); ++each)
        add(*each, path + "/" + pointer_part(each.key()));
    } else if (at->is_object() && is_enforced(at.key())) {
      add(*at, path);
    } else if (at->is_array() && is_enforced(at.key())) {
      for (std::size_t i = 0; i < at->size(); ++i) add((*at)[i], path + "/" + std::to_string(i));
    }
  }
}

/// Removes the keyword that a refusal names from the schema, and marks its use. Refusals begin with
/// "schema: 'KEYWORD' at PLACE: ". false: it names none that is there.
inline bool remove_refused(const std::string& refusal, Json& schema, std::vector<KeywordUse>& uses) {
  const std::string begin = "schema: '", between = "' at #";
  const std::size_t at = refusal.find(between);
  if (!refusal.starts_with(begin) || at == std::string::npos) return false;
  const std::string keyword = refusal.substr(begin.size(), at - begin.size());
  const std::size_t first = at + between.size(), end = refusal.find(": ", first);
  if (end == std::string::npos) return false;
  std::string place = refusal.substr(first, end - first);
  if (place.ends_with("/" + keyword)) place.resize(place.size() - keyword.size() - 1);
  try {
    const Json::json_pointer pointer(place);
    if (!schema.contains(pointer) || !schema[pointer].is_object() || schema[pointer].erase(keyword) == 0)
      return false;
  } catch (const Json::exception&) {  // a place in another notation
    return false;
  }
  for (KeywordUse& use : uses) {
    if (use.place == "#" + place && use.keyword == keyword) use.what = "refused";
  }
  return true;
}

}  // namespace detail

/// Lists the keywords of a schema, and says whether the schema is enforced. Raises ErrorCode::usage for a
/// text that is no JSON.
[[nodiscard]] inline Explanation explain(std::string_view text, const SchemaOptions& options = {}) {
  Explanation out;
  Json json = io::parse_json<Json>(text, "schema", ErrorCode::usage);
  std::vector<std::pair<const Json*, std::string>> open = {{&json, "#"}};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const auto [schema, place] = open[i];
    if (!schema->is_object()) continue;
    for (auto at = schema->begin(); at != schema->end(); ++at) {
      std::string_view what = is_enforced(at.key())     ? "enforced"
                              : is_annotation(at.key()) ? "annotation"
                                                        : "unknown";
      if (at.key() == "format") {
        const bool known = at->is_string() && !format_pattern(at->get_ref<const std::string&>()).empty();
        what = known && options.formats == Formats::enforced ? "enforced" : "annotation";
      }
      out.keywords.push_back({place, at.key(), what});
    }
    detail::for_each_part(*schema, place, [&](const Json& part, std::string at) {
      if (part.is_object()) open.emplace_back(&part, std::move(at));
    });
  }
  constexpr std::size_t max_refusals = 100;
  for (bool more = true; more && out.refusals.size() < max_refusals;) {
    try {
      static_cast<void>(parse_schema(out.refusals.empty() ? text : json.dump(), options));
      more = false;
    } catch (const Error& error) {
      out.refusals.push_back(error.message());
      more = error.code() == ErrorCode::unsupported &&
             detail::remove_refused(out.refusals.back(), json, out.keywords);
    }
  }
  return out;
}

}  // namespace mica::schema
