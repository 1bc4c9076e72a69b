// SPDX-License-Identifier: Apache-2.0
//
// How JSON of a schema is written, and what a schema may cost.
#pragma once

#include "mica/constraint/recognizer.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::schema {

/// White space between the tokens of a JSON text.
enum class Whitespace : std::uint8_t {
  compact,  ///< none: {"a":[1,2]}
  spaced,   ///< one space after each comma and colon: {"a": [1, 2]}
  any       ///< any number of spaces, tabs and line ends
};

/// The order of the members of an object.
enum class MemberOrder : std::uint8_t {
  schema,  ///< as `properties` lists them, others after them; a model has fewer ways to go wrong
  any      ///< every order, as JSON Schema allows
};

/// The meaning of `format`.
enum class Formats : std::uint8_t {
  enforced,   ///< known formats are enforced, others are annotations
  annotation  ///< all are annotations, as JSON Schema has it without an option
};

/// Options of a schema. Limits end with ErrorCode::limit.
struct SchemaOptions {
  Whitespace whitespace = Whitespace::compact;
  MemberOrder order = MemberOrder::schema;
  Formats formats = Formats::enforced;
  /// Objects may have members that the schema does not mention. false: only where it lists no members, or
  /// where additionalProperties, patternProperties or another keyword is about the others.
  bool unlisted_members = true;
  std::size_t max_bytes = std::size_t{4} << 20;  // of the text of the schema
  std::size_t max_cases = 5000;                  // ways in which one value can meet its schemas
  std::size_t max_needs = 100'000;               // different sets of schemas that a value must meet
  std::size_t max_expression_bytes = std::size_t{48} << 20;
};

}  // namespace mica::schema
