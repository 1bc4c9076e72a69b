// SPDX-License-Identifier: Apache-2.0
//
// Which parameters of a tool are strings, as far as its schema tells.

#include "mica_tools/calls/tools_of_json.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace mica::test::tools_of_json_test {

using calls::ToolTypes;
using Json = nlohmann::ordered_json;

namespace {

std::vector<ToolTypes> types_of(std::string_view list) { return calls::tools_of_json(Json::parse(list)); }

/// Whether the value of a parameter with this schema may be a string.
bool may_be_string(const std::string& schema) {
  const auto types = types_of(R"([{"name":"f","parameters":{"properties":{"p":)" + schema +
                              R"(},"$defs":{"s":{"type":"string"},"n":{"type":"integer"},"five":5}}}])");
  REQUIRE(types.size() == 1);
  return types[0].is_string("p");
}

}  // namespace

TEST_CASE("a parameter is JSON only if its schema allows no string") {
  for (const char* const schema :
       {R"({})",
        R"(true)",
        R"({"type":"string"})",
        R"({"type":["integer","string"]})",
        R"({"const":"a"})",
        R"({"enum":[1,"a"]})",
        R"({"enum":"a"})",
        R"({"anyOf":[{"type":"integer"},{"type":"string"}]})",
        R"({"oneOf":[{"const":1},{}]})",
        R"({"anyOf":5})",
        R"({"oneOf":{}})",
        R"({"allOf":{}})",
        R"({"allOf":[{"type":"string"},{"minLength":1}]})",
        R"({"$ref":"#/$defs/s"})",
        R"({"$ref":"#/$defs/none"})",
        R"({"$ref":"other.json"})",
        R"({"$ref":"#~"})",
        R"({"$ref":7})",
        R"({"$ref":"#/$defs/five"})",
        R"({"anyOf":[{"anyOf":[{"anyOf":[{"anyOf":[{"anyOf":[{"type":"integer"}]}]}]}]}]})"}) {
    CAPTURE(std::string(schema));
    CHECK(may_be_string(schema));
  }
  for (const char* const schema :
       {R"({"type":"integer"})", R"({"type":["integer","null"]})", R"({"type":"object"})", R"({"const":1})",
        R"({"enum":[1,null]})", R"({"anyOf":[{"type":"integer"},{"type":"null"}]})",
        R"({"oneOf":[{"const":1},{"enum":[true]}]})", R"({"allOf":[{"minLength":1},{"type":"integer"}]})",
        R"({"$ref":"#/$defs/n"})"}) {
    CAPTURE(std::string(schema));
    CHECK_FALSE(may_be_string(schema));
  }
}

TEST_CASE("what does not describe a tool is left out, and a tool needs no schema") {
  CHECK(types_of("{}").empty());
  const auto types =
      types_of(R"([1, {}, {"name":5}, {"function":{"description":"x"}}, {"function":1,"name":"a"},
      {"name":"b","parameters":null}, {"name":"c","parameters":true},
      {"name":"d","parameters":{"$ref":"#/none"}},
      {"name":"e","parameters":{"$ref":"#/$defs/o","$defs":{"o":true}}},
      {"name":"f","parameters":{"$ref":"#/$defs/o","$defs":{"o":{"properties":{"n":{"type":"null"}}}}}},
      {"name":"g","parameters":null,"input_schema":{"properties":{"n":{"type":"null"}}}}])");
  std::string names;
  for (const ToolTypes& each : types) names += each.name + (each.is_string("n") ? "s " : "n ");
  CHECK(names == "as bs cs ds es fn gn ");
}

}  // namespace mica::test::tools_of_json_test
