// SPDX-License-Identifier: Apache-2.0
//
// Masks of schemas, token by token. A token is tried by its bytes alone, and where a schema has few
// values, by the list of all their texts, which knows nothing of expressions and masks.

#include "json_vocabulary.hpp"
#include "mica/constraint/grammar.hpp"
#include "mica_tools/schema/cases.hpp"
#include "schema_texts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::mask_test {
namespace {

using constraint::StateId;
using constraint::TokenMask;
using schema::Json;
using schema::MemberOrder;

struct Example {
  const char* schema;
  std::vector<std::string> texts;  // of the schema
};

const std::vector<Example> examples = {
    {R"({})", {R"({"a":[1,true,null,-2.5e3],"b\n":"\u00e9 \/ \"x\""})", "\"日本語 and é\""}},
    {R"({"type":"string"})", {R"("plain, \"quoted\", \\, \u0041\uD83D\uDE00 and 😀")"}},
    {R"({"type":"string","minLength":2,"maxLength":5})", {R"("abcde")", R"("é日本")", R"("\n\u0061")"}},
    {R"({"type":"string","minLength":30,"maxLength":70})",
     {R"("a text of more than thirty characters, é and 日本")"}},
    {R"({"type":"string","pattern":"^[A-Z]{2}-[0-9]{3,5}$"})", {R"("AB-1234")"}},
    {R"({"type":"string","pattern":"^(?:\\S+\\s+){0,9}\\S+$"})", {R"("count these few words, é 日本")"}},
    {R"({"type":"string","pattern":"ab+c"})", {R"("before abbbc after")"}},
    {R"({"type":"string","pattern":"^[^/\"]*(/[^/\"]*){1,3}$"})", {R"("/usr/lib/é")", R"("a/b\\c")"}},
    {R"({"type":"string","pattern":"^.{3,40}$"})", {R"("x y z 日本語")"}},
    {R"({"type":"string","not":{"enum":["abc","ab","é"]}})", {R"("abcd")", R"("a")", R"("éé")"}},
    {R"({"type":"string","format":"date-time"})",
     {R"("2024-02-29T23:59:60.5Z")", R"("1999-12-31T00:00:00+01:00")"}},
    {R"({"type":"string","format":"uuid"})", {R"("123e4567-e89b-12d3-a456-426614174000")"}},
    {R"({"type":"string","format":"email"})", {R"("first.last@x.example.org")"}},
    {R"({"type":"string","format":"uri"})", {R"("https://user@example.org:8080/a%20b?q=1#top")"}},
    {R"({"type":"string","format":"ipv6"})", {R"("2001:db8::7")", R"("::ffff:1.2.3.4")"}},
    {R"({"type":"integer"})", {"0", "-17", "12345678901234567890"}},
    {R"({"type":"number"})", {"-0.5e-10", "123.456", "0"}},
    {R"({"type":"integer","minimum":-17,"exclusiveMaximum":1234})", {"-17", "1233", "0", "99"}},
    {R"({"type":"number","exclusiveMinimum":0.25,"maximum":10})", {"0.26", "10", "9.99"}},
    {R"({"type":"number","multipleOf":0.25})", {"1.75", "-3", "100.5"}},
    {R"({"enum":["red","green","reddish",12,123,null,[1,"a"],{"a":{"b":true}}]})",
     {R"("reddish")", "123", R"([1,"a"])", R"({"a":{"b":true}})"}},
    {R"({"type":"array","items":{"type":"array","items":{"type":"integer"}},"minItems":1,"maxItems":3})",
     {"[[1,2],[],[3]]", "[[]]"}},
    {R"({"prefixItems":[{"const":1},{"type":"string"}],"items":{"type":"boolean"},"type":"array"})",
     {R"([1,"a",true,false])"}},
    {R"({"type":"array","items":{"enum":[1,2,"a","é"]},"uniqueItems":true})", {R"([2,"é",1])"}},
    {R"({"type":"array","items":{"type":["string","integer"]},"contains":{"const":7},"maxContains":2})",
     {R"(["a",7,70,"7",7])"}},
    {R"({"properties":{"name":{"type":"string"},"born":{"type":"integer"}},"required":["name"],
         "type":"object"})",
     {R"({"name":"Ada","born":1815})", R"({"name":"","nam":1,"é":null})", R"({"name":"a","names":{}})"}},
    {R"({"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"string"},"é":{}},
         "additionalProperties":false})",
     {R"({"a":1,"ab":"x","é":[{}]})", R"({"ab":""})"}},
    {R"({"type":"object","patternProperties":{"^x-":{"type":"integer"},"y$":{"type":"boolean"}}})",
     {R"({"x-a":1,"by":true,"other":null})"}},
    {R"({"type":"object","propertyNames":{"pattern":"^[a-z_]+$"},"additionalProperties":{"type":"number"}})",
     {R"({"a_b":1.5,"name":-2})"}},
    {R"({"type":"object","additionalProperties":{"type":"string"},"maxProperties":2})",
     {R"({"a":"b","c":"d"})"}},
    {R"({"type":"object","properties":{"card":{"type":"integer"},"street":{"type":"string"}},
         "dependentRequired":{"card":["street"]}})",
     {R"({"card":12,"street":"a"})", R"({"street":"b","x":0})"}},
    {R"({"type":"object","properties":{"kind":{"enum":["a","b"]},"value":{}},"required":["kind","value"],
         "if":{"properties":{"kind":{"const":"a"}}},"then":{"properties":{"value":{"type":"integer"}}},
         "else":{"properties":{"value":{"type":"string"}}}})",
     {R"({"kind":"a","value":12})", R"({"kind":"b","value":"12"})"}},
    {R"({"oneOf":[{"type":"integer","minimum":0},{"type":"number","maximum":10},{"type":"string"}]})",
     {"-3.5", "11", R"("s")"}},
    {R"({"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
         {"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]})",
     {R"({"a":1,"b":2})", R"({"b":"x","a":null})"}},
    {R"({"allOf":[{"type":"string","pattern":"^a"},{"pattern":"b$"},{"maxLength":6}]})", {R"("a12b")"}},
    {R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"value":{"type":"integer"},
         "next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["value"]}}})",
     {R"({"value":1,"next":{"value":22,"next":null}})"}},
    {R"({"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}}],"properties":{"b":{}},
         "unevaluatedProperties":false})",
     {R"({"b":[],"a":3})", R"({"a":3})"}},
};

/// Compares a mask with what each token's bytes do, and returns the tokens of text that are allowed.
std::vector<TokenId> compare_mask(constraint::Grammar& grammar, constraint::Recognizer& recognizer,
                                  StateId state) {
  const constraint::TokenTrie& tokens = grammar.tokens();
  TokenMask mask;
  REQUIRE(grammar.allowed(mask));
  std::vector<TokenId> out;
  std::string differ;
  for (TokenId id = 0; id < tokens.n_vocab(); ++id) {
    StateId after = state;
    for (const char c : tokens.bytes_of(id)) after = recognizer.step(after, static_cast<std::uint8_t>(c));
    const bool allowed = tokens.is_end(id) ? recognizer.accepts(state)
                                           : !tokens.bytes_of(id).empty() && after != StateId::dead;
    if (allowed != mask.contains(id)) differ += escaped(tokens.bytes_of(id)) + " ";
    if (allowed && !tokens.is_end(id)) out.push_back(id);
  }
  CHECK(differ == "");
  return out;
}

StateId after(constraint::Recognizer& recognizer, std::string_view text) {
  StateId state = recognizer.start();
  for (const char c : text) state = recognizer.step(state, static_cast<std::uint8_t>(c));
  return state;
}

}  // namespace

TEST_CASE("masks of schemas have the tokens whose bytes can follow, at each place of a text") {
  CounterRng rng(41);
  std::size_t masks = 0;
  for (const Example& example : examples) {
    CAPTURE(std::string(example.schema));
    const schema::SchemaOptions options{.order =
                                            rng.next() % 2 == 0 ? MemberOrder::any : MemberOrder::schema};
    SchemaTexts texts(example.schema, options);
    constraint::Grammar grammar(json_vocabulary(example.texts, rng),
                                schema::parse_schema(example.schema, options));
    for (std::size_t i = 0; i < example.texts.size() + 2; ++i) {
      const bool is_given = i < example.texts.size();  // or else of random tokens
      std::string text;
      constraint::Grammar at = grammar;
      if (is_given && options.order == MemberOrder::any) CHECK(texts.has(example.texts[i]));
      const auto given = is_given ? grammar.tokens().tokens_of(example.texts[i]) : std::vector<TokenId>();
      for (std::size_t n = 0; n < (is_given ? given.size() + 1 : 25); ++n) {
        CAPTURE(text);
        ++masks;
        const auto allowed = compare_mask(at, texts.recognizer(), after(texts.recognizer(), text));
        if (is_given ? n == given.size() : allowed.empty()) break;
        const TokenId next = is_given ? given[n] : allowed[rng.next() % allowed.size()];
        if (!at.advance(next)) break;  // another order of members
        text += grammar.tokens().bytes_of(next);
      }
    }
  }
  CHECK(masks > 1'000);
}

namespace {

/// Schemas all of whose values are among values().
constexpr const char* finite[] = {
    R"({"enum":[1,12,"a","ab",null,[1,2],{"a":1}]})",
    R"({"type":"integer","minimum":-2,"maximum":11})",
    R"({"type":"integer","minimum":-3,"maximum":12,"multipleOf":3})",
    R"({"oneOf":[{"type":"integer","minimum":0,"maximum":5},{"type":"integer","minimum":4,"maximum":12}]})",
    R"({"type":"string","pattern":"^(ab|b)*$","maxLength":3})",
    R"({"type":"string","pattern":"^[ab]*$","maxLength":2,"not":{"const":"ab"}})",
    R"({"type":["boolean","null"]})",
    R"({"not":{"type":["string","number","array","object"]}})",
    R"({"type":"array","items":{"type":"boolean"},"maxItems":2})",
    R"({"type":"array","prefixItems":[{"const":1},{"enum":["a",null]}],"items":false})",
    R"({"type":"array","items":{"enum":[1,"a",null]},"uniqueItems":true,"maxItems":2,"minItems":1})",
    R"({"type":"array","items":{"enum":["a",1]},"contains":{"const":1},"maxItems":2})",
    R"({"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":2},"b":{"type":"boolean"}},
        "required":["a"],"additionalProperties":false})",
    R"({"type":"object","properties":{"a":{"const":1},"b":{"const":1},"c":{"enum":[null,"a"]}},
        "additionalProperties":false,"dependentRequired":{"a":["b"]}})",
    R"({"type":"object","properties":{"a":{"const":"b"},"b":{"const":true},"c":{"const":0}},
        "additionalProperties":false,"minProperties":1,"maxProperties":2})",
    R"({"type":"object","properties":{"a":{"enum":[0,1]},"b":{"enum":["a",1]}},"additionalProperties":false,
        "required":["a"],"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},
        "else":{"properties":{"b":{"type":"string"}}}})",
    R"({"type":"object","properties":{"a":{"enum":[0,"a"]},"b":{"const":null}},"additionalProperties":false,
        "not":{"required":["a","b"]}})",
    R"({"type":"object","properties":{"a":{"type":"array","items":{"enum":[0,1]},"maxItems":2},
        "b":{"const":"b"}},"required":["b"],"additionalProperties":false})",
    R"({"const":{"a":[0,1],"b":"a","c":null}})",
};

/// Numbers, short texts of a and b, and arrays and objects of some of them, whose names are in this order.
std::vector<Json> values() {
  std::vector<Json> out = {nullptr, true, false};
  for (int i = -3; i <= 12; ++i) out.emplace_back(i);
  std::vector<std::string> strings = {""};
  for (std::size_t i = 0; i < strings.size(); ++i) {
    out.emplace_back(strings[i]);
    for (const char c : strings[i].size() < 3 ? std::string_view("ab") : std::string_view())
      strings.push_back(strings[i] + c);
  }
  std::vector<Json> parts = {nullptr, true, false, 0, 1, 2, "a", "b"};
  out.push_back(Json::array());
  for (const Json& a : parts) {
    out.push_back(Json::array({a}));
    for (const Json& b : parts) out.push_back(Json::array({a, b}));
  }
  for (const char* const array : {"[]", "[0]", "[1]", "[0,0]", "[0,1]", "[1,0]", "[1,1]"})
    parts.push_back(Json::parse(array));
  parts.emplace_back(Json::value_t::discarded);  // no member
  for (const Json& a : parts) {
    for (const Json& b : parts) {
      for (const Json& c : parts) {
        Json object = Json::object();
        if (!a.is_discarded()) object["a"] = a;
        if (!b.is_discarded()) object["b"] = b;
        if (!c.is_discarded()) object["c"] = c;
        out.push_back(object);
      }
    }
  }
  return out;
}

/// The texts of a value with its members in this order, or in every one.
std::vector<std::string> texts_of(const Json& value, MemberOrder order) {
  if (!value.is_object() || order == MemberOrder::schema) return {value.dump()};
  std::vector<std::string> members, out;
  for (const auto& [name, member] : value.items()) members.push_back('"' + name + "\":" + member.dump());
  do {
    std::string text;
    for (const std::string& member : members) text += (text.empty() ? "" : ",") + member;
    out.push_back("{" + text + "}");
  } while (std::next_permutation(members.begin(), members.end()));
  return out;
}

void compare_finite(const char* schema_text, const std::vector<Json>& all, MemberOrder order,
                    CounterRng& rng) {
  CAPTURE(std::string(schema_text));
  const schema::SchemaOptions options{.order = order};
  schema::Document document(schema_text, options);
  schema::Expressions expressions;
  schema::Strings strings(expressions);
  schema::Cases cases(document, strings, options);
  std::set<std::string> texts, begins;
  for (const Json& value : all) {
    if (!cases.meets(value, {document.root()})) continue;
    for (const std::string& text : texts_of(value, order)) texts.insert(text);
  }
  REQUIRE(texts.size() > 0);
  for (const std::string& text : texts) {
    for (std::size_t n = 0; n <= text.size(); ++n) begins.insert(text.substr(0, n));
  }
  const constraint::Grammar grammar(json_vocabulary({texts.begin(), texts.end()}, rng),
                                    schema::parse_schema(schema_text, options));
  const constraint::TokenTrie& tokens = grammar.tokens();
  for (const std::string& begin : begins) {
    CAPTURE(begin);
    constraint::Grammar at = grammar;
    if (!begin.empty()) REQUIRE(at.advance(begin));
    TokenMask mask;
    REQUIRE(at.allowed(mask));
    std::string differ;
    for (TokenId id = 0; id < tokens.n_vocab(); ++id) {
      const std::string text = begin + std::string(tokens.bytes_of(id));
      const bool allowed =
          tokens.is_end(id) ? texts.contains(begin) : text.size() > begin.size() && begins.contains(text);
      if (allowed != mask.contains(id)) differ += escaped(tokens.bytes_of(id)) + " ";
    }
    CHECK(differ == "");
  }
}

}  // namespace

TEST_CASE("where a schema has few values, a token is allowed if and only if a text of one goes on with it") {
  CounterRng rng(42);
  const std::vector<Json> all = values();
  for (const char* const schema : finite) {
    compare_finite(schema, all, MemberOrder::any, rng);
    compare_finite(schema, all, MemberOrder::schema, rng);
  }
}

}  // namespace mica::test::mask_test
