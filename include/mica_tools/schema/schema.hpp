// SPDX-License-Identifier: Apache-2.0
//
// JSON Schema (2020-12, and 7, 6, 4 where they differ) as a language of JSON texts. What a schema says is
// enforced exactly, or refused by keyword; docs/constraints.md has the list.
#pragma once

#include "mica/constraint/rules.hpp"
#include "mica_tools/schema/json_rules.hpp"
#include "mica_tools/schema/schema_options.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace mica::schema {

/// The JSON texts of a schema. Raises ErrorCode::usage for a text that is no schema, or that no value meets;
/// unsupported for a keyword that is not enforced, with its place; limit for a schema that is too large.
[[nodiscard]] inline constraint::Language parse_schema(std::string_view text,
                                                       const SchemaOptions& options = {}) {
  constraint::Language out;
  out.expressions = std::make_unique<Expressions>(options.max_expression_bytes);
  auto rules = std::make_unique<JsonRules>(text, *out.expressions, options);
  out.start = rules->spaced(rules->texts(rules->document().root()));
  out.rules = std::move(rules);
  return out;
}

}  // namespace mica::schema
