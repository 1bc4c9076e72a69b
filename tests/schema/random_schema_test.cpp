// SPDX-License-Identifier: Apache-2.0
//
// Random schemas and random values: the texts of a schema are compared with a validator that reads keywords
// one by one. Both share how keywords are read, and nothing of how they are combined.

#include "mica/base/rng.hpp"
#include "mica_tools/schema/cases.hpp"
#include "schema_texts.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mica::test::random_schema_test {
namespace {

using schema::Json;

/// Small random schemas and values over the same few names, texts and numbers, so that they meet often.
class Source {
 public:
  explicit Source(std::uint64_t seed) : rng_(seed) {}

  Json value(int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return static_cast<int>(below(7)) - 2;
      case 3:
        return (static_cast<double>(below(9)) - 3) / 2;
      case 4:
      case 5:
        return text();
      case 6: {
        Json out = Json::array();
        for (std::uint64_t n = below(4); n > 0; --n) out.push_back(value(depth - 1));
        return out;
      }
      default: {
        Json out = Json::object();
        for (std::uint64_t n = below(4); n > 0; --n) out[name()] = value(depth - 1);
        return out;
      }
    }
  }

  Json schema(int depth) {
    if (below(12) == 0) return below(3) != 0;
    Json out = Json::object();
    for (std::uint64_t n = 1 + below(3); n > 0; --n) add_keyword(out, depth);
    return out;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return rng_.next() % n; }
  std::string name() { return std::string(1, static_cast<char>('a' + below(4))); }
  std::string text() {
    std::string out;
    for (std::uint64_t n = below(4); n > 0; --n) out += static_cast<char>('a' + below(3));
    return out;
  }
  Json list(int depth) {
    Json out = Json::array();
    for (std::uint64_t n = 1 + below(3); n > 0; --n) out.push_back(schema(depth - 1));
    return out;
  }
  void add_keyword(Json& out, int depth) {
    constexpr const char* types[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    constexpr const char* patterns[] = {"^a", "b", "c$", "^(ab|c)*$", "^.{2}$"};
    switch (below(depth > 0 ? 24 : 9)) {
      case 0:
      case 1:
        out["type"] = types[below(7)];
        return;
      case 2:
        out["enum"] = Json::array({value(1), value(1), value(0)});
        return;
      case 3:
        out[below(2) == 0 ? "minimum" : "exclusiveMaximum"] = static_cast<int>(below(6)) - 2;
        return;
      case 4:
        out[below(2) == 0 ? "minLength" : "maxLength"] = below(4);
        return;
      case 5:
        out["pattern"] = patterns[below(5)];
        return;
      case 6:
        out["required"] = Json::array({name()});
        return;
      case 7:
        out[below(2) == 0 ? "minItems" : "maxItems"] = below(4);
        return;
      case 8:
        out["multipleOf"] = below(2) == 0 ? Json(2) : Json(0.5);
        return;
      case 9:
      case 10:
        out["properties"] = {{name(), schema(depth - 1)}, {name(), schema(depth - 1)}};
        return;
      case 11:
        out["additionalProperties"] = schema(depth - 1);
        return;
      case 12:
        out["patternProperties"] = {{patterns[below(2)], schema(depth - 1)}};
        return;
      case 13:
        out["items"] = schema(depth - 1);
        return;
      case 14:
        out["prefixItems"] = list(depth);
        return;
      case 15:
        out["contains"] = schema(depth - 1);
        return;
      case 16:
        out["allOf"] = list(depth);
        return;
      case 17:
        out["anyOf"] = list(depth);
        return;
      case 18:
        out["oneOf"] = list(depth);
        return;
      case 19:
        out["not"] = schema(depth - 1);
        return;
      case 20:
        out["if"] = schema(depth - 1);
        out["then"] = schema(depth - 1);
        return;
      case 21:
        out["propertyNames"] = schema(depth - 1);
        return;
      case 22:
        out["dependentSchemas"] = {{name(), schema(depth - 1)}};
        return;
      default:
        out["maxProperties"] = below(3);
    }
  }

  CounterRng rng_;
};

struct Counts {
  std::size_t compared = 0, met = 0, refused = 0, unmet = 0;
};

void compare(std::uint64_t seed, Counts& counts) {
  Source source(seed);
  const std::string text = source.schema(3).dump();
  CAPTURE(seed);
  CAPTURE(text);
  const schema::SchemaOptions options{.order = schema::MemberOrder::any};
  schema::Document document(text, options);
  schema::Expressions expressions;
  schema::Strings strings(expressions);
  schema::Cases cases(document, strings, options);
  std::unique_ptr<SchemaTexts> texts;
  try {
    texts = std::make_unique<SchemaTexts>(text, options);
  } catch (const Error& error) {
    const bool none = error.message().find("no value meets") != std::string::npos;
    ++(none ? counts.unmet : counts.refused);
    if (!none) return;
  }
  for (int i = 0; i < 60; ++i) {
    const Json value = source.value(2);
    const bool meets = cases.meets(value, {document.root()});
    CAPTURE(value.dump());
    std::string json = value.dump();
    // An integer is written without a fraction.
    for (std::size_t at = json.find(".0"); at != std::string::npos; at = json.find(".0")) json.erase(at, 2);
    REQUIRE((texts && texts->has(json)) == meets);
    ++counts.compared;
    counts.met += meets;
  }
}

}  // namespace

TEST_CASE("random values are texts of random schemas if and only if they meet them") {
  Counts counts;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) compare(seed, counts);
  CHECK(counts.compared > 15'000);
  CHECK(counts.met > 3'000);
  CHECK(counts.refused < 40);
}

}  // namespace mica::test::random_schema_test
