// SPDX-License-Identifier: Apache-2.0
//
// Each keyword alone, negated, and beside an enumeration; values that keywords cannot have.

#include "mica_tools/schema/keywords.hpp"

#include "check_schema.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::keywords_test {
namespace {

/// A schema with values that meet it and values that do not, by the drafts of JSON Schema.
struct Example {
  const char* keywords;
  Texts good, bad;
};

const std::vector<Example> examples = {
    {R"("type":"integer")", {"0", "-7"}, {"0.5", "\"a\"", "[]"}},
    {R"("type":["boolean","array"])", {"true", "false", "[]", "[1]"}, {"null", "{}", "1"}},
    {R"("type":"any")", {"1", "null", "{}"}, {}},
    {R"("type":"string","nullable":true)", {"\"a\"", "null"}, {"1", "true", "[]"}},
    {R"("type":"string","nullable":false)", {"\"a\""}, {"1", "null"}},
    {R"("type":"string","nullable":1)", {"\"a\""}, {"1", "null"}},
    {R"("nullable":true)", {"1", "null"}, {}},
    {R"("enum":[1,"a",null,true,[1],{"a":1},[],{}])",
     {"1", "\"a\"", "null", "true", "[1]", R"({"a":1})", "[]", "{}"},
     {"2", "\"b\"", "false", "[2]", "[1,1]", R"({"a":2})", R"({"b":1})"}},
    {R"("const":{"a":[1,{}]})", {R"({"a":[1,{}]})"}, {"{}", R"({"a":[1]})", R"({"a":[1,{}],"b":1})", "1"}},
    {R"("const":1.5)", {"1.5"}, {"1", "\"1.5\""}},
    {R"("allOf":[{"minimum":2},{"maximum":5}])", {"2", "5", "\"a\""}, {"1", "6"}},
    {R"("anyOf":[{"type":"string","maxLength":1},{"minimum":2,"type":"number"}])",
     {"\"a\"", "2"},
     {"1", "\"ab\"", "null"}},
    {R"("oneOf":[{"type":"number"},{"minimum":3},{"maximum":0}])", {"1", "2.5"}, {"3", "0", "-1", "\"a\""}},
    {R"("oneOf":[{"enum":[1,2]},{"enum":[2,3]},{"const":4}])", {"1", "3", "4"}, {"2", "5", "null"}},
    {R"("not":{"type":"string"})", {"1", "null"}, {"\"a\""}},
    {R"("not":{"not":{"minimum":1}})", {"1", "\"a\""}, {"0"}},
    {R"("if":{"type":"string"},"then":{"maxLength":2},"else":{"type":"integer"})",
     {"\"ab\"", "1"},
     {"\"abc\"", "1.5", "null"}},
    {R"("if":{"type":"string"},"then":{"maxLength":2})", {"\"ab\"", "1.5"}, {"\"abc\""}},
    {R"("if":{"type":"string"},"else":{"type":"integer"})", {"\"abc\"", "1"}, {"1.5", "{}"}},
    {R"("if":{"type":"string"})", {"\"abc\"", "1"}, {}},
    {R"("then":false,"else":false)", {"\"abc\"", "1"}, {}},
    {R"("$schema":"http://json-schema.org/draft-06/schema#","if":{"type":"string"},"then":false)",
     {"\"abc\"", "1"},
     {}},
    {R"("format":"date")", {"\"2024-02-29\"", "1"}, {"\"today\""}},
    {R"("pattern":"^a.$")", {"\"ab\"", "\"a\\\"\"", "1"}, {"\"a\"", "\"abc\""}},
    {R"("minLength":2,"maxLength":3)", {"\"ab\"", "\"日本語\"", "1"}, {"\"a\"", "\"abcd\""}},
    {R"("minLength":0)", {"\"\"", "1"}, {}},
    {R"("maxLength":1e1)", {"\"abcdefghij\""}, {"\"abcdefghijk\""}},
    {R"("minimum":0.25)", {"0.25", "0.3", "1"}, {"0.2", "0.249", "0"}},
    {R"("maximum":1.25)", {"1.25", "1.2", "0", "-7"}, {"1.26", "1.251", "2"}},
    {R"("exclusiveMaximum":1.25)", {"1.2", "1.249", "0"}, {"1.25", "1.3"}},
    {R"("minimum":0,"maximum":0)", {"0", "0.0", "\"a\""}, {"1", "-1", "0.1", "0.001"}},
    {R"("minimum":-1.5)", {"-1.5", "0", "\"a\""}, {"-1.6", "-20"}},
    {R"("maximum":2.25)", {"2.25", "-3", "null"}, {"2.26", "3"}},
    {R"("exclusiveMinimum":1,"exclusiveMaximum":1.75)", {"1.5", "1.01", "1.7"}, {"1", "1.75", "2"}},
    {R"("minimum":1,"exclusiveMinimum":1)", {"2"}, {"1"}},
    {R"("$schema":"http://json-schema.org/draft-04/schema#","maximum":3,"exclusiveMaximum":true)",
     {"2"},
     {"3"}},
    {R"("$schema":"http://json-schema.org/draft-04/schema#","maximum":3,"exclusiveMaximum":false)",
     {"3"},
     {"4"}},
    {R"("multipleOf":3)", {"0", "-6", "\"a\""}, {"1", "-7", "1.5"}},
    {R"("required":["a","b"])", {R"({"a":1,"b":2})", "1"}, {"{}", R"({"a":1})", R"({"b":1})"}},
    {R"("required":true)", {"{}", "1"}, {}},
    {R"("properties":{"a":{"type":"null"},"b":true,"c":false})",
     {R"({"a":null})", R"({"b":1})", "{}", "1"},
     {R"({"a":1})", R"({"c":1})", R"({"b":1,"c":1})"}},
    {R"("patternProperties":{"^a":{"type":"null"},"z$":{"type":"null"}})",
     {R"({"a":null})", R"({"b":1})", R"({"az":null})", "1"},
     {R"({"a":1})", R"({"bz":1})", R"({"b":1,"aa":2})"}},
    {R"("properties":{"a":{}},"patternProperties":{"^x":{}},"additionalProperties":{"type":"null"})",
     {R"({"a":1,"x1":2,"b":null})", "{}", "[]"},
     {R"({"b":1})", R"({"a":null,"ax":1})"}},
    {R"("additionalProperties":false)", {"{}", "1"}, {R"({"a":1})"}},
    {R"("additionalProperties":true)", {"{}", R"({"a":1})"}, {}},
    {R"("propertyNames":{"maxLength":2})", {"{}", R"({"ab":1})", "1"}, {R"({"abc":1})"}},
    {R"("propertyNames":{"enum":["a","bc"]})", {"{}", R"({"bc":1})", "1"}, {R"({"b":1})"}},
    {R"("propertyNames":false)", {"{}", "1"}, {R"({"b":1})"}},
    {R"("maxProperties":0)", {"{}", "1"}, {R"({"a":1})"}},
    {R"("minProperties":1)", {R"({"a":1})", "1"}, {"{}"}},
    {R"("dependentRequired":{"a":["b"]})", {R"({"a":1,"b":2})", R"({"b":1})", "1"}, {R"({"a":1})"}},
    {R"("dependentSchemas":{"a":{"required":["b"]}})",
     {R"({"a":1,"b":2})", R"({"b":1})", "1"},
     {R"({"a":1})"}},
    {R"("dependencies":{"a":["b"],"c":{"not":{"required":["x"]}},"d":"b"})",
     {R"({"a":1,"b":2})", R"({"c":1})", R"({"d":1,"b":2})", "1"},
     {R"({"a":1})", R"({"d":1})", R"({"c":1,"x":2})"}},
    {R"("prefixItems":[{"type":"null"},{"type":"string"}])",
     {"[]", "[null]", R"([null,"a",1])", "1"},
     {"[1]", "[null,1]"}},
    {R"("prefixItems":[{"type":"null"}],"items":{"type":"string"})",
     {"[]", "[null]", R"([null,"a"])", "1"},
     {"[1]", "[null,1]", R"([null,"a",1])"}},
    {R"("items":{"type":"null"})", {"[]", "[null,null]", "1"}, {"[1]", "[null,1]"}},
    {R"("items":false)", {"[]", "1"}, {"[1]"}},
    {R"("items":[{"type":"null"}],"additionalItems":{"type":"string"})",
     {"[]", "[null]", R"([null,"a"])"},
     {"[1]", "[null,1]"}},
    {R"("items":[{"type":"null"}])", {"[]", "[null,1]"}, {"[1]"}},
    {R"("additionalItems":false)", {"[]", "[null,1]"}, {}},
    {R"("minItems":1,"maxItems":2)", {"[1]", "[1,2]", "1"}, {"[]", "[1,2,3]"}},
    {R"("contains":{"type":"null"})", {"[null]", "[1,null]", "1"}, {"[]", "[1]"}},
    {R"("contains":{"type":"null"},"minContains":2,"maxContains":3)",
     {"[null,1,null]", "[null,null,null]", "1"},
     {"[]", "[null]", "[null,null,null,null]"}},
    {R"("contains":{"type":"null"},"minContains":0)", {"[]", "[1]"}, {}},
    {R"("contains":{"type":"null"},"minContains":0,"maxContains":1)", {"[]", "[1,null]"}, {"[null,null]"}},
    {R"("minContains":2,"maxContains":0)", {"[]", "[1]"}, {}},
    {R"("$schema":"http://json-schema.org/draft-07/schema#","contains":{"type":"null"},"minContains":2)",
     {"[null]", "[1,null]"},
     {"[]", "[1]"}},
    {R"("$ref":"#/$defs/a","maximum":3,"$defs":{"a":{"minimum":1}})", {"1", "3", "null"}, {"0", "4"}},
    {R"("$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","maximum":3,
        "definitions":{"a":{"minimum":1}})",
     {"1", "4", "null"},
     {"0"}},
    {R"("$dynamicRef":"#a","$defs":{"x":{"$dynamicAnchor":"a","minimum":1}})", {"1", "null"}, {"0"}}};

/// An enumeration of all values of an example.
std::string values_of(const Example& example) {
  std::string out;
  for (const Texts& texts : {example.good, example.bad})
    for (const std::string& text : texts) out += (out.empty() ? "" : ",") + text;
  return R"("enum":[)" + out + "]";
}

/// As check(); a refusal is a failure that does not end the case.
void compare(const std::string& schema, const Texts& good, const Texts& bad) {
  CHECK_NOTHROW(check(schema, good, bad, any_order));
}

/// `n` times what is before and behind a number, which counts from 0, with commas between them.
std::string repeated(std::size_t n, std::string_view before, std::string_view behind) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i)
    (out += i == 0 ? "" : ",").append(before).append(std::to_string(i)).append(behind);
  return out;
}

}  // namespace

TEST_CASE("a keyword, its negation and an enumeration beside it agree on each value") {
  for (const Example& example : examples) {
    const std::string schema = std::string("{") + example.keywords + "}";
    compare(schema, example.good, example.bad);
    if (contains(schema, "$schema") || contains(schema, "#/")) continue;
    compare("{" + values_of(example) + R"(,"allOf":[)" + schema + "]}", example.good, example.bad);
    if (example.bad.empty()) {
      CHECK(contains(refusal(R"({"not":)" + schema + "}", any_order), "no value meets"));
      continue;
    }
    compare(R"({"not":)" + schema + "}", example.bad, example.good);
    compare("{" + values_of(example) + R"(,"not":)" + schema + "}", example.bad, example.good);
  }
}

TEST_CASE("combinations of keywords mean what each of them says") {
  const std::vector<std::pair<std::string, std::pair<Texts, Texts>>> combinations = {
      // required members that no value can have
      {R"({"allOf":[{"properties":{"a":{"type":"null"}}},{"properties":{"a":{"type":"string"}}}],
           "required":["a"]})",
       {{"1"}, {R"({"a":null})", R"({"a":"x"})", "{}"}}},
      {R"({"properties":{"a":false},"required":["a"]})", {{"1"}, {R"({"a":1})", "{}"}}},
      {R"({"minProperties":2,"maxProperties":1})", {{"1"}, {"{}", R"({"a":1})", R"({"a":1,"b":1})"}}},
      {R"({"contains":{},"minContains":3,"maxContains":2})", {{"1"}, {"[]", "[1,1]", "[1,1,1]"}}},
      {R"({"minItems":3,"maxItems":2})", {{"1"}, {"[]", "[1,1]", "[1,1,1]"}}},
      // negations together
      {R"({"allOf":[{"not":{"required":["a"]}},{"not":{"required":["a"]}}]})",
       {{"{}", R"({"b":1})"}, {R"({"a":1})"}}},
      {R"({"properties":{"a":{"type":"integer"}},"required":["a"],
           "not":{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}})",
       {{R"({"a":1})", R"({"a":1,"b":1})", R"({"a":1,"b":"x"})"}, {R"({"a":"x"})", "{}"}}},
      {R"({"properties":{"xa":{},"b":{}},
           "not":{"patternProperties":{"^x":{}},"additionalProperties":false}})",
       {{R"({"b":1})", R"({"c":1})", R"({"xa":1,"c":1})"}, {R"({"xa":1})", R"({"x":1})", "{}", "1"}}},
      {R"({"properties":{"a":{},"b":{},"xy":{}},"not":{"properties":{"a":{}},
           "patternProperties":{"^x":{},"y$":{}},
           "additionalProperties":{"type":"null"}}})",
       {{R"({"b":1})", R"({"c":1,"xa":1})"},
        {R"({"a":1})", R"({"b":null})", R"({"x":1})", R"({"zy":1})", R"({"xy":1})"}}},
      {R"({"properties":{"ab":{},"c":{}},"not":{"propertyNames":{"maxLength":1}}})",
       {{R"({"ab":1})", R"({"abc":1})", R"({"c":1,"ab":1})"}, {R"({"c":1})", "{}", "1"}}},
      {R"({"not":{"anyOf":[{"type":"string"},{"minimum":3}]}})", {{"2"}, {"\"a\"", "3", "null"}}},
      {R"({"not":{"allOf":[{"type":"number"},{"minimum":3}]}})", {{"2", "\"a\"", "null"}, {"3", "4.5"}}},
      {R"({"type":["object","null"],"not":{"dependentRequired":{"a":["b","c"]}}})",
       {{R"({"a":1})", R"({"a":1,"b":1})", R"({"a":1,"c":1})"}, {"null", "{}", R"({"a":1,"b":1,"c":1})"}}},
      // alternatives of which some have no value
      {R"({"anyOf":[false,{"type":"string"},{"minimum":1}]})", {{"\"a\"", "1", "null"}, {"0"}}},
      {R"({"anyOf":[{"enum":[]},{"const":1}],"enum":[1,2]})", {{"1"}, {"2"}}},
      {R"({"oneOf":[true,false]})", {{"1", "{}"}, {}}},
      {R"({"enum":[1,2,3],"oneOf":[{"maximum":2},{"minimum":2}]})", {{"1", "3"}, {"2"}}},
      // one of several objects
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},
           {"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]})",
       {{R"({"k":"a"})", R"({"k":"b","x":1})"}, {R"({"k":"c"})", "{}"}}},
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k","x"]},
           {"type":"object","properties":{"y":{}},"additionalProperties":false}]})",
       {{R"({"k":"a","x":1})", R"({"y":1})", "{}", R"({"k":"a","x":1,"y":2})"}, {R"({"k":"b"})"}}},
      {R"({"oneOf":[{"type":"object","required":["a"]},{"type":"object","patternProperties":{"^a":{}},
           "additionalProperties":false}]})",
       {{"{}", R"({"a":1,"b":1})", R"({"ab":1})"}, {R"({"a":1})", R"({"b":1})"}}},
      {R"({"oneOf":[{"type":"object","required":["a"]},{"type":"object","properties":{"a":false}}]})",
       {{"{}", R"({"a":1})", R"({"b":1})"}, {}}},
      {R"({"oneOf":[{"type":"object","required":["a"]},{"type":"object","properties":{"a":true}}]})",
       {{"{}", R"({"b":1})"}, {R"({"a":1})"}}},
      {R"({"oneOf":[{"type":"object","required":true,"properties":{"a":{"type":"null"}}},
           {"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}]})",
       {{"{}", R"({"a":null})", R"({"a":"x"})"}, {R"({"a":1})"}}},
      {R"({"oneOf":[{"type":"string","nullable":true},{"type":"null"}]})", {{"\"a\""}, {"null", "1"}}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","oneOf":[{"$ref":"#/definitions/a"},
           {"$ref":"#/definitions/b"}],"definitions":{"a":{"maximum":5},"b":{"minimum":3}}})",
       {{"2", "6"}, {"4", "null"}}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","oneOf":[{"$ref":"#/definitions/a"},
           {"$ref":"#/definitions/b"}],
           "definitions":{"a":{"type":"null"},"b":{"minimum":3,"type":"number"}}})",
       {{"null", "6"}, {"2", "\"a\""}}},
      {R"({"oneOf":[{"allOf":[{"allOf":[{"allOf":[{"allOf":[{"allOf":[{"allOf":[{"allOf":[{"allOf":[
           {"type":"string"}]}]}]}]}]}]}]}]},{"type":"integer"}]})",
       {{"\"a\"", "1"}, {"null", "1.5"}}},
      {R"({"oneOf":[{"allOf":[{"const":1}]},{"const":2},{"$ref":"#/$defs/c"}],
           "$defs":{"c":{"enum":[3,1]}}})",
       {{"2", "3"}, {"1", "4"}}},
      {R"({"$schema":"http://json-schema.org/draft-06/schema#",
           "not":{"if":true,"then":false,"type":"string"}})",
       {{"1", "null"}, {"\"a\""}}},
      {R"({"maxLength":10000000000})", {{"\"abc\"", "1"}, {}}},
      {R"({"uniqueItems":false})", {{"[1,1]"}, {}}},
      {R"({"uniqueItems":1})", {{"[1,1]"}, {}}},
      // names by patterns
      {R"({"allOf":[{"patternProperties":{"^a":{"type":"integer"}}},
           {"patternProperties":{"^a":{"minimum":3}}}]})",
       {{R"({"ab":3})", R"({"b":null})"}, {R"({"ab":2})", R"({"a":"x"})"}}},
      // numbers of members and items
      {R"({"properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"minProperties":2})",
       {{R"({"a":1,"b":1})", R"({"c":1,"a":1})", "1"}, {"{}", R"({"a":1})", R"({"d":1,"a":1})"}}},
      {R"({"type":"array","uniqueItems":true,"maxItems":1})", {{"[]", "[1]"}, {"[1,2]", "[1,1]"}}},
      {R"({"type":"array","items":{"type":["boolean","null"]},"uniqueItems":true})",
       {{"[]", "[null,true,false]", "[false]"}, {"[true,true]", "[null,true,null]", "[1]"}}},
      {R"({"type":"array","items":{"type":"boolean"},"uniqueItems":true})", {{"[false,true]"}, {"[null]"}}},
      {R"({"type":"array","items":{"type":"null"},"uniqueItems":true})", {{"[null]"}, {"[true]"}}},
      {R"({"type":"array","items":{"not":{"enum":[true]},"type":"boolean"},"uniqueItems":true})",
       {{"[false]", "[]"}, {"[true]", "[false,false]"}}},
      {R"({"type":"array","items":{"type":"boolean","not":{"const":false}},"uniqueItems":true})",
       {{"[true]"}, {"[false]", "[true,true]"}}},
      {R"({"type":"array","items":false,"uniqueItems":true})", {{"[]"}, {"[1]"}}},
      {R"({"enum":[[1,1],[1,2],3],"uniqueItems":true})", {{"[1,2]", "3"}, {"[1,1]"}}},
      // what no keyword has evaluated
      {R"({"type":"array","prefixItems":[{"type":"integer"}],"unevaluatedItems":{"type":"string"}})",
       {{"[]", "[1]", R"([1,"a"])"}, {R"(["a"])", "[1,2]"}}},
      {R"({"type":"array","allOf":[{"prefixItems":[true,true]}],"unevaluatedItems":false})",
       {{"[]", "[1,2]"}, {"[1,2,3]"}}},
      {R"({"allOf":[{"$ref":"#/$defs/a"},{"allOf":[{"$ref":"#/$defs/a"}],"unevaluatedProperties":false}],
           "$defs":{"a":{"properties":{"x":{"type":"integer"}}}}})",
       {{R"({"x":1})", "{}"}, {R"({"y":1})", R"({"x":"a"})"}}},
      {R"({"allOf":[{"allOf":[{"$ref":"#/$defs/a"}],"unevaluatedProperties":false},{"$ref":"#/$defs/a"}],
           "$defs":{"a":{"properties":{"x":{"type":"integer"}}}}})",
       {{R"({"x":1})", "{}"}, {R"({"y":1})", R"({"x":"a"})"}}},
      {R"({"type":"object","if":{"properties":{"a":{"const":1}},"required":["a"]},
           "unevaluatedProperties":false})",
       {{R"({"a":1})", "{}"}, {R"({"a":2})", R"({"b":1})"}}},
      {R"({"type":"object","properties":{"a":{}},"if":{"required":["a"]},"then":{"properties":{"b":{}}},
           "else":{"properties":{"c":{}}},"unevaluatedProperties":false})",
       {{R"({"a":1,"b":1})", R"({"c":1})", "{}"}, {R"({"a":1,"c":1})", R"({"b":1})"}}}};
  for (const auto& [schema, texts] : combinations) compare(schema, texts.first, texts.second);
}

TEST_CASE("an array that cannot be finished is not begun") {
  for (const std::string& array :
       {std::string(R"({"type":"array","items":{"enum":[1,2]},"uniqueItems":true,"minItems":3})"),
        std::string(R"({"type":"array","items":{"type":"string"},"contains":{"type":"integer"}})"),
        std::string(R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"string"},
                        "contains":{"type":"integer"},"minContains":2})")}) {
    CHECK(contains(refusal(array), "no value meets"));
    check(R"({"type":"object","properties":{"a":)" + array + R"(},"additionalProperties":false})", {"{}"},
          {R"({"a":)", R"({"a":[])"});
    CHECK(contains(refusal(R"({"type":"object","properties":{"a":)" + array + R"(},"required":["a"]})"),
                   "no value meets"));
  }
  check(R"({"type":"array","items":{"enum":[1,2]},"uniqueItems":true,"minItems":2})", {"[1,2]", "[2,1]"},
        {"[1]", "[1,1]"});
}

TEST_CASE("schemas that contradict themselves have no value") {
  for (const char* const schema :
       {"false", R"({"not":{}})", R"({"not":{"title":"x"}})", R"({"enum":[]})", R"({"type":[]})",
        R"({"type":"string","not":{"type":"string"}})", R"({"const":1,"not":{"const":1.0}})",
        R"({"allOf":[{"$ref":"#/$defs/a"},{"not":{"$ref":"#/$defs/a"}}],"$defs":{"a":{"minimum":1}}})",
        R"({"type":"object","properties":{"a":false},"required":["a"]})",
        R"({"type":"object","required":["a"],"not":{"required":["a"]}})",
        R"({"type":"number","minimum":20,"maximum":3})", R"({"anyOf":[]})", R"({"oneOf":[true,true]})",
        R"({"type":"array","items":false,"minItems":1})"}) {
    CAPTURE(std::string(schema));
    CHECK(contains(refusal(schema), "no value meets"));
  }
}

TEST_CASE("a value that a keyword cannot have is refused with what it should be") {
  struct Wrong {
    std::vector<const char*> keywords;
    const char* why;
  };
  const std::vector<Wrong> all = {
      {{R"("allOf":1)", R"("anyOf":{})", R"("oneOf":"a")", R"("prefixItems":{})"},
       "its value is no array of schemas"},
      {{R"("properties":[])", R"("patternProperties":1)", R"("dependentRequired":[])"},
       "its value is no object"},
      {{R"("minLength":-1)", R"("maxLength":1.5)", R"("minItems":"1")", R"("maxProperties":null)"},
       "its value is no integer of 0 or more"},
      {{R"("minimum":"1")", R"("maximum":[])", R"("multipleOf":true)", R"("exclusiveMaximum":"1")"},
       "its value is no number of 400 digits or fewer"},
      {{R"("required":["a",1])", R"("required":"a")", R"("required":{"a":"b"})",
        R"("dependentRequired":{"a":[1]})"},
       "its value is no array of names"},
      {{R"("$ref":1)", R"("$dynamicRef":{})", R"("pattern":1)"}, "its value is no text"},
      {{R"("type":"strin")", R"("type":1)", R"("type":["null",{}])"}, "its value is no type of JSON"},
      {{R"("enum":1)"}, "its value is no array"},
      {{R"("multipleOf":0)", R"("multipleOf":-2)"}, "its value is not above 0"},
      {{R"("multipleOf":12345678901)", R"("multipleOf":0.1234567890123)"}, "it has more than 9 digits"},
      {{R"("items":1)", R"("not":"a")", R"("if":null)", R"("additionalProperties":[])",
        R"("dependentSchemas":{"a":1})"},
       "its value is no schema: {...}, true or false"},
      {{R"("pattern":"(")", R"("patternProperties":{"(":{}})"}, "a ( without )"},
      {{R"("$vocabulary":{})"}, "a schema of schemas is not supported"}};
  for (const Wrong& wrong : all) {
    for (const char* const keyword : wrong.keywords) {
      const std::string text(keyword), name = text.substr(1, text.find('"', 1) - 1);
      for (const bool is_within : {false, true}) {
        const std::string schema = is_within ? R"({"items":{"not":{)" + text + "}}}" : "{" + text + "}";
        if (name == "enum" && is_within) continue;  // ignored there
        const std::string why = refusal(schema);
        CAPTURE(schema);
        CAPTURE(why);
        CHECK(contains(why, "schema: '" + name + (is_within ? "' at #/items/not: " : "' at #: ")));
        CHECK(contains(why, wrong.why));
      }
    }
  }
}

TEST_CASE("keywords together that are not enforced are refused with their place") {
  const std::string texts = repeated(513, "", ""), patterns = repeated(61, R"("^x)", R"(":{})"),
                    nots = repeated(6, R"({"not":{"patternProperties":{"^x)", R"(":false}}})");
  const std::string scopes =
      R"({"allOf":[)" + repeated(32, R"({"unevaluatedProperties":{},"title":")", R"("})") + "]}";
  const std::vector<std::pair<std::string, std::string>> all = {
      {R"({"not":{"unevaluatedItems":false}})", "'unevaluatedItems' at #/not"},
      {R"({"not":{"unevaluatedProperties":false}})", "'unevaluatedProperties' at #/not"},
      {R"({"not":{"uniqueItems":true}})", "'uniqueItems' at #/not"},
      {R"({"enum":[{}],"unevaluatedProperties":false})", "beside enum, const or propertyNames"},
      {R"({"type":"array","contains":{},"unevaluatedItems":false})",
       "'unevaluatedItems' at #/unevaluatedItems"},
      {R"({"items":{"enum":[1,2]},"uniqueItems":true,"contains":{"const":1}})", "beside 'contains'"},
      {R"({"items":{"enum":[[1],2]},"uniqueItems":true})", "whose values are not listed"},
      {R"({"prefixItems":[{"const":1}],"items":{"const":2},"uniqueItems":true})",
       "whose values are not listed"},
      {R"({"items":{"enum":[)" + texts + R"(]},"uniqueItems":true})", "whose values are not listed"},
      {R"({"type":"array","contains":{"const":1},"minContains":30000})", "'contains' at #/contains"},
      {R"({"type":"object","patternProperties":{)" + patterns + "}}", "more than 60 patterns apply"},
      {R"({"type":"object","not":{"patternProperties":{)" + patterns + R"(},"additionalProperties":false}})",
       "more than 60 patterns apply"},
      {R"({"allOf":[)" + nots + "]}", "more than 5 members must break a schema"},
      {R"({"properties":{"a":{}},"minProperties":2})", "'minProperties' at #"},
      {scopes, "too many of them apply to one value"}};
  for (const auto& each : all) {
    const std::string why = refusal(each.first);
    CAPTURE(each.first);
    CAPTURE(why);
    CHECK(contains(why, each.second));
  }
}

TEST_CASE("an object that lists its members has others only where it must, with the option for it") {
  schema::SchemaOptions closed = any_order;
  closed.unlisted_members = false;
  check(R"({"properties":{},"minProperties":1})", {R"({"b":1})", "1"}, {"{}"}, closed);
  check(R"({"properties":{"a":{}},"minProperties":1})", {R"({"a":1})"}, {"{}", R"({"b":1})"}, closed);
  check(R"({"properties":{"a":{}},"not":{"additionalProperties":{"type":"null"}}})",
        {R"({"b":1})", R"({"a":1})"}, {"{}", R"({"b":null})"}, closed);
  SchemaTexts texts(R"({"properties":{"a":{},"b":{}},"additionalProperties":false,"minProperties":2})");
  CHECK(texts.next("{\"") == "a");
}

}  // namespace mica::test::keywords_test
