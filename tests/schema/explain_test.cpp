// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/schema/explain.hpp"

#include "check_schema.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::explain_test {
namespace {

/// The uses of keywords as "PLACE KEYWORD WHAT", sorted.
Texts uses(std::string_view schema, const schema::SchemaOptions& options = {}) {
  Texts out;
  for (const auto& use : schema::explain(schema, options).keywords)
    out.push_back(use.place + " " + use.keyword + " " + std::string(use.what));
  std::sort(out.begin(), out.end());
  return out;
}

/// Schemas with a pattern that is refused, numbered from 0.
std::string refused_patterns(int n) {
  std::string out;
  for (int i = 0; i < n; ++i)
    out += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + R"(":{"pattern":"(a)\\1"})";
  return R"({"properties":{)" + out + "}}";
}

}  // namespace

TEST_CASE("the keywords of all schemas are listed, and those of values are not") {
  CHECK(uses(R"({"items":{"minLength":1},"prefixItems":[{"maxLength":2},true],"allOf":[{"title":"x"}],
      "default":{"type":"y"},"dependentSchemas":{"a/b":{"minItems":1}},"$defs":{"b":{"const":1},
      "c":true},"x-y":{"type":"string"},"examples":[{"type":"z"}],"enum":[1]})") ==
        Texts{"# $defs annotation", "# allOf enforced", "# default annotation", "# dependentSchemas enforced",
              "# enum enforced", "# examples annotation", "# items enforced", "# prefixItems enforced",
              "# x-y unknown", "#/$defs/b const enforced", "#/allOf/0 title annotation",
              "#/dependentSchemas/a~1b minItems enforced", "#/items minLength enforced",
              "#/prefixItems/0 maxLength enforced"});
  CHECK(uses("true").empty());
}

TEST_CASE("a format is enforced if it is known, and if the option says so") {
  const std::string format = R"({"format":"date"})";
  CHECK(uses(format) == Texts{"# format enforced"});
  CHECK(uses(format, {.formats = schema::Formats::annotation}) == Texts{"# format annotation"});
  CHECK(uses(R"({"format":"color"})") == Texts{"# format annotation"});
  CHECK(uses(R"({"format":7})") == Texts{"# format annotation"});
}

TEST_CASE("a refused keyword is found by its place") {
  const auto found = schema::explain(R"({"type":"array","contains":{"const":1},"minContains":30000})");
  CHECK(found.refusals.size() == 1);
  for (const auto& use : found.keywords) CHECK((use.what == "refused") == (use.keyword == "contains"));
  CHECK(schema::explain(refused_patterns(3)).refusals.size() == 3);
  CHECK(schema::explain(refused_patterns(120)).refusals.size() == 100);
}

TEST_CASE("a refusal whose keyword is elsewhere ends the list of refusals") {
  const std::string name(300, 'a');
  std::string nots;
  for (int i = 0; i < 6; ++i)
    nots += (i > 0 ? "," : "") + std::string(R"({"not":{"additionalProperties":false}})");
  for (const std::string& schema : {std::string(R"({"properties":{"a":{}},"allOf":[{"minProperties":2}]})"),
                                    R"({"properties":{")" + name + R"(":{"pattern":"(a)\\1"}}})",
                                    R"({"allOf":[)" + nots + "]}", std::string(R"({"type":1})")}) {
    CAPTURE(schema);
    CHECK(schema::explain(schema).refusals.size() == 1);
  }
}

}  // namespace mica::test::explain_test
