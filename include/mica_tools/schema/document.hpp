// SPDX-License-Identifier: Apache-2.0
//
// A JSON Schema as a document: its schemas by number, the drafts' dialects, and what references refer to. Not
// here: what keywords mean.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/json/parse_json.hpp"
#include "mica_tools/schema/schema_options.hpp"
#include "mica_tools/schema/uri.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mica::schema {

using Json = nlohmann::ordered_json;  // keeps the order of properties

/// A schema of a Document: a place in its JSON.
using SchemaId = std::uint32_t;

/// The version of JSON Schema: how some keywords are read.
enum class Draft : std::uint8_t { draft4, draft6, draft7, draft2019, draft2020 };

/// Refuses a keyword. The message names it, its place, and why.
[[noreturn]] inline void refuse(std::string_view keyword, std::string_view place, std::string_view why,
                                ErrorCode code = ErrorCode::unsupported) {
  raise(code, "schema: '", escaped(keyword, 40), "' at ", escaped(place, 200), ": ", why);
}

/// The schemas of one text. References to other documents are refused when they are used.
class Document {
 public:
  /// Raises ErrorCode::usage for a text that is no JSON, or neither an object nor a boolean.
  Document(std::string_view text, const SchemaOptions& options);
  Document(const Document&) = delete;  // schemas are found by their address
  Document& operator=(const Document&) = delete;

  [[nodiscard]] SchemaId root() const noexcept { return 0; }
  [[nodiscard]] const Json& json(SchemaId id) const noexcept { return *schemas_[id].json; }
  [[nodiscard]] Draft draft(SchemaId id) const noexcept { return resources_[schemas_[id].resource].draft; }
  /// Where it stands: "#/properties/name".
  [[nodiscard]] std::string place(SchemaId id) const;
  /// The value of a keyword, or null.
  [[nodiscard]] const Json* find(SchemaId id, std::string_view keyword) const noexcept {
    const Json& json = *schemas_[id].json;
    if (!json.is_object()) return nullptr;
    const auto at = json.find(keyword);
    return at == json.end() ? nullptr : &*at;
  }
  /// A schema that is a part of another one. Raises ErrorCode::usage if it is neither object nor boolean.
  [[nodiscard]] SchemaId child(SchemaId parent, const Json& json, std::string_view keyword);
  /// The schema that `reference` names, as seen from id. Raises where there is none.
  [[nodiscard]] SchemaId resolve(SchemaId id, std::string_view reference, std::string_view keyword);
  /// A schema of an array or object that is given, whose members may be in any order.
  [[nodiscard]] SchemaId schema_of(const Json& value);
  /// The value of a member of an object of many, by a table.
  [[nodiscard]] const Json* member(const Json& object, std::string_view name);

 private:
  struct Resource {
    std::string uri;  // its base, without fragment
    const Json* root;
    Draft draft;
  };
  struct Schema {
    const Json* json;
    std::uint32_t resource;
  };

  [[nodiscard]] SchemaId add(const Json& json, std::uint32_t resource);
  void find_names(const Json& json, std::uint32_t resource);
  [[nodiscard]] static Draft draft_of(const Json& json, Draft otherwise);
  [[nodiscard]] static const Json* find_key(const Json& json, std::string_view key) {
    const auto at = json.find(key);
    return at == json.end() ? nullptr : &*at;
  }
  [[nodiscard]] bool find_place(const Json& at, const Json* wanted, std::string& path) const;

  Json text_;
  std::vector<std::unique_ptr<Json>> made_;  // by schema_of()
  std::unordered_map<const Json*, SchemaId> made_ids_;
  std::vector<Resource> resources_;
  std::vector<Schema> schemas_;
  std::unordered_map<const Json*, SchemaId> ids_;
  std::unordered_map<std::string, std::uint32_t> resource_of_;                      // by URI
  std::unordered_map<std::string, std::pair<const Json*, std::uint32_t>> anchors_;  // by URI#name
  std::unordered_map<std::string, std::size_t> dynamic_anchors_;                    // how often a name is one
  std::unordered_map<const Json*, std::unordered_map<std::string_view, const Json*>> members_;
};

inline Document::Document(std::string_view text, const SchemaOptions& options) {
  MICA_CHECK(text.size() <= options.max_bytes, limit, "schema: found ", text.size(), " bytes, allowed are ",
             options.max_bytes);
  text_ = io::parse_json<Json>(text, "schema", ErrorCode::usage);
  MICA_CHECK(text_.is_object() || text_.is_boolean(), usage,
             "schema: found neither an object nor a boolean; a schema is {...}, true or false");
  resources_.push_back({"", &text_, draft_of(text_, Draft::draft2020)});
  resource_of_.emplace("", 0);
  static_cast<void>(add(text_, 0));
  find_names(text_, 0);
}

inline Draft Document::draft_of(const Json& json, Draft otherwise) {
  const Json* const named = json.is_object() ? find_key(json, "$schema") : nullptr;
  if (named == nullptr || !named->is_string()) return otherwise;
  const auto& uri = named->get_ref<const std::string&>();
  constexpr std::pair<std::string_view, Draft> known[] = {{"draft-03", Draft::draft4},
                                                          {"draft-04", Draft::draft4},
                                                          {"draft-06", Draft::draft6},
                                                          {"draft-07", Draft::draft7},
                                                          {"2019-09", Draft::draft2019}};
  for (const auto& [text, draft] : known) {
    if (uri.find(text) != std::string::npos) return draft;
  }
  return Draft::draft2020;
}

inline SchemaId Document::add(const Json& json, std::uint32_t resource) {
  const auto [at, added] = ids_.emplace(&json, static_cast<SchemaId>(schemas_.size()));
  if (added) schemas_.push_back({&json, resource});
  return at->second;
}

/// Records the identifiers and anchors of a schema and of all in it. Values of keywords such as enum are no
/// schemas; a name in them is recorded only if it stands where a schema could.
inline void Document::find_names(const Json& json, std::uint32_t resource) {
  struct Place {
    const Json* json;
    std::uint32_t resource;
    bool named;  // the keys are names, such as of properties
  };
  const auto among = [](std::string_view key, std::initializer_list<std::string_view> keys) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  std::vector<Place> open = {{&json, resource, false}};
  while (!open.empty()) {
    auto [at, in, named] = open.back();
    open.pop_back();
    if (at->is_array()) {
      for (const Json& item : *at) open.push_back({&item, in, false});
    }
    if (!at->is_object()) continue;
    if (named) {
      for (const Json& value : *at) open.push_back({&value, in, false});
      continue;
    }
    const Json* id = find_key(*at, resources_[in].draft == Draft::draft4 ? "id" : "$id");
    const bool overridden = resources_[in].draft <= Draft::draft7 && at->contains("$ref") && at != &json;
    if (id != nullptr && id->is_string() && !overridden) {
      const auto& uri = id->get_ref<const std::string&>();
      const auto [before, fragment] = split_uri(uri);
      const std::string full = resolve_uri(resources_[in].uri, before);
      if (!before.empty()) {
        if (at == &json) {
          resources_[in].uri = full;
        } else {
          resources_.push_back({full, at, draft_of(*at, resources_[in].draft)});
          in = static_cast<std::uint32_t>(resources_.size() - 1);
        }
        resource_of_.emplace(full, in);
      }
      if (!fragment.empty() && resources_[in].draft <= Draft::draft7)
        anchors_.emplace(full + "#" + std::string(fragment), std::pair(at, in));
    }
    for (const char* keyword : {"$anchor", "$dynamicAnchor"}) {
      const Json* const name = find_key(*at, keyword);
      if (name == nullptr || !name->is_string()) continue;
      const auto& anchor = name->get_ref<const std::string&>();
      anchors_.emplace(resources_[in].uri + "#" + anchor, std::pair(at, in));
      if (keyword[1] == 'd') ++dynamic_anchors_[anchor];
    }
    for (const auto& [key, value] : at->items()) {
      if (!value.is_structured() || among(key, {"enum", "const", "default", "examples"})) continue;
      open.push_back({&value, in,
                      among(key, {"properties", "patternProperties", "$defs", "definitions",
                                  "dependentSchemas", "dependencies"})});
    }
  }
}

inline SchemaId Document::child(SchemaId parent, const Json& json, std::string_view keyword) {
  if (!json.is_object() && !json.is_boolean())
    refuse(keyword, place(parent), "its value is no schema: {...}, true or false", ErrorCode::usage);
  const auto known = ids_.find(&json);
  if (known != ids_.end()) return known->second;
  std::uint32_t resource = schemas_[parent].resource;
  if (resources_.size() > 1) {
    for (std::uint32_t i = 1; i < resources_.size(); ++i) {
      if (resources_[i].root == &json) resource = i;
    }
  }
  return add(json, resource);
}

inline SchemaId Document::resolve(SchemaId id, std::string_view reference, std::string_view keyword) {
  std::uint32_t resource = schemas_[id].resource;
  const auto [before, fragment] = split_uri(reference);
  const std::string uri = resolve_uri(resources_[resource].uri, before);
  if (!before.empty()) {
    const auto known = resource_of_.find(uri);
    if (known == resource_of_.end()) {
      const auto anchored = anchors_.find(uri + "#" + std::string(fragment));
      if (anchored != anchors_.end()) return add(*anchored->second.first, anchored->second.second);
      refuse(
          keyword, place(id),
          join("'", escaped(reference, 100), "' is in another document; put it into this one, under $defs"));
    }
    resource = known->second;
  }
  const auto plain = percent_decoded(fragment);
  if (!plain) refuse(keyword, place(id), "its fragment has a damaged %XX", ErrorCode::usage);
  if (!plain->empty() && (*plain)[0] != '/') {
    const auto anchored = anchors_.find(uri + "#" + *plain);
    if (anchored == anchors_.end())
      refuse(keyword, place(id), join("no schema has the anchor '", escaped(*plain, 60), "'"),
             ErrorCode::usage);
    if (keyword == "$dynamicRef" && dynamic_anchors_[*plain] > 1)
      refuse(keyword, place(id),
             join("the anchor '", escaped(*plain, 60),
                  "' is there several times, and which "
                  "one is meant depends on the way to it"));
    return add(*anchored->second.first, anchored->second.second);
  }
  const Json* at = resources_[resource].root;
  for (const std::string& key : pointer_keys(*plain)) {
    const Json* next = nullptr;
    if (at->is_object()) {
      next = find_key(*at, key);
    } else if (at->is_array() && !key.empty() && key.size() < 8 && (key == "0" || key[0] != '0') &&
               key.find_first_not_of("0123456789") == std::string::npos) {
      const std::size_t i = std::stoul(key);
      next = i < at->size() ? &(*at)[i] : nullptr;
    }
    if (next == nullptr)
      refuse(keyword, place(id), join("nothing is at '", escaped(reference, 100), "'"), ErrorCode::usage);
    at = next;
    for (std::uint32_t i = 1; i < resources_.size(); ++i) {
      if (resources_[i].root == at) resource = i;
    }
  }
  if (!at->is_object() && !at->is_boolean())
    refuse(keyword, place(id), join("'", escaped(reference, 100), "' is no schema"), ErrorCode::usage);
  return add(*at, resource);
}

inline SchemaId Document::schema_of(const Json& value) {
  const auto known = made_ids_.find(&value);
  if (known != made_ids_.end()) return known->second;
  Json made = {{"type", value.is_object() ? "object" : "array"}};
  Json parts = value.is_object() ? Json::object() : Json::array(), names = Json::array();
  for (auto at = value.begin(); at != value.end(); ++at) {
    Json part = {{"const", *at}};
    if (!value.is_object()) {
      parts.push_back(std::move(part));
      continue;
    }
    parts[at.key()] = std::move(part);
    names.push_back(at.key());
  }
  if (value.is_object()) {
    made["properties"] = std::move(parts);
    made["required"] = std::move(names);
    made["additionalProperties"] = false;
  } else {
    made["prefixItems"] = std::move(parts);
    made["minItems"] = made["maxItems"] = value.size();
  }
  made_.push_back(std::make_unique<Json>(std::move(made)));
  const SchemaId id = add(*made_.back(), 0);
  made_ids_.emplace(&value, id);
  return id;
}

inline const Json* Document::member(const Json& object, std::string_view name) {
  if (object.size() <= 8) {
    const auto at = object.find(name);
    return at == object.end() ? nullptr : &*at;
  }
  auto& table = members_[&object];
  if (table.empty()) {
    for (auto at = object.begin(); at != object.end(); ++at) table.emplace(at.key(), &*at);
  }
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

inline std::string Document::place(SchemaId id) const {
  // A search, since only refusals need it: the path to the schema in the order of the text.
  struct Step {
    const Json* at;
    std::string path;
  };
  std::vector<Step> open = {{&text_, "#"}};
  const Json* const wanted = schemas_[id].json;
  for (std::size_t i = 0; i < open.size() && open.size() < 2'000'000; ++i) {
    if (open[i].at == wanted) return open[i].path;
    const Json* const at = open[i].at;
    const std::string path = open[i].path;
    if (at->is_object()) {
      for (auto each = at->begin(); each != at->end(); ++each) {
        if (each->is_structured() || &*each == wanted)
          open.push_back({&*each, path + "/" + pointer_part(each.key())});
      }
    } else if (at->is_array()) {
      for (std::size_t k = 0; k < at->size(); ++k)
        open.push_back({&(*at)[k], path + "/" + std::to_string(k)});
    }
  }
  return "#";
}

}  // namespace mica::schema
