// SPDX-License-Identifier: Apache-2.0
//
// Checks of the texts that a schema has, and of the sentence with which it is refused.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/schema/schema.hpp"
#include "schema_texts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

using Texts = std::vector<std::string>;

inline const schema::SchemaOptions any_order{.order = schema::MemberOrder::any};

/// Checks that the schema has all texts of `good` and none of `bad`.
inline void check(std::string_view schema, const Texts& good, const Texts& bad,
                  schema::SchemaOptions options = {}) {
  CAPTURE(std::string(schema));
  SchemaTexts texts(schema, options);
  for (const std::string& text : good) {
    CAPTURE(text);
    CHECK(texts.has(text));
  }
  for (const std::string& text : bad) {
    CAPTURE(text);
    CHECK_FALSE(texts.has(text));
  }
}

/// The message of the refusal, or "" where there is none.
inline std::string refusal(std::string_view schema, schema::SchemaOptions options = {}) {
  try {
    static_cast<void>(schema::parse_schema(schema, options));
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace mica::test
