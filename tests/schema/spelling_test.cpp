// SPDX-License-Identifier: Apache-2.0
//
// Values of schemas in notations other than JSON.

#include "mica_tools/schema/spelling.hpp"

#include "mica/constraint/recognizer.hpp"
#include "mica_tools/schema/json_rules.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mica::test::spelling_test {
namespace {

const schema::Spelling python{.null = "None", .no = "False", .yes = "True", .has_single_quotes = true};
const schema::Spelling bare{.quote = "<q>", .has_escapes = false, .has_bare_names = true, .excluded = "<q>"};

/// The texts of one schema in a notation.
class Texts {
 public:
  Texts(std::string_view schema, const schema::Spelling& spelling) : language_(language(schema, spelling)) {}

  bool has(std::string_view text) {
    constraint::StateId state = recognizer_.start();
    for (const char c : text) state = recognizer_.step(state, static_cast<std::uint8_t>(c));
    return recognizer_.accepts(state);
  }

 private:
  static constraint::Language language(std::string_view schema, const schema::Spelling& spelling) {
    constraint::Language out;
    out.expressions = std::make_unique<constraint::Expressions>();
    auto rules =
        std::make_unique<schema::JsonRules>(schema, *out.expressions, schema::SchemaOptions(), spelling);
    out.start = rules->texts(rules->document().root());
    out.rules = std::move(rules);
    return out;
  }

  constraint::Language language_;
  constraint::Recognizer recognizer_{language_};
};

std::string refusal(std::string_view schema, const schema::Spelling& spelling) {
  try {
    const Texts texts(schema, spelling);
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace

TEST_CASE("values as Python writes them") {
  Texts any("true", python);
  CHECK(any.has("[None,True,False,1.5]"));
  CHECK_FALSE(any.has("null"));
  CHECK_FALSE(any.has("[true]"));
  CHECK(any.has(R"({"a":'b "c" \' \n é',"d":"it's \u00e9"})"));
  CHECK(any.has("{'a':'b'}"));
  CHECK_FALSE(any.has("'a'b'"));
  CHECK_FALSE(any.has("'a\\d'"));
  CHECK_FALSE(any.has("'a\nb'"));
  Texts listed(R"({"enum":["a","it's","q\"",null,true,2]})", python);
  for (const char* const text : {"'a'", "\"a\"", "\"it's\"", "\"q\\\"\"", "None", "True", "2"})
    CHECK(listed.has(text));
  CHECK_FALSE(listed.has("'it's'"));
  Texts object(R"({"properties":{"a":{"type":"boolean"}},"required":["a"]})", python);
  CHECK(object.has("{'a':True,'b':None}"));
  CHECK_FALSE(object.has("{'a':true}"));
}

TEST_CASE("names without quotes, and strings between marks as they are") {
  Texts any("true", bare);
  CHECK(any.has("{a:<q>x \"y\" \\z\n<q>,b-c:[null,true,<q><q>]}"));
  CHECK_FALSE(any.has("{\"a\":1}"));
  CHECK_FALSE(any.has("{a b:1}"));
  CHECK_FALSE(any.has("{:1}"));
  CHECK_FALSE(any.has("<q>a<q>b<q>"));
  Texts pattern(R"({"type":"string","pattern":"^a\"+$","maxLength":3})", bare);
  CHECK(pattern.has("<q>a\"\"<q>"));
  CHECK_FALSE(pattern.has("<q>a\\\"<q>"));
  CHECK_FALSE(pattern.has("<q>a\"\"\"<q>"));
}

TEST_CASE("strings and names have no excluded text, and what a notation cannot write is refused") {
  const schema::Spelling tags{.excluded = "</v>"};
  Texts any("true", tags);
  CHECK(any.has(R"(["a</v","<\/v>",{"b":"v>"}])"));
  CHECK_FALSE(any.has(R"(["a</v>"])"));
  CHECK_FALSE(any.has(R"({"</v>":1})"));
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
  };
  CHECK(has(refusal(R"({"enum":["a","</v>"]})", tags), "'</v>' cannot be written"));
  CHECK(has(refusal(R"({"properties":{"a</v>":{}}})", tags), "'properties' at #"));
  CHECK(has(refusal(R"({"properties":{"x":{"properties":{"a b":{}}}}})", bare),
            "'properties' at #/properties/x"));
  CHECK(has(refusal(R"({"type":"string","pattern":"^</v>$"})", tags), "no value meets #"));
}

}  // namespace mica::test::spelling_test
