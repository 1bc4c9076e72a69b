// SPDX-License-Identifier: Apache-2.0
//
// A case: one way in which a value can meet its schemas, keyword by keyword. A need is what a value must
// meet: a set of schemas, each with its sign. cases.hpp turns a need into cases; json_rules.hpp turns cases
// into expressions.
//
//   {"anyOf": [{"type": "string"}, {"minimum": 1}]}      two cases: strings; all but numbers below 1
#pragma once

#include "mica_tools/schema/document.hpp"
#include "mica_tools/schema/numbers.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::schema {

/// A schema that a value must meet, or must not.
struct Literal {
  SchemaId schema = 0;
  bool meets = true;
  friend auto operator<=>(const Literal&, const Literal&) = default;
};
[[nodiscard]] inline Literal negated(Literal literal) noexcept { return {literal.schema, !literal.meets}; }

/// A set of literals, rising. The empty one is met by every value.
using Literals = std::vector<Literal>;
/// The number of a set in a Cases object.
using NeedId = std::uint32_t;

/// Kinds of values, as bits. Integers are numbers without a fraction, whichever way they are written.
using Types = std::uint16_t;
enum Type : Types {
  null_type = 1,
  false_type = 2,
  true_type = 4,
  integer_type = 8,
  fraction_type = 16,
  string_type = 32,
  array_type = 64,
  object_type = 128,
  boolean_types = false_type | true_type,
  number_types = integer_type | fraction_type,
  all_types = 255
};
[[nodiscard]] Types type_of(const Json& value);

/// No maximum.
inline constexpr std::uint64_t no_max = std::numeric_limits<std::uint64_t>::max();

/// The smallest and the largest count.
struct Counts {
  std::uint64_t min = 0, max = no_max;
  [[nodiscard]] bool contains(std::uint64_t n) const noexcept { return n >= min && n <= max; }
  [[nodiscard]] bool empty() const noexcept { return min > max; }
};

/// A text that must, or must not, be found.
struct Wanted {
  std::string text;
  bool found = true;
};

/// What a string must be.
struct StringNeed {
  Counts length;  // code points
  std::vector<Wanted> patterns, formats;
  std::vector<std::string> excluded;
  [[nodiscard]] bool is_free() const noexcept {
    return patterns.empty() && formats.empty() && excluded.empty();
  }
};

/// What one schema says about all members: `properties`, `patternProperties`, `additionalProperties`.
struct MemberGroup {
  SchemaId schema = 0;
  const Json* properties = nullptr;
  const Json* patterns = nullptr;
  std::optional<Literal> others;  // names that neither of them has
  std::uint32_t scopes = 0;       // of unevaluatedProperties for which these names are evaluated
};
/// `unevaluatedProperties`, `unevaluatedItems`: members or items that no keyword of its scope has evaluated.
struct Unevaluated {
  std::uint32_t scope;  // a bit
  Literal value;
  std::uint32_t scopes = 0;  // within which it stands itself: it evaluates all that is left
};
/// Adds the literals of unevaluated keywords whose scopes are not among those that are evaluated.
inline void add_unevaluated(const std::vector<Unevaluated>& all, std::uint32_t evaluated, Literals& out) {
  for (std::size_t i = all.size(); i > 0; --i) {  // inner ones are later
    const Unevaluated& each = all[i - 1];
    if ((evaluated & each.scope) != 0) continue;
    out.push_back(each.value);
    evaluated |= each.scopes;
  }
}
/// A member that must be there: one whose name is none of `names`, matches none of `patterns` but `pattern`,
/// and whose value meets the literal; or whose name does, with `is_name`.
struct Obligation {
  const Json* names = nullptr;
  const Json* patterns = nullptr;
  std::string pattern;  // empty: none
  Literal value;
  bool is_name = false;
  bool by_other = false;  // by a member that no keyword names
};

/// What an object must be.
struct ObjectNeed {
  std::vector<MemberGroup> groups;
  std::vector<Unevaluated> unevaluated;
  std::vector<std::pair<std::string, Literal>> members;  // if it is there, its value meets this
  std::vector<std::string> required, forbidden;
  std::vector<Literal> names;  // of every name, as a string
  std::vector<Obligation> obligations;
  Counts count;
};

/// What one schema says about all items: `prefixItems`, `items`.
struct ItemGroup {
  SchemaId schema = 0;
  const Json* first = nullptr;  // an array of schemas
  std::optional<Literal> others;
  std::uint32_t scopes = 0;
};
/// Items from a place on that must meet a schema: how many.
struct Contained {
  Literal value;
  Counts count;
  std::uint64_t from = 0;
};

/// What an array must be.
struct ArrayNeed {
  std::vector<ItemGroup> groups;
  std::vector<Unevaluated> unevaluated;
  std::vector<std::pair<std::uint64_t, Literal>> items;
  std::vector<Contained> contained;
  Counts count;
  bool unique = false;
  SchemaId unique_at = 0;
};

/// One way to meet a need. For values of each of its types, what they must be.
struct Case {
  Types types = all_types;
  std::optional<std::vector<const Json*>> values;  // the value is one of these, if there are any
  NumberNeed number;
  StringNeed string;
  ObjectNeed object;
  ArrayNeed array;
};

inline Types type_of(const Json& value) {
  using Kind = nlohmann::json::value_t;
  switch (value.type()) {
    case Kind::null:
      return null_type;
    case Kind::boolean:
      return value.get<bool>() ? true_type : false_type;
    case Kind::string:
      return string_type;
    case Kind::array:
      return array_type;
    case Kind::object:
      return object_type;
    default: {
      const auto decimal = decimal_of(value);
      return decimal && decimal->is_integer() ? integer_type : fraction_type;
    }
  }
}

}  // namespace mica::schema
