// SPDX-License-Identifier: Apache-2.0
//
// What a keyword does to a case, as a value: a step that must be taken, or one of several alternatives.
#pragma once

#include "mica_tools/schema/case.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mica::schema {

/// A literal, and the scopes of unevaluated keywords within which it stands.
struct ScopedLiteral {
  Literal literal;
  std::uint32_t scopes = 0;
};

/// One change of a case.
struct Edit {
  enum class Kind : std::uint8_t {
    literal,     // the value meets `literal`
    types,       // it is of `types`
    require,     // an object has the member `text`
    forbid,      // and has not
    member,      // the member `text` meets `literal`, if it is there
    name,        // all names meet `literal`
    obligation,  // some member does: `obligation`
    item,        // item `number` meets `literal`, if it is there
    contained,   // `counts` of the items from `number` on meet `literal`
    counts_members,
    counts_items,
    counts_characters,  // within `counts`
    pattern,
    format,  // `text` is found, or not: `flag`
    at_least,
    at_most,   // `value`; itself excluded: `flag`
    multiple,  // of `value`, or not: `flag`
    exclude    // the value is not `json`
  };
  Kind kind;
  ScopedLiteral literal = {};
  Types types = 0;
  std::string text = {};
  std::uint64_t number = 0;
  Counts counts = {};
  bool flag = true;
  Decimal value = {};
  const Json* json = nullptr;
  Obligation obligation = {};
};
using Edits = std::vector<Edit>;

/// Makes edits.
namespace edit {

[[nodiscard]] inline Edit literal(Literal literal, std::uint32_t scopes = 0) {
  return {.kind = Edit::Kind::literal, .literal = {literal, scopes}};
}
[[nodiscard]] inline Edit types(int types) {
  return {.kind = Edit::Kind::types, .types = static_cast<Types>(types & all_types)};
}
[[nodiscard]] inline Edit require(std::string name) {
  return {.kind = Edit::Kind::require, .text = std::move(name)};
}
[[nodiscard]] inline Edit forbid(std::string name) {
  return {.kind = Edit::Kind::forbid, .text = std::move(name)};
}
[[nodiscard]] inline Edit member(std::string name, Literal value) {
  return {.kind = Edit::Kind::member, .literal = {value, 0}, .text = std::move(name)};
}
[[nodiscard]] inline Edit item(std::uint64_t i, Literal value) {
  return {.kind = Edit::Kind::item, .literal = {value, 0}, .number = i};
}
[[nodiscard]] inline Edit contained(Literal value, Counts counts, std::uint64_t from = 0) {
  return {.kind = Edit::Kind::contained, .literal = {value, 0}, .number = from, .counts = counts};
}
[[nodiscard]] inline Edit count(Edit::Kind kind, std::uint64_t min, std::uint64_t max) {
  return {.kind = kind, .counts = {min, max}};
}
[[nodiscard]] inline Edit found(Edit::Kind kind, std::string text, bool found) {
  return {.kind = kind, .text = std::move(text), .flag = found};
}
[[nodiscard]] inline Edit bound(Edit::Kind kind, Decimal value, bool exclusive) {
  return {.kind = kind, .flag = exclusive, .value = std::move(value)};
}

}  // namespace edit
}  // namespace mica::schema
