// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/schema/schema.hpp"

#include "check_schema.hpp"
#include "mica_tools/schema/explain.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace mica::test::schema_test {

TEST_CASE("types allow their values and no other ones") {
  check(R"({"type":"null"})", {"null"}, {"nul", "0", "\"null\"", ""});
  check(R"({"type":"boolean"})", {"true", "false"}, {"True", "1"});
  check(R"({"type":"integer"})", {"0", "-1", "120"}, {"01", "1.5", "-0", "1e2", "+1", "-"});
  check(R"({"type":"number"})", {"0", "-0.5", "1e+10", "2E-3", "10.25"}, {".5", "1.", "1e", "00"});
  check(R"({"type":"string"})", {R"("")", R"("a\n\u00e9\ud83d\ude00é")"},
        {R"("a)", "\"\n\"", R"("\x")", R"("\ud83d")"});
  check(R"({"type":"array"})", {"[]", "[1,[null],{}]"}, {"[1,]", "[", "[1 2]"});
  check(R"({"type":"object"})", {"{}", R"({"a":{"b":[]}})"}, {"{a:1}", R"({"a"})", R"({"a":1,})"});
  check(R"({"type":["string","null"]})", {"null", "\"\""}, {"0"});
  check("true", {"1", "[{}]"}, {"x"});
}

TEST_CASE("numbers are within their bounds, at any number of digits") {
  check(R"({"type":"integer","minimum":-12,"maximum":205})", {"-12", "0", "205", "99", "-1"},
        {"-13", "206", "1000", "300"});
  check(R"({"type":"number","exclusiveMinimum":0,"maximum":1.5})", {"0.001", "1.5", "1.50", "1", "1e-3"},
        {"0", "0.0", "1.51", "2", "-1", "1e1"});
  check(R"({"type":"integer","multipleOf":7})", {"0", "7", "-14", "700"}, {"1", "8", "-13"});
  check(R"({"type":"number","multipleOf":0.25})", {"0.5", "1", "3.250"}, {"0.1", "1.3"});
  check(R"({"type":"integer","minimum":10,"not":{"multipleOf":2}})", {"11", "13"}, {"10", "12", "9"});
  check(R"({"$schema":"http://json-schema.org/draft-04/schema#","minimum":3,"exclusiveMinimum":true})",
        {"4", "\"a\""}, {"3", "2"});
}

TEST_CASE("lengths count code points, and an escape is one") {
  check(R"({"type":"string","minLength":2,"maxLength":3})",
        {R"("ab")", R"("é€😀")", R"("\n\n")", R"("\ud83d\ude00a")"},
        {R"("a")", R"("abcd")", R"("\ud83d\ude00")"});
}

TEST_CASE("patterns search, formats are whole, and both hold together") {
  check(R"({"type":"string","pattern":"b+"})", {R"("abc")", R"("b")"}, {R"("ac")"});
  check(R"({"type":"string","pattern":"^a","minLength":3,"not":{"pattern":"z$"}})", {R"("abc")"},
        {R"("ab")", R"("abz")", R"("bbb")"});
  check(R"({"type":"string","format":"date"})", {R"("2024-02-29")"}, {R"("2023-02-29")", R"("2024-2-9")"});
  check(R"({"type":"string","format":"ipv4"})", {R"("127.0.0.1")"}, {R"("256.0.0.1")", R"("1.2.3")"});
  check(R"({"type":"string","format":"ipv6"})", {R"("::1")", R"("1:2::7:8")", R"("::ffff:1.2.3.4")"},
        {R"("1:2:3")", R"(":1")", R"("1::2::3")"});
  check(R"({"type":"string","format":"uuid"})", {R"("2eb8aa08-aa98-11ea-b4aa-73b441d16380")"},
        {R"("2eb8aa08aa9811eab4aa73b441d16380")"});
  check(R"({"type":"string","format":"of-mine"})", {R"("anything")"}, {"1"});
  check(R"({"type":"string","format":"date"})", {R"("today")"}, {"1"},
        {.formats = schema::Formats::annotation});
}

TEST_CASE("objects have their members in the order of the schema, or in any order") {
  const std::string_view schema =
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["b"],"additionalProperties":false})";
  check(schema, {R"({"a":1,"b":true})", R"({"b":false})"},
        {R"({"b":true,"a":1})", "{}", R"({"a":1})", R"({"b":true,"c":1})", R"({"b":1})"});
  check(schema, {R"({"a":1,"b":true})", R"({"b":true,"a":1})"}, {R"({"b":true,"b":true})", "{}"}, any_order);
  SchemaTexts texts(schema);
  CHECK(texts.next("{") == "\"");
  CHECK(texts.next("{\"") == "ab");
  CHECK(texts.next("{\"a\":1") == ",0123456789");
}

TEST_CASE("members that the schema does not mention are left out, where an option says so") {
  schema::SchemaOptions closed;
  closed.unlisted_members = false;
  closed.order = schema::MemberOrder::any;
  const std::string a = R"({"properties":{"a":{"type":"integer"}})";
  check(a + "}", {"{}", R"({"a":1})"}, {R"({"b":1})", R"({"a":1,"b":1})"}, closed);
  check(R"({"properties":{}})", {"{}", "7"}, {R"({"b":1})"}, closed);
  check(R"({"type":"object"})", {"{}", R"({"b":1})"}, {}, closed);
  for (const char* const about_others :
       {R"("additionalProperties":true)", R"("patternProperties":{"^b":{}})",
        R"("propertyNames":{"maxLength":1})", R"("unevaluatedProperties":{})"})
    check(a + "," + about_others + "}", {R"({"a":1,"b":1})"}, {}, closed);
  check(R"({"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}},"required":["b"]}]})",
        {R"({"a":1,"b":1})"}, {R"({"b":1,"c":1})"}, closed);
  check(R"({"type":"array","items":{"properties":{"a":{}}}})", {R"([{"a":1},{}])"}, {R"([{"b":1}])"}, closed);
}

TEST_CASE("names are covered by properties, patterns and what is left") {
  check(
      R"({"properties":{"x1":{"type":"null"}},"patternProperties":{"^x":{"type":["null","integer"]}},"additionalProperties":{"type":"string"}})",
      {R"({"x1":null,"x2":3,"y":"s"})"}, {R"({"x1":3})", R"({"x2":"s"})", R"({"y":3})"}, any_order);
  check(R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$"},"minProperties":1,"maxProperties":2})",
        {R"({"ab":1})", R"({"a":1,"b":2})"}, {"{}", R"({"A":1})", R"({"a":1,"b":2,"c":3})"});
}

TEST_CASE("items, prefixItems, contains and uniqueItems") {
  check(
      R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"string"},"minItems":2,"maxItems":3})",
      {R"([1,"a"])", R"([1,"a","b"])"}, {"[1]", R"([1,2])", R"([1,"a","b","c"])"});
  check(
      R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"minContains":2,"maxContains":2,"maxItems":4})",
      {"[5,6]", "[1,5,2,9]"}, {"[5]", "[5,5,5]", "[1,2,3,5]"});
  check(R"({"type":"array","items":{"enum":["a","b"]},"uniqueItems":true})", {"[]", R"(["b","a"])"},
        {R"(["a","a"])", R"(["a","b","a"])"});
  check(R"({"items":[{"type":"null"}],"additionalItems":false})", {"[]", "[null]", "7"},
        {"[1]", "[null,null]"});
}

TEST_CASE("combinations are exact, also where their parts overlap") {
  check(R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "\"a\""}, {"3", "1.5"});
  check(R"({"anyOf":[{"type":"integer"},{"type":"number","minimum":2}]})", {"1", "2.5", "3"}, {"1.5"});
  check(R"({"allOf":[{"minimum":2},{"maximum":3}],"type":"integer"})", {"2", "3"}, {"1", "4"});
  check(R"({"not":{"type":"object","required":["a"]},"type":"object"})", {"{}", R"({"b":1})"}, {R"({"a":1})"},
        any_order);
  check(R"({"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]})",
        {R"({"a":1})", R"({"b":1,"c":2})"}, {"{}", R"({"a":1,"b":1})"}, any_order);
  check(
      R"({"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"required":["x"]},"else":{"required":["y"]},"type":"object"})",
      {R"({"k":1,"x":0})", R"({"k":2,"y":0})", R"({"y":0})"}, {R"({"k":1,"y":0})", R"({"x":0})"}, any_order);
  check(R"({"type":"object","dependentRequired":{"a":["b"]}})", {"{}", R"({"b":1})", R"({"a":1,"b":1})"},
        {R"({"a":1})"}, any_order);
}

TEST_CASE("constants and enumerations obey the keywords beside them") {
  check(R"({"enum":[1,"ab",null,[1,{"a":2}]],"not":{"type":"null"}})", {"1", R"("ab")", R"([1,{"a":2}])"},
        {"null", "2", "[1]"});
  check(R"({"const":{"a":1,"b":2}})", {R"({"a":1,"b":2})", R"({"b":2,"a":1})"}, {R"({"a":1})"}, any_order);
  check(R"({"enum":["abc","b"],"minLength":2})", {R"("abc")"}, {R"("b")"});
}

TEST_CASE("values are equal whatever the order of members and the spelling of numbers") {
  const std::string object = R"({"a":1,"b":[2]})";
  check(R"({"allOf":[{"const":{"a":1,"b":[2]}},{"enum":[{"b":[2],"a":1}]}]})", {object}, {"{}"});
  check(R"({"enum":[{"a":1,"b":[2]},3],"not":{"const":{"b":[2.0],"a":1}}})", {"3"}, {object});
  check(R"({"enum":[[{"a":1,"b":[2]}],1.0],"not":{"const":[{"b":[2],"a":1}]}})", {"1"}, {"[" + object + "]"});
  check(R"({"oneOf":[{"enum":[{"a":1,"b":[2]},4]},{"enum":[{"b":[2],"a":1},null]}]})", {"4", "null"},
        {object});
  check(R"({"enum":[9007199254740993,1],"not":{"const":9007199254740992.0}})", {"9007199254740993"}, {"2"});
  CHECK(schema::equal(schema::Json::parse("[1,{}]"), schema::Json::parse("[1.0,{}]")));
  CHECK_FALSE(schema::equal(schema::Json::parse(R"({"a":1})"), schema::Json::parse(R"({"b":1})")));
  CHECK_FALSE(schema::equal(schema::Json(1.0), schema::Json("1")));
}

TEST_CASE("references go to definitions, anchors and themselves") {
  check(
      R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},"additionalProperties":false}}})",
      {"{}", R"({"next":{"next":{}}})"}, {R"({"next":1})", R"({"next":{"x":1}})"});
  check(R"({"items":{"$ref":"#here"},"$defs":{"a":{"$anchor":"here","type":"null"}}})", {"[null]"}, {"[1]"});
  check(R"({"$id":"http://x/a","properties":{"p":{"$ref":"b"}},"$defs":{"q":{"$id":"b","type":"integer"}}})",
        {R"({"p":1})"}, {R"({"p":"1"})"});
  check(
      R"({"$schema":"http://json-schema.org/draft-07/schema#","properties":{"p":{"$ref":"#/definitions/i","maximum":1}},"definitions":{"i":{"type":"integer"}}})",
      {R"({"p":5})"}, {R"({"p":"a"})"});
}

TEST_CASE("what no keyword has evaluated is seen through combinations") {
  const std::string_view schema =
      R"({"type":"object","properties":{"a":true},"anyOf":[{"properties":{"b":{"const":1}},"required":["b"]},{"properties":{"c":true}}],"unevaluatedProperties":false})";
  check(schema, {R"({"a":0})", R"({"b":1,"c":0})", R"({"c":0})"}, {R"({"d":0})", R"({"b":2})"}, any_order);
}

TEST_CASE("a text never comes to a point from which it cannot be finished") {
  // The member "no" has no value, so that it is never begun; "rec" requires itself.
  SchemaTexts texts(
      R"({"type":"object","properties":{"no":false,"rec":{"$ref":"#/$defs/r"},"yes":{"const":1}},"additionalProperties":false,
    "$defs":{"r":{"type":"object","required":["r"],"properties":{"r":{"$ref":"#/$defs/r"}}}}})");
  CHECK(texts.next("{\"") == "y");
  CHECK(contains(refusal(R"({"type":"string","minLength":3,"maxLength":2})"), "no value meets"));
  CHECK(contains(refusal(R"({"allOf":[{"type":"string"},{"type":"integer"}]})"), "no value meets"));
}

TEST_CASE("white space is none, one space, or any") {
  const std::string_view schema =
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]})";
  check(schema, {R"({"a":[1,2]})"}, {R"({"a": [1,2]})"});
  check(schema, {R"({"a": [1, 2]})"}, {R"({"a":[1,2]})"}, {.whitespace = schema::Whitespace::spaced});
  check(schema, {"{\n \"a\" :\t[ 1,2 ] }\n", R"({"a":[1,2]})"}, {"{\"a\":[1 2]}"},
        {.whitespace = schema::Whitespace::any});
}

TEST_CASE("what is not enforced is refused with its keyword and place") {
  const auto refuses = [](std::string_view schema, std::string_view keyword, std::string_view place) {
    const std::string why = refusal(schema);
    CAPTURE(why);
    CHECK(contains(why, std::string("'") + std::string(keyword) + "'"));
    CHECK(contains(why, place));
  };
  refuses(R"({"properties":{"a":{"type":"array","uniqueItems":true,"items":{"type":"string"}}}})",
          "uniqueItems", "#/properties/a");
  refuses(R"({"items":{"$ref":"http://elsewhere/x.json"}})", "$ref", "#/items");
  refuses(R"({"properties":{"a":{"format":"idn-email","type":"string"}}})", "format", "#/properties/a");
  refuses(R"x({"properties":{"a":{"pattern":"(a)\\1"}}})x", "pattern", "#/properties/a");
  CHECK(contains(refusal("{"), "schema"));
  CHECK(contains(refusal(R"({"type":"strin"})"), "'type'"));
  CHECK(contains(refusal(R"({"$ref":"#/$defs/none"})"), "'$ref'"));
}

TEST_CASE("an explanation names each keyword that is refused, and no other one") {
  const auto found = schema::explain(R"({"type":"object","title":"T","x":1,"properties":{
    "a":{"type":"string","pattern":"(?<=a)b","maxLength":3},"b":{"type":"array","uniqueItems":true},
    "c":{"type":"string","format":"idn-email"}},"minProperties":1})");
  std::string refused, enforced;
  for (const auto& use : found.keywords) {
    if (use.what == "refused") refused += use.place + " " + use.keyword + "\n";
    if (use.what == "enforced") enforced += use.keyword + " ";
  }
  CHECK(refused == "#/properties/a pattern\n#/properties/b uniqueItems\n#/properties/c format\n");
  CHECK(enforced == "type properties minProperties type maxLength type type ");
  CHECK(found.refusals.size() == 3);
  CHECK(schema::explain(R"({"type":"string"})").refusals.empty());
  const auto never = schema::explain(R"({"type":"string","enum":[1]})");
  CHECK(never.refusals.size() == 1);  // it is no keyword that is refused
}

TEST_CASE("many 'contains' of one array are refused before their subsets are tried") {
  for (const int n : {7, 15, 30, 200}) {
    std::string all;
    for (int i = 0; i < n; ++i)
      all += (i > 0 ? "," : "") + std::string(R"({"contains":{"const":)") + std::to_string(i) + "}}";
    CHECK(contains(refusal(R"({"type":"array","allOf":[)" + all + "]}"), "more than 6"));
    CHECK(contains(refusal(R"({"properties":{"a":{"type":"array","allOf":[)" + all + "]}}}"), "more than 6"));
  }
}

TEST_CASE("hostile schemas end with a sentence") {
  std::string any = R"({"allOf":[)";
  for (int i = 0; i < 40; ++i)
    any += std::string(i == 0 ? "" : ",") + R"({"anyOf":[{"required":["a)" + std::to_string(i) +
           R"("]},{"required":["b)" + std::to_string(i) + R"("]}]})";
  CHECK(contains(refusal(any + "]}"), "ways"));
  std::string deep = "{}";
  for (int i = 0; i < 100; ++i) deep = R"({"items":)" + deep + "}";
  CHECK(contains(refusal(deep), "deeper"));
  CHECK(refusal(R"({"$ref":"#"})").empty());  // says nothing
  CHECK_FALSE(
      refusal(R"x({"type":"string","pattern":"(((a{1,1000}){1,1000}){1,1000}){1,1000}\\1"})x").empty());
}

}  // namespace mica::test::schema_test
