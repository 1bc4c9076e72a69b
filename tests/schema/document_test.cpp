// SPDX-License-Identifier: Apache-2.0
//
// What references refer to, by the drafts of JSON Schema.

#include "mica_tools/schema/document.hpp"

#include "check_schema.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::document_test {
namespace {

const std::string draft4 = R"("$schema":"http://json-schema.org/draft-04/schema#",)",
                  draft7 = R"("$schema":"http://json-schema.org/draft-07/schema#",)";

}  // namespace

TEST_CASE("a pointer leads through objects and arrays, by escaped keys") {
  const std::string schema =
      R"({"prefixItems":[{"type":"null"},{"type":"integer"}],"$defs":{"a/b":{"type":"integer"},
      "m~n":{"type":"integer"},"c%d":{"type":"integer"},"é":{"type":"integer"},"":{"type":"integer"},
      "0":{"type":"integer"}},"title":"x","properties":{"p":{"$ref":")";
  for (const char* const reference : {"#/$defs/a~1b", "#/$defs/m~0n", "#/$defs/c%25d", "#/$defs/%C3%A9",
                                      "#/$defs/%c3%a9", "#/$defs/", "#/$defs/0", "#/prefixItems/1"})
    check(schema + reference + "\"}}}", {R"({"p":1})"}, {R"({"p":"1"})", R"({"p":null})"});
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"#/$defs/none", "nothing is at '#/$defs/none'"},
      {"#/prefixItems/2", "nothing is at"},
      {"#/prefixItems/x", "nothing is at"},
      {"#/prefixItems/01", "nothing is at"},
      {"#/prefixItems/", "nothing is at"},
      {"#/prefixItems/-", "nothing is at"},
      {"#/prefixItems/123456789", "nothing is at"},
      {"#/title/x", "nothing is at"},
      {"#/title", "'#/title' is no schema"},
      {"#/prefixItems", "'#/prefixItems' is no schema"},
      {"#/$defs/%zz", "its fragment has a damaged %XX"},
      {"#none", "no schema has the anchor 'none'"},
      {"other.json", "'other.json' is in another document"},
      {"other.json#x", "'other.json#x' is in another document"}};
  for (const auto& [reference, why] : wrong) {
    const std::string message = refusal(schema + reference + "\"}}}");
    CAPTURE(message);
    CHECK(contains(message, "schema: '$ref' at #/properties/p: "));
    CHECK(contains(message, why));
  }
}

TEST_CASE("the place of a refusal is a JSON pointer") {
  const std::string wrong = R"({"pattern":"(a)\\1"})";
  CHECK(contains(refusal(R"({"properties":{"a/b~":)" + wrong + "}}"), "'pattern' at #/properties/a~1b~0: "));
  CHECK(contains(refusal(R"({"allOf":[true,)" + wrong + "]}"), "'pattern' at #/allOf/1: "));
  CHECK(contains(refusal(wrong), "'pattern' at #: "));
}

TEST_CASE("identifiers and anchors have the base of the schema around them") {
  const Texts good = {R"({"p":1})"}, bad = {R"({"p":"1"})"};
  const std::string integer = R"("type":"integer"})";
  for (
      const std::string& schema : {
          R"({"$id":"http://x/a/b","properties":{"p":{"$ref":"../c#in"}},
               "$defs":{"q":{"$id":"/c","$defs":{"r":{"$anchor":"in",)" +
              integer + "}}}}",
          // a pointer into another resource, and a reference from there
          R"({"$id":"http://x/a","properties":{"p":{"$ref":"#/$defs/q/properties/z"}},"$defs":{"q":{"$id":"b",
               "properties":{"z":{"$ref":"#/$defs/w"}},"$defs":{"w":{)" +
              integer + R"(}},"w":{"type":"string"}}})",
          R"({"properties":{"p":{"$id":"http://x/b","$ref":"#/$defs/w","$defs":{"w":{)" + integer +
              R"(}}},"$defs":{"w":{"type":"string"}}})",
          // a resource of an older draft: what is beside $ref is ignored
          R"({"$id":"http://x/a","properties":{"p":{"$ref":"old"}},"$defs":{"o":{"$id":"old",)" + draft7 +
              R"("allOf":[{"$ref":"#/definitions/i","maximum":0}],"definitions":{"i":{)" + integer + "}}}}",
          "{" + draft7 + R"("properties":{"p":{"$ref":"#foo"}},"definitions":{"a":{"$id":"#foo",)" + integer +
              "}}",
          "{" + draft7 + R"("properties":{"p":{"$ref":"b#foo"}},"definitions":{"a":{"$id":"b#foo",)" +
              integer + "}}",
          "{" + draft4 + R"("id":"http://x/r.json","properties":{"p":{"$ref":"i.json"}},
               "definitions":{"a":{"id":"i.json",)" +
              integer + "}}",
          "{" + draft4 + R"("properties":{"p":{"$ref":"#/definitions/a"}},
               "definitions":{"a":{"$id":"http://y/","allOf":[{"$ref":"#/definitions/b"}]},"b":{)" +
              integer + "}}",
          // identifiers that are no texts
          R"({"$id":1,"$schema":2,"properties":{"p":{"$anchor":3,)" + integer + "}}",
          R"({"$schema":"https://example.com/mine","properties":{"p":{)" + integer + "}}"})
    check(schema, good, bad);
}

TEST_CASE("before draft 2019-09, nothing beside $ref counts, an identifier neither") {
  check("{" + draft7 + R"("$id":"http://x/s/base/","definitions":{"foo":{"$id":"http://x/s/foo.json",
      "type":"string"},"base_foo":{"$id":"foo.json","type":"number"}},
      "allOf":[{"$id":"http://x/s/","$ref":"foo.json"}]})",
        {"1"}, {"\"a\""});
}

TEST_CASE("names in constants, enumerations, defaults and examples are no anchors") {
  const std::string anchored = R"({"$anchor":"a","type":"null"})";
  for (const std::string& values : {R"("const":)" + anchored, R"("enum":[)" + anchored + "]",
                                    R"("default":)" + anchored, R"("examples":[)" + anchored + "]"})
    CHECK(
        contains(refusal(R"({"$ref":"#a","$defs":{"x":{)" + values + "}}}"), "no schema has the anchor 'a'"));
}

TEST_CASE("a property or definition may have the name of a keyword, and anchors in it") {
  for (const char* const name : {"const", "enum", "default", "examples", "properties", "$id", "$anchor"}) {
    const std::string anchored = "\"" + std::string(name) + R"(":{"$anchor":"a","type":"integer"})";
    check(R"({"properties":{)" + anchored + R"(,"b":{"$ref":"#a"}},"required":["b"]})", {R"({"b":1})"},
          {R"({"b":"1"})"});
    check(R"({"$ref":"#a","$defs":{)" + anchored + "}}", {"1"}, {"null"});
  }
}

TEST_CASE("since draft 2019-09, an identifier has no fragment") {
  CHECK(
      contains(refusal(R"({"$ref":"#foo","$defs":{"a":{"$id":"#foo"}}})"), "no schema has the anchor 'foo'"));
}

TEST_CASE("a reference may go to a boolean") {
  check(R"({"properties":{"p":{"$ref":"#/$defs/no"},"q":{"$ref":"#/$defs/yes"}},
      "$defs":{"no":false,"yes":true}})",
        {R"({"q":1})", "{}"}, {R"({"p":1})"}, any_order);
}

TEST_CASE("a dynamic anchor that is there once is as any other one") {
  const std::string schema = R"({"$dynamicRef":"#a","$defs":{"x":{"$dynamicAnchor":"a","type":"integer"})";
  check(schema + "}}", {"1"}, {"\"a\""});
  const std::string twice = schema + R"(,"y":{"$id":"y","$dynamicAnchor":"a"}}})";
  CHECK(contains(refusal(twice), "the anchor 'a' is there several times"));
  check(R"({"$ref":"#a","$defs":{"x":{"$dynamicAnchor":"a","type":"integer"},"y":{"$id":"y",
      "$dynamicAnchor":"a"}}})",
        {"1"}, {"\"a\""});
  check(R"({"$schema":"https://json-schema.org/draft/2019-09/schema","type":["array","null"],
      "items":{"$recursiveRef":"#"}})",
        {"null", "[[null],[]]"}, {"1", "[1]"});
}

TEST_CASE("an object of many properties has each of them") {
  std::string properties, text;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "\"p" + std::to_string(i) + "\":";
    properties += (i > 0 ? "," : "") + name + R"({"type":"integer"})";
    text += (i > 0 ? "," : "") + name + "1";
  }
  const std::string schema = R"({"type":"object","required":["p11","x"],"properties":{)" + properties + "}}";
  check(schema, {"{" + text + R"(,"x":null})", R"({"p3":1,"p11":2,"x":"a"})"},
        {"{" + text + "}", R"({"p3":"a","p11":2,"x":1})"}, any_order);
}

TEST_CASE("a schema is an object or a boolean, and not too long") {
  check("true", {"1"}, {});
  for (const char* const text : {"1", "[]", "null", "\"a\""})
    CHECK(contains(refusal(text), "found neither an object nor a boolean"));
  CHECK(contains(refusal(R"({"type":"null"})", {.max_bytes = 14}), "found 15 bytes, allowed are 14"));
}

}  // namespace mica::test::document_test
