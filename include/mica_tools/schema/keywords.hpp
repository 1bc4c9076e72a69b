// SPDX-License-Identifier: Apache-2.0
//
// Reads the keywords of one schema. As something that a value meets, it is edits that all apply, and splits,
// of which one alternative each applies. As something that a value does not meet, it is one split: a
// violation of one keyword.
#pragma once

#include "mica_tools/schema/edit.hpp"
#include "mica_tools/schema/equal.hpp"
#include "mica_tools/schema/formats.hpp"
#include "mica_tools/schema/strings.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mica::schema {

/// Alternatives, of which one applies.
using Split = std::vector<Edits>;

/// What a schema says.
struct Meaning {
  Edits edits;
  std::vector<Split> splits;
  std::optional<MemberGroup> members;
  std::optional<ItemGroup> items;
  const Json* values = nullptr;  // enum, as an array
  const Json* value = nullptr;   // const
  bool unique = false;
  std::optional<Unevaluated> unevaluated_members, unevaluated_items;
  bool nothing = false;  // met by no value
};

/// Reads keywords of a document. Keywords that are neither known nor annotations are none: JSON Schema
/// ignores them. Raises for values that a keyword cannot have (usage) and for keywords that are not enforced
/// (unsupported), each with its place.
class Keywords {
 public:
  Keywords(Document& document, Strings& strings, const SchemaOptions& options)
      : document_(document), strings_(strings), options_(options) {}

  /// The meaning where the value meets the schema. scope: a new bit for unevaluated keywords, 0 if there is
  /// none left; scopes: those within which the schema stands.
  [[nodiscard]] Meaning meets(SchemaId id, std::uint32_t scopes, std::uint32_t scope);
  /// The alternatives where it does not; none: every value meets it.
  [[nodiscard]] Split fails(SchemaId id);
  /// Whether two schemas have no value in common, as far as types, constants and required members tell.
  [[nodiscard]] bool disjoint(SchemaId a, SchemaId b, int depth = 0);
  /// Types that a value of the schema may have, as far as its own keywords and references tell.
  [[nodiscard]] Types types_of(SchemaId id, int depth = 0);
  [[nodiscard]] bool has_unevaluated(SchemaId id) const {
    return document_.find(id, "unevaluatedProperties") != nullptr ||
           document_.find(id, "unevaluatedItems") != nullptr;
  }

 private:
  using Kind = Edit::Kind;

  [[nodiscard]] SchemaId child(SchemaId id, const Json& json, std::string_view keyword) {
    return document_.child(id, json, keyword);
  }
  [[nodiscard]] const Json* find(SchemaId id, const char* keyword) const {
    return document_.find(id, keyword);
  }
  [[nodiscard]] std::vector<SchemaId> list(SchemaId id, const char* keyword);
  [[nodiscard]] const Json* object(SchemaId id, const char* keyword);
  [[nodiscard]] std::optional<std::uint64_t> count(SchemaId id, const char* keyword);
  [[nodiscard]] std::optional<Decimal> number(SchemaId id, const char* keyword);
  [[nodiscard]] std::optional<SchemaId> schema(SchemaId id, const char* keyword);
  [[nodiscard]] std::optional<SchemaId> reference(SchemaId id);
  [[nodiscard]] std::optional<Types> declared_types(SchemaId id);
  [[nodiscard]] bool only_reference(SchemaId id) const {
    return document_.draft(id) <= Draft::draft7 && find(id, "$ref") != nullptr;
  }
  void check_pattern(SchemaId id, const std::string& pattern, std::string_view keyword);
  [[nodiscard]] std::vector<std::string> names(const Json& json, SchemaId id, std::string_view keyword);
  [[nodiscard]] std::optional<std::string> known_format(SchemaId id);
  void refuse_unsupported(SchemaId id);
  void read_applicators(SchemaId id, std::uint32_t scopes, Meaning& out);
  void read_if(SchemaId id, std::uint32_t scopes, Meaning& out);
  void read_counts(SchemaId id, Meaning& out);
  void read_scalars(SchemaId id, Meaning& out);
  void read_object(SchemaId id, std::uint32_t scopes, Meaning& out);
  void read_dependencies(SchemaId id, std::uint32_t scopes, Meaning& out);
  void read_array(SchemaId id, std::uint32_t scopes, Meaning& out);
  void fail_applicators(SchemaId id, Split& out);
  void fail_scalars(SchemaId id, Split& out);
  void fail_object(SchemaId id, Split& out);
  void fail_array(SchemaId id, Split& out);
  [[nodiscard]] Types find_types(SchemaId id, int depth);
  [[nodiscard]] bool disjoint_values(SchemaId a, SchemaId b);
  [[nodiscard]] bool disjoint_members(SchemaId a, SchemaId b, int depth);
  [[nodiscard]] std::vector<const Json*> constants(SchemaId id);
  [[nodiscard]] std::vector<SchemaId> parts(SchemaId id);

  Document& document_;
  Strings& strings_;
  const SchemaOptions& options_;
  std::unordered_map<SchemaId, Types> types_;  // of types_of()
};

// Values of keywords

inline std::vector<SchemaId> Keywords::list(SchemaId id, const char* keyword) {
  const Json* const json = find(id, keyword);
  std::vector<SchemaId> out;
  if (json == nullptr) return out;
  if (!json->is_array())
    refuse(keyword, document_.place(id), "its value is no array of schemas", ErrorCode::usage);
  for (const Json& each : *json) out.push_back(child(id, each, keyword));
  return out;
}
inline const Json* Keywords::object(SchemaId id, const char* keyword) {
  const Json* const json = find(id, keyword);
  if (json != nullptr && !json->is_object())
    refuse(keyword, document_.place(id), "its value is no object", ErrorCode::usage);
  return json;
}
inline std::optional<std::uint64_t> Keywords::count(SchemaId id, const char* keyword) {
  const Json* const json = find(id, keyword);
  if (json == nullptr) return std::nullopt;
  const auto value = json->is_number() ? decimal_of(*json) : std::nullopt;
  if (!value || value->negative || !value->is_integer())
    refuse(keyword, document_.place(id), "its value is no integer of 0 or more", ErrorCode::usage);
  if (value->digits.size() > 9) return 1'000'000'000;  // no text is longer
  std::uint64_t out = 0;
  for (const char digit : value->digits) out = out * 10 + static_cast<std::uint64_t>(digit - '0');
  return out;
}
inline std::optional<Decimal> Keywords::number(SchemaId id, const char* keyword) {
  const Json* const json = find(id, keyword);
  if (json == nullptr) return std::nullopt;
  const auto value = json->is_number() ? decimal_of(*json) : std::nullopt;
  if (!value)
    refuse(keyword, document_.place(id), "its value is no number of 400 digits or fewer", ErrorCode::usage);
  return value;
}
inline std::optional<SchemaId> Keywords::schema(SchemaId id, const char* keyword) {
  const Json* const json = find(id, keyword);
  if (json == nullptr) return std::nullopt;
  return child(id, *json, keyword);
}
inline std::vector<std::string> Keywords::names(const Json& json, SchemaId id, std::string_view keyword) {
  std::vector<std::string> out;
  bool good = json.is_array();
  for (const Json& each : json) {
    if (good && (good = each.is_string())) out.push_back(each.get<std::string>());
  }
  if (!good) refuse(keyword, document_.place(id), "its value is no array of names", ErrorCode::usage);
  return out;
}
/// Refuses a pattern that has no expression.
inline void Keywords::check_pattern(SchemaId id, const std::string& pattern, std::string_view keyword) {
  try {
    static_cast<void>(strings_.pattern(pattern));
  } catch (const Error& error) {
    refuse(keyword, document_.place(id), error.message(), error.code());
  }
}
inline std::optional<SchemaId> Keywords::reference(SchemaId id) {
  for (const char* keyword : {"$ref", "$dynamicRef", "$recursiveRef"}) {
    const Json* const json = find(id, keyword);
    if (json == nullptr) continue;
    if (!json->is_string()) refuse(keyword, document_.place(id), "its value is no text", ErrorCode::usage);
    return document_.resolve(id, json->get_ref<const std::string&>(), keyword);
  }
  return std::nullopt;
}
inline std::optional<Types> Keywords::declared_types(SchemaId id) {
  const Json* const json = find(id, "type");
  if (json == nullptr) return std::nullopt;
  const auto one = [&](const Json& name) -> Types {
    constexpr std::pair<std::string_view, Types> known[] = {
        {"null", null_type},      {"boolean", boolean_types}, {"integer", integer_type},
        {"number", number_types}, {"string", string_type},    {"array", array_type},
        {"object", object_type},  {"any", all_types}};
    for (const auto& [text, types] : known) {
      if (name.is_string() && name.get_ref<const std::string&>() == text) return types;
    }
    refuse("type", document_.place(id), "its value is no type of JSON", ErrorCode::usage);
  };
  if (!json->is_array()) return one(*json);
  Types out = 0;
  for (const Json& each : *json) out |= one(each);
  return out;
}
inline std::optional<std::string> Keywords::known_format(SchemaId id) {
  const Json* const json = find(id, "format");
  if (json == nullptr || !json->is_string() || options_.formats == Formats::annotation) return std::nullopt;
  auto name = json->get<std::string>();
  if (is_unsupported_format(name))
    refuse("format", document_.place(id),
           join("'", name, "' is not enforced; leave it out, or let formats be annotations"));
  if (format_pattern(name).empty()) return std::nullopt;  // not a standard one: an annotation
  return name;
}

// Where the value meets the schema

inline void Keywords::refuse_unsupported(SchemaId id) {
  const Json* const vocabulary = find(id, "$vocabulary");
  if (vocabulary != nullptr)
    refuse("$vocabulary", document_.place(id), "a schema of schemas is not supported");
}

inline Meaning Keywords::meets(SchemaId id, std::uint32_t scopes, std::uint32_t scope) {
  Meaning out;
  const Json& json = document_.json(id);
  if (json.is_boolean()) {
    out.nothing = !json.get<bool>();
    return out;
  }
  if (only_reference(id)) {
    out.edits.push_back(edit::literal({*reference(id)}, scopes));
    return out;
  }
  refuse_unsupported(id);
  for (const auto& [keyword, unevaluated] : {std::pair{"unevaluatedProperties", &out.unevaluated_members},
                                             std::pair{"unevaluatedItems", &out.unevaluated_items}}) {
    const auto value = schema(id, keyword);
    if (!value) continue;
    if (scope == 0) refuse(keyword, document_.place(id), "too many of them apply to one value");
    *unevaluated = Unevaluated{scope, {*value}, scopes};
  }
  const std::uint32_t inner = scopes | (out.unevaluated_members || out.unevaluated_items ? scope : 0);
  if (const auto types = declared_types(id)) out.edits.push_back(edit::types(*types));
  if (find(id, "nullable") != nullptr && find(id, "nullable")->is_boolean() &&
      find(id, "nullable")->get<bool>() && !out.edits.empty())  // OpenAPI 3.0
    out.edits[0].types |= null_type;
  if (const Json* const values = find(id, "enum")) {
    if (!values->is_array()) refuse("enum", document_.place(id), "its value is no array", ErrorCode::usage);
    out.values = values;
  }
  out.value = find(id, "const");
  read_counts(id, out);
  read_scalars(id, out);
  read_object(id, scopes, out);
  read_array(id, scopes, out);
  read_applicators(id, inner, out);
  read_dependencies(id, inner, out);
  // What an unevaluated keyword sees of its own schema.
  if (out.members) out.members->scopes = inner;
  if (out.items) out.items->scopes = inner;
  return out;
}

inline void Keywords::read_applicators(SchemaId id, std::uint32_t scopes, Meaning& out) {
  if (const auto target = reference(id)) out.edits.push_back(edit::literal({*target}, scopes));
  for (const SchemaId each : list(id, "allOf")) out.edits.push_back(edit::literal({each}, scopes));
  if (const auto each = schema(id, "not")) out.edits.push_back(edit::literal({*each, false}));
  const auto any = list(id, "anyOf");
  if (find(id, "anyOf") != nullptr) {
    Split split;
    if (scopes == 0) {
      for (const SchemaId each : any) split.push_back({edit::literal({each})});
    } else {  // what was evaluated depends on all that are met: the first that is, and each later one or not
      for (std::size_t i = 0; i < any.size(); ++i) {
        Edits first;
        for (std::size_t k = 0; k < i; ++k) first.push_back(edit::literal({any[k], false}));
        first.push_back(edit::literal({any[i]}, scopes));
        split.push_back(std::move(first));
        out.splits.push_back({{edit::literal({any[i]}, scopes)}, {edit::literal({any[i], false})}});
      }
    }
    out.splits.push_back(std::move(split));
  }
  const auto one = list(id, "oneOf");
  if (find(id, "oneOf") != nullptr) {
    Split split;
    for (std::size_t i = 0; i < one.size(); ++i) {
      Edits edits = {edit::literal({one[i]}, scopes)};
      for (std::size_t k = 0; k < one.size(); ++k) {
        if (k != i && !disjoint(one[i], one[k])) edits.push_back(edit::literal({one[k], false}));
      }
      split.push_back(std::move(edits));
    }
    out.splits.push_back(std::move(split));
  }
  read_if(id, scopes, out);
}

inline void Keywords::read_if(SchemaId id, std::uint32_t scopes, Meaning& out) {
  const auto condition = schema(id, "if");
  if (!condition || document_.draft(id) < Draft::draft7) return;
  const auto then = schema(id, "then"), otherwise = schema(id, "else");
  if (!then && !otherwise && scopes == 0) return;
  Edits met = {edit::literal({*condition}, scopes)}, not_met = {edit::literal({*condition, false})};
  if (then) met.push_back(edit::literal({*then}, scopes));
  if (otherwise) not_met.push_back(edit::literal({*otherwise}, scopes));
  out.splits.push_back({met, not_met});
}

inline void Keywords::read_counts(SchemaId id, Meaning& out) {
  constexpr std::pair<const char*, Kind> keywords[] = {{"Length", Kind::counts_characters},
                                                       {"Items", Kind::counts_items},
                                                       {"Properties", Kind::counts_members}};
  for (const auto& [name, kind] : keywords) {
    if (const auto min = count(id, (std::string("min") + name).c_str()))
      out.edits.push_back(edit::count(kind, *min, no_max));
    if (const auto max = count(id, (std::string("max") + name).c_str()))
      out.edits.push_back(edit::count(kind, 0, *max));
  }
}

inline void Keywords::read_scalars(SchemaId id, Meaning& out) {
  if (const Json* const pattern = find(id, "pattern")) {
    if (!pattern->is_string())
      refuse("pattern", document_.place(id), "its value is no text", ErrorCode::usage);
    check_pattern(id, pattern->get_ref<const std::string&>(), "pattern");
    out.edits.push_back(edit::found(Kind::pattern, pattern->get<std::string>(), true));
  }
  if (const auto format = known_format(id)) out.edits.push_back(edit::found(Kind::format, *format, true));
  for (const auto& [keyword, exclusive, kind] : {std::tuple{"minimum", "exclusiveMinimum", Kind::at_least},
                                                 std::tuple{"maximum", "exclusiveMaximum", Kind::at_most}}) {
    const Json* const other = find(id, exclusive);
    const bool flag = other != nullptr && other->is_boolean();  // draft 4
    if (const auto bound = number(id, keyword))
      out.edits.push_back(edit::bound(kind, *bound, flag && other->get<bool>()));
    if (other != nullptr && !flag) out.edits.push_back(edit::bound(kind, *number(id, exclusive), true));
  }
  if (const auto divisor = number(id, "multipleOf")) {
    if (divisor->negative || divisor->is_zero())
      refuse("multipleOf", document_.place(id), "its value is not above 0", ErrorCode::usage);
    if (!schema::multiple_of(*divisor))
      refuse("multipleOf", document_.place(id), "it has more than 9 digits");
    out.edits.push_back(edit::bound(Kind::multiple, *divisor, true));
  }
}

inline void Keywords::read_object(SchemaId id, std::uint32_t /*scopes*/, Meaning& out) {
  MemberGroup group;
  group.schema = id;
  group.properties = object(id, "properties");
  group.patterns = object(id, "patternProperties");
  if (group.patterns != nullptr) {
    for (auto at = group.patterns->begin(); at != group.patterns->end(); ++at)
      check_pattern(id, at.key(), "patternProperties");
  }
  if (const auto others = schema(id, "additionalProperties")) group.others = Literal{*others};
  if (group.properties != nullptr || group.patterns != nullptr || group.others) out.members = group;
  if (const Json* const required = find(id, "required"); required != nullptr && !required->is_boolean()) {
    for (std::string& name : names(*required, id, "required"))
      out.edits.push_back(edit::require(std::move(name)));
  }
  if (const auto name = schema(id, "propertyNames"))
    out.edits.push_back({.kind = Kind::name, .literal = {{*name}, 0}});
}

/// An object without the member; or with it, and what it needs then.
inline void Keywords::read_dependencies(SchemaId id, std::uint32_t scopes, Meaning& out) {
  for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    const Json* const all = object(id, keyword);
    if (all == nullptr) continue;
    for (const auto& [name, value] : all->items()) {
      Edits with = {edit::types(object_type), edit::require(name)};
      if (value.is_array()) {
        for (std::string& needed : names(value, id, keyword))
          with.push_back(edit::require(std::move(needed)));
      } else if (value.is_string()) {  // draft 3
        with.push_back(edit::require(value.get<std::string>()));
      } else {
        with.push_back(edit::literal({child(id, value, keyword)}, scopes));
      }
      out.splits.push_back(
          {{edit::types(~object_type)}, {edit::types(object_type), edit::forbid(name)}, with});
    }
  }
}

inline void Keywords::read_array(SchemaId id, std::uint32_t /*scopes*/, Meaning& out) {
  ItemGroup group;
  group.schema = id;
  const Json* const items = find(id, "items");
  const bool listed = items != nullptr && items->is_array();  // before 2020-12
  group.first = listed ? items : find(id, "prefixItems");
  if (group.first != nullptr && !group.first->is_array())
    refuse("prefixItems", document_.place(id), "its value is no array of schemas", ErrorCode::usage);
  if (items != nullptr && !listed) group.others = Literal{child(id, *items, "items")};
  if (listed) {
    if (const auto others = schema(id, "additionalItems")) group.others = Literal{*others};
  }
  if (group.first != nullptr || group.others) out.items = group;
  const Json* const unique = find(id, "uniqueItems");
  out.unique = unique != nullptr && unique->is_boolean() && unique->get<bool>();
  if (const auto contains = schema(id, "contains")) {
    const bool counted = document_.draft(id) >= Draft::draft2019;
    const std::uint64_t min = counted ? count(id, "minContains").value_or(1) : 1;
    const std::uint64_t max = counted ? count(id, "maxContains").value_or(no_max) : no_max;
    out.edits.push_back(edit::contained({*contains}, {min, max}));
  }
}

// Where it does not

inline Split Keywords::fails(SchemaId id) {
  Split out;
  const Json& json = document_.json(id);
  if (json.is_boolean()) {
    if (!json.get<bool>()) out.push_back({});  // every value fails
    return out;
  }
  if (only_reference(id)) {
    out.push_back({edit::literal({*reference(id), false})});
    return out;
  }
  refuse_unsupported(id);
  if (has_unevaluated(id)) {
    refuse(find(id, "unevaluatedItems") != nullptr ? "unevaluatedItems" : "unevaluatedProperties",
           document_.place(id), "a schema with it is under 'not', 'if' or 'oneOf'");
  }
  if (auto types = declared_types(id)) {
    const Json* const nullable = find(id, "nullable");
    if (nullable != nullptr && nullable->is_boolean() && nullable->get<bool>()) *types |= null_type;
    if (*types != all_types) out.push_back({edit::types(~*types)});
  }
  const Json* const values = find(id, "enum");
  if (values != nullptr && values->is_array()) {
    Edits none;
    for (const Json& value : *values) none.push_back({.kind = Kind::exclude, .json = &value});
    out.push_back(std::move(none));
  }
  if (const Json* const value = find(id, "const")) out.push_back({{.kind = Kind::exclude, .json = value}});
  fail_applicators(id, out);
  fail_scalars(id, out);
  fail_object(id, out);
  fail_array(id, out);
  return out;
}

inline void Keywords::fail_applicators(SchemaId id, Split& out) {
  if (const auto target = reference(id)) out.push_back({edit::literal({*target, false})});
  for (const SchemaId each : list(id, "allOf")) out.push_back({edit::literal({each, false})});
  if (const auto each = schema(id, "not")) out.push_back({edit::literal({*each})});
  if (find(id, "anyOf") != nullptr) {
    Edits none;
    for (const SchemaId each : list(id, "anyOf")) none.push_back(edit::literal({each, false}));
    out.push_back(std::move(none));
  }
  if (find(id, "oneOf") != nullptr) {
    const auto one = list(id, "oneOf");
    Edits none;
    for (const SchemaId each : one) none.push_back(edit::literal({each, false}));
    out.push_back(std::move(none));
    for (std::size_t i = 0; i < one.size(); ++i) {
      for (std::size_t k = i + 1; k < one.size(); ++k) {
        if (!disjoint(one[i], one[k])) out.push_back({edit::literal({one[i]}), edit::literal({one[k]})});
      }
    }
  }
  const auto condition = schema(id, "if");
  if (!condition || document_.draft(id) < Draft::draft7) return;
  if (const auto then = schema(id, "then"))
    out.push_back({edit::literal({*condition}), edit::literal({*then, false})});
  if (const auto otherwise = schema(id, "else"))
    out.push_back({edit::literal({*condition, false}), edit::literal({*otherwise, false})});
}

inline void Keywords::fail_scalars(SchemaId id, Split& out) {
  Meaning own;
  read_scalars(id, own);
  read_counts(id, own);
  for (Edit& each : own.edits) {
    switch (each.kind) {
      case Kind::pattern:
      case Kind::format:
        each.flag = false;
        out.push_back({edit::types(string_type), each});
        break;
      case Kind::at_least:
        out.push_back({edit::types(number_types), edit::bound(Kind::at_most, each.value, !each.flag)});
        break;
      case Kind::at_most:
        out.push_back({edit::types(number_types), edit::bound(Kind::at_least, each.value, !each.flag)});
        break;
      case Kind::multiple:
        out.push_back({edit::types(number_types), edit::bound(Kind::multiple, each.value, false)});
        break;
      default: {
        const int of = each.kind == Kind::counts_characters ? string_type
                       : each.kind == Kind::counts_items    ? array_type
                                                            : object_type;
        if (each.counts.max != no_max) {
          out.push_back({edit::types(of), edit::count(each.kind, each.counts.max + 1, no_max)});
        } else if (each.counts.min > 0) {
          out.push_back({edit::types(of), edit::count(each.kind, 0, each.counts.min - 1)});
        }
      }
    }
  }
}

inline void Keywords::fail_object(SchemaId id, Split& out) {
  Meaning own;
  read_object(id, 0, own);
  for (const Edit& each : own.edits) {
    if (each.kind == Kind::require) out.push_back({edit::types(object_type), edit::forbid(each.text)});
    if (each.kind != Kind::name) continue;
    Edit some{.kind = Kind::obligation};
    some.obligation.value = negated(each.literal.literal);
    some.obligation.is_name = true;
    out.push_back({edit::types(object_type), some});
  }
  if (own.members && own.members->properties != nullptr) {
    for (const auto& [name, value] : own.members->properties->items()) {
      if (value.is_boolean() && value.template get<bool>()) continue;
      out.push_back({edit::types(object_type), edit::require(name),
                     edit::member(name, {child(id, value, "properties"), false})});
    }
  }
  if (own.members && own.members->patterns != nullptr) {
    for (const auto& [pattern, value] : own.members->patterns->items()) {
      Edit some{.kind = Kind::obligation};
      some.obligation.pattern = pattern;
      some.obligation.value = {child(id, value, "patternProperties"), false};
      out.push_back({edit::types(object_type), some});
    }
  }
  if (own.members && own.members->others) {
    const Json& others = document_.json(own.members->others->schema);
    if (!others.is_boolean() || !others.get<bool>()) {
      Edit some{.kind = Kind::obligation};
      some.obligation.names = own.members->properties;
      some.obligation.patterns = own.members->patterns;
      some.obligation.value = negated(*own.members->others);
      out.push_back({edit::types(object_type), some});
    }
  }
  Meaning dependent;
  read_dependencies(id, 0, dependent);
  for (const Split& split : dependent.splits) {
    const Edits& with = split.back();  // of an object, a member, and what it needs
    for (std::size_t i = 2; i < with.size(); ++i) {
      Edits failing = {with[0], with[1]};
      if (with[i].kind == Kind::require) {
        failing.push_back(edit::forbid(with[i].text));
      } else {
        failing.push_back(edit::literal(negated(with[i].literal.literal)));
      }
      out.push_back(std::move(failing));
    }
  }
}

inline void Keywords::fail_array(SchemaId id, Split& out) {
  Meaning own;
  read_array(id, 0, own);
  if (own.unique)
    refuse("uniqueItems", document_.place(id), "a schema with it is under 'not', 'if' or 'oneOf'");
  std::uint64_t first = 0;
  if (own.items && own.items->first != nullptr) {
    for (const Json& value : *own.items->first) {
      out.push_back({edit::types(array_type), edit::count(Kind::counts_items, first + 1, no_max),
                     edit::item(first, {child(id, value, "prefixItems"), false})});
      ++first;
    }
  }
  if (own.items && own.items->others)
    out.push_back(
        {edit::types(array_type), edit::contained(negated(*own.items->others), {1, no_max}, first)});
  for (const Edit& each : own.edits) {
    const Counts& counts = each.counts;
    if (counts.min > 0)
      out.push_back({edit::types(array_type), edit::contained(each.literal.literal, {0, counts.min - 1})});
    if (counts.max != no_max)
      out.push_back(
          {edit::types(array_type), edit::contained(each.literal.literal, {counts.max + 1, no_max})});
  }
}

// What two schemas have in common

inline std::vector<SchemaId> Keywords::parts(SchemaId id) {
  std::vector<SchemaId> out;
  if (const auto target = reference(id)) out.push_back(*target);
  if (only_reference(id)) return out;
  for (const SchemaId each : list(id, "allOf")) out.push_back(each);
  return out;
}

inline Types Keywords::find_types(SchemaId id, int depth) {
  const Json& json = document_.json(id);
  if (json.is_boolean()) return json.get<bool>() ? all_types : 0;
  if (depth > 6) return all_types;
  Types out = all_types;
  for (const SchemaId each : parts(id)) out &= types_of(each, depth + 1);
  if (only_reference(id)) return out;
  if (const auto types = declared_types(id)) {
    const Json* const nullable = find(id, "nullable");
    out &= static_cast<Types>(*types | (nullable != nullptr ? null_type : 0));
  }
  const auto values = constants(id);
  if (!values.empty()) {
    Types of_values = 0;
    for (const Json* value : values) of_values |= type_of(*value);
    out &= of_values;
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (find(id, keyword) == nullptr) continue;
    Types some = 0;
    for (const SchemaId each : list(id, keyword)) some |= types_of(each, depth + 1);
    out &= some;
  }
  return out;
}

inline Types Keywords::types_of(SchemaId id, int depth) {
  const auto known = types_.find(id);
  if (known != types_.end()) return known->second;
  const Types found = find_types(id, depth);
  if (depth == 0) types_.emplace(id, found);
  return found;
}

inline std::vector<const Json*> Keywords::constants(SchemaId id) {
  std::vector<const Json*> out;
  if (const Json* const value = find(id, "const")) return {value};
  const Json* const values = find(id, "enum");
  if (values == nullptr || !values->is_array()) return out;
  for (const Json& value : *values) out.push_back(&value);
  return out;
}

inline bool Keywords::disjoint_values(SchemaId a, SchemaId b) {
  const auto some = constants(a), others = constants(b);
  if (some.empty() || others.empty()) return false;
  return std::none_of(some.begin(), some.end(), [&](const Json* value) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Json* other) { return equal(*value, *other); });
  });
}

inline bool Keywords::disjoint_members(SchemaId a, SchemaId b, int depth) {
  for (int turn = 0; turn < 2; ++turn, std::swap(a, b)) {
    const Json* const required = find(a, "required");
    const Json* const other = find(b, "properties");
    if (required == nullptr || !required->is_array()) continue;
    for (const Json& name : *required) {
      if (!name.is_string()) continue;
      const auto& text = name.get_ref<const std::string&>();
      const Json* const theirs =
          other != nullptr && other->is_object() ? document_.member(*other, text) : nullptr;
      if (theirs == nullptr) {
        const Json* const additional = find(b, "additionalProperties");
        if (additional != nullptr && additional->is_boolean() && !additional->get<bool>() &&
            find(b, "patternProperties") == nullptr)
          return true;
        continue;
      }
      if (theirs->is_boolean() && !theirs->get<bool>()) return true;
      const Json* const own = find(a, "properties");
      const Json* const ours = own != nullptr && own->is_object() ? document_.member(*own, text) : nullptr;
      if (ours != nullptr &&
          disjoint(child(a, *ours, "properties"), child(b, *theirs, "properties"), depth + 1))
        return true;
    }
  }
  return false;
}

inline bool Keywords::disjoint(SchemaId a, SchemaId b, int depth) {
  if (depth > 6) return false;
  const Types types = types_of(a, depth) & types_of(b, depth);
  if (types == 0) return true;
  if (!document_.json(a).is_object() || !document_.json(b).is_object()) return false;
  for (const SchemaId each : parts(a)) {
    if (disjoint(each, b, depth + 1)) return true;
  }
  for (const SchemaId each : parts(b)) {
    if (disjoint(a, each, depth + 1)) return true;
  }
  if (only_reference(a) || only_reference(b)) return false;
  if (disjoint_values(a, b)) return true;
  return (types & ~object_type) == 0 && disjoint_members(a, b, depth);
}

}  // namespace mica::schema
