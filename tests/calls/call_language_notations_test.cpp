// SPDX-License-Identifier: Apache-2.0
//
// The language of answers with calls where notations and prompts differ: thoughts, formats without a mark,
// channels, tags, and what is refused.

#include "language_answers.hpp"
#include "mica_tools/calls/call_language.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::call_language_notations_test {
namespace {

using calls::call_language;
using calls::CallLanguageOptions;
using calls::format_named;
using calls::ToolChoice;

std::string refusal(const CallFormat& format, const std::string& list,
                    const CallLanguageOptions& options = {}) {
  try {
    static_cast<void>(call_language(format, list, options));
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}
std::string tool_with(const std::string& schema) {
  return R"([{"name": "f", "parameters": {"type": "object", "properties": )" + schema + "}}]";
}

}  // namespace

TEST_CASE("thoughts that the prompt opened are closed before an answer") {
  const CallFormat format;
  const std::string call = written(format, "now", Json::object());
  Answers open(format, false, {.thoughts = false, .prompt = "<|im_start|>assistant\n<think>\n"});
  CHECK(open.has("Hm.\n</think>\n\nHi" + call));
  CHECK_FALSE(open.has("Hm." + call));
  CHECK_FALSE(open.has("Hm. </think>\n<think>\n" + call));
  Answers closed(format, false, {.thoughts = false, .prompt = "<think>\n\n</think>\n\n"});
  CHECK(closed.has("Hi" + call));
  CHECK_FALSE(closed.has("<think>Hm.</think>" + call));
  CHECK_FALSE(closed.has(" < think>Hm." + call));
  CHECK(closed.has("Yes <think> no." + call));
}

TEST_CASE("formats without a mark: a call from the first byte, or text that does not begin like one") {
  const CallFormat llama = format_named("llama-3");
  Answers object(llama);
  CHECK(object.has(R"({"a": 1} is JSON)"));
  CHECK_FALSE(object.has(R"({"name": "Ada"})"));
  CHECK_FALSE(object.has(R"( { "parameters": {}, "name": "now"})"));
  CHECK(object.has(R"(So: {"name": "now", "parameters": {}})"));
  CHECK(object.has(R"(<|python_tag|>{"name": "now", "parameters": {}})"));
  CHECK_FALSE(object.has(R"(<|python_tag|>{"name": "now", "parameters": {"a": 1}})"));
  const CallFormat python = format_named("llama-4");
  Answers list(python);
  CHECK(list.has("[now](http://x)"));
  CHECK(list.has("[1, 2]"));
  CHECK_FALSE(list.has("[now(x=1)]"));
  CHECK_FALSE(list.has(" [ now (x"));
  CHECK(list.has("[now(), add-two(a=1, b=2, note='it')]"));
  CHECK(list.has(R"([add-two(a=1, b=2, note="it's", more={'a': [True, None]})])"));
  CHECK_FALSE(list.has("[add-two(a=1, b=true)]"));
}

TEST_CASE("a prompt may end with the beginning of a call") {
  const CallFormat format = format_named("functionary-3.2");
  Answers answers(format, false, {.prompt = "assistant<|end_header_id|>\n\n>>>"});
  CHECK(answers.has("all\nHello"));
  CHECK(answers.has("now\n{}"));
  CHECK(answers.has("all\nHello>>>now\n{}>>>add-two\n{\"a\":1,\"b\":2}"));
  CHECK_FALSE(answers.has("Hello"));
  CHECK_FALSE(answers.has(">>>now\n{}"));
  const CallLanguageOptions begun{.prompt = "assistant<|end_header_id|>\n\n>>>"};
  const std::string call = "now\n{}", text = "all\nHello";
  CallLanguageOptions options = begun;
  options.choice = ToolChoice::none;
  Answers none(format, false, options);
  CHECK(none.has(text));
  CHECK_FALSE(none.has(call));
  CHECK_FALSE(none.has(text + ">>>" + call));
  options.choice = ToolChoice::required;
  Answers required(format, false, options);
  CHECK(required.has(call));
  CHECK_FALSE(required.has(text));
  CHECK_FALSE(required.has(text + ">>>" + call));
  options.text_first = true;
  Answers later(format, false, options);
  CHECK(later.has(call));
  CHECK_FALSE(later.has(text));
  CHECK(later.has(text + ">>>" + call));
  options = begun;
  options.text_first = false;
  Answers either(format, false, options);
  CHECK(either.has(call));
  CHECK(either.has(text));
  CHECK_FALSE(either.has(text + ">>>" + call));
}

TEST_CASE("a family without marks of thoughts has none in its answers") {
  CallFormat format;
  format.thoughts = {};
  const std::string call = written(format, "now", Json::object());
  Answers answers(format, false, {.choice = ToolChoice::required});
  CHECK(answers.has(call));
  CHECK_FALSE(answers.has("<think>\nHm.\n</think>\n\n" + call));
}

TEST_CASE("headers of channels are in any order that models write") {
  const CallFormat format = format_named("gpt-oss");
  Answers answers(format);
  const std::string thoughts = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant";
  for (const std::string header :
       {"<|channel|>commentary to=functions.now <|constrain|>json", "<|channel|>commentary to=functions.now",
        " to=functions.now<|channel|>commentary json",
        " to=functions.now<|channel|>commentary <|constrain|>json"}) {
    CAPTURE(header);
    CHECK(answers.has(header + "<|message|>{}<|call|>"));
    CHECK(answers.has(thoughts + header + "<|message|>{}<|call|>"));
    CHECK(parsed(format, language_types, thoughts + header + "<|message|>{}<|call|>").calls ==
          std::vector<Call>{{"now", "{}"}});
  }
  CHECK(answers.has(thoughts + "<|channel|>final<|message|>Yes."));
  CHECK_FALSE(answers.has(thoughts));
  CHECK_FALSE(answers.has("Yes."));
  CHECK_FALSE(answers.has("<|channel|>final<|message|><|channel|>"));
}

TEST_CASE("the text that ends a turn may follow calls, and nothing else") {
  CallFormat format;
  format.turn_end = "<|tool_response>";
  const std::string call = written(format, "now", Json::object());
  Answers answers(format, true);
  CHECK(answers.has("Hi" + call + "<|tool_response>"));
  CHECK(answers.has(call));
  CHECK_FALSE(answers.has(call + "<|tool_response>."));
}

TEST_CASE("tokens that end an answer are left out: a text may end there") {
  const CallFormat format = format_named("gpt-oss");
  constexpr std::array<std::string_view, 1> tokens = {"<|call|>"};
  CallLanguageOptions options{.tokens = tokens,
                              .token_bytes = [](std::string_view) { return std::string(); }};
  LanguageTexts texts(call_language(format, language_tools, options));
  CHECK(texts.has("<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}"));
  CHECK_FALSE(texts.begins("<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}<"));
}

TEST_CASE("strings between tags are raw, and known as strings by the schema or by a type") {
  const CallFormat coder = format_named("qwen3-coder");
  const auto call = [](const std::string& key, const std::string& value) {
    return "<tool_call>\n<function=add-two>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</"
           "parameter>\n<parameter=" +
           key + ">\n" + value + "\n</parameter>\n</function>\n</tool_call>";
  };
  Answers answers(coder);
  CHECK(answers.has(call("note", "a\n\n\"b\" <c>")));
  CHECK(answers.has(call("other", "any text")));
  CHECK_FALSE(answers.has(call("note", "a</parameter>b")));
  CHECK_FALSE(answers.has(call("a", "2")));
  CHECK_FALSE(answers.has(call("b c", "x")));
  CHECK(answers.has(call("note", "x").substr(12)));  // the model leaves out <tool_call> at times
  const std::string
      begin = "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=days>\n",
      end = "\n</parameter>\n<parameter=flag>\nTrue\n</parameter>\n</function>\n</tool_call>";
  CHECK(answers.has(begin + "3" + end));  // as the template writes it
  CHECK_FALSE(answers.has(begin + "True" + end));
  const std::string list =
      R"([{"name": "f", "parameters": {"properties": {"v": {}, "w": {"items": {"type": "string"}}}}}])";
  const CallFormat dsml = format_named("deepseek-v4");
  Answers typed(dsml, false, {}, list);
  const auto typed_call = [](const std::string& is_string, const std::string& value) {
    const std::string mark = "\uFF5CDSML\uFF5C";
    return "<" + mark + "tool_calls>\n<" + mark + "invoke name=\"f\">\n<" + mark +
           "parameter name=\"v\" string=\"" + is_string + "\">" + value + "</" + mark + "parameter>\n</" +
           mark + "invoke>\n</" + mark + "tool_calls>";
  };
  CHECK(typed.has(typed_call("true", "3")));
  CHECK(typed.has(typed_call("false", "3")));
  CHECK(typed.has(typed_call("false", "[\"a\"]")));
  CHECK_FALSE(typed.has(typed_call("false", "\"a\"")));
  CHECK_FALSE(typed.has(typed_call("false", "a")));
  CHECK_FALSE(typed.has(typed_call("false", "[\"</\uFF5CDSML\uFF5Cparameter>\"]")));
}

TEST_CASE("schemas of many kinds hold in every notation") {
  for (
      const char* const schema : {
          R"({"properties": {"a": {"type": "array", "items": {"enum": ["x", "it's"]}, "uniqueItems": true, "minItems": 1},
             "b": {"const": {"k": [1, null, "s"]}}}, "required": ["a"], "additionalProperties": false})",
          R"({"properties": {"v": {"oneOf": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 5},
             {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}]}}, "required": ["v"]})",
          R"({"properties": {"o": {"patternProperties": {"^x_": {"type": "integer", "minimum": 0, "maximum": 9}},
             "type": "object", "additionalProperties": {"type": "string", "maxLength": 4}}}, "required": ["o"],
             "additionalProperties": false})",
          R"({"properties": {"l": {"prefixItems": [{"type": "string"}, {"multipleOf": 0.5, "minimum": 0, "maximum": 9}],
             "type": "array", "items": false, "minItems": 2}}, "required": ["l"], "additionalProperties": false})",
          R"({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "additionalProperties": false, "properties": {
             "a": {"type": "string", "format": "date"}, "b": {"type": "boolean"}}})",
          R"({"properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"], "additionalProperties": false,
             "$defs": {"n": {"type": "object", "properties": {"v": {"type": "string", "pattern": "^[a-c'\"]+$"},
               "n": {"$ref": "#/$defs/n"}}, "required": ["v"], "additionalProperties": false}}})",
          R"({"additionalProperties": {"type": "string"}})"}) {
    const std::string list = std::string(R"([{"name": "f", "parameters": )") + schema + "}]";
    const std::vector<ToolTypes> types = calls::tools_of_json(Json::parse(list));
    for (const char* const family :
         {"hermes", "qwen3-coder", "deepseek-v4", "kimi-k3", "llama-4", "gemma-4", "functiongemma"}) {
      CAPTURE(schema);
      CAPTURE(family);
      const CallFormat format = format_named(family);
      LanguageTexts texts(call_language(format, list, {.choice = ToolChoice::required, .thoughts = false}));
      CounterRng rng(4);
      for (int i = 0; i < 60; ++i) {
        const std::string answer = texts.random(texts.forced(""), rng.next() % 150, rng);
        CAPTURE(answer);
        const Parsed found = parsed(format, types, answer);
        REQUIRE_FALSE(found.calls.empty());
        for (const Call& call : found.calls) {
          CAPTURE(call.arguments);
          REQUIRE(call.is_complete);
          REQUIRE(call.name == "f");
          REQUIRE(meets(Json::parse(schema), call.arguments));
        }
      }
    }
  }
}

TEST_CASE("what cannot be written or read in a notation is refused with its place") {
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
  };
  const CallFormat hermes, coder = format_named("qwen3-coder"), python = format_named("llama-4"),
                           gemma = format_named("gemma-4");
  CHECK(has(refusal(hermes, tool_with(R"({"a": {"pattern": "(?<=a)b"}})")), "lookbehind"));
  CHECK(has(refusal(hermes, tool_with(R"({"a": {"$ref": "#/$defs/none"}})")), "#/$defs/f/properties/a"));
  CHECK(has(refusal(hermes, R"([{"name": "a\"b"}])"), "a\"b"));
  CHECK(refusal(hermes, R"([{"name": "a b"}])").empty());
  CHECK(has(refusal(coder, R"([{"name": "a b"}])"), "'a b' cannot be read"));
  CHECK(has(refusal(format_named("functionary-3.2"), R"([{"name": "allow"}])"), "'allow' cannot be read"));
  CHECK(has(refusal(python, tool_with(R"({"a b": {}})")), "'a b' cannot be written in the calls of llama-4"));
  CHECK(has(refusal(python, tool_with(R"({"a b": {}})")), "#/$defs/f"));
  CHECK(has(refusal(gemma, tool_with(R"({"o": {"required": ["a b"]}})")), "'a b' cannot be written"));
  CHECK(has(refusal(gemma, tool_with(R"({"o": {"const": "<|\"|>"}})")), "cannot be written"));
  CHECK(has(refusal(coder, tool_with(R"({"o": {"not": {"type": "string"}}})")),
            "'o', which the parser reads as"));
  CHECK(has(refusal(coder, tool_with(R"({"o": {"const": "a</parameter>"}})")), "cannot be written"));
  CHECK(has(refusal(coder, R"([{"name": "f", "parameters": {"minProperties": 1}}])"), "'minProperties'"));
  CHECK(has(refusal(coder, R"([{"name": "f", "parameters": {"additionalProperties": {"type": "integer"}}}])"),
            "'additionalProperties'"));
  const auto with = [](const std::string& parameters) {
    return R"([{"name": "f", "parameters": )" + parameters + "}]";
  };
  for (const CallFormat& format : {coder, python}) {
    CHECK(has(refusal(format, with(R"({"enum": [{"a": 1}, {"a": 2}]})")), "'enum' at #/$defs/f"));
    CHECK(has(refusal(format, with(R"({"not": {"patternProperties": {"^a": {"type": "null"}}}})")),
              "'not' at #"));
    CHECK(has(refusal(format, with(R"({"maxProperties": 1})")), "'maxProperties' at #"));
    const std::string two =
        R"({"properties": {"a": {}, "b": {}}, "additionalProperties": false, "maxProperties": )";
    CHECK(has(refusal(format, with(two + "1}")), "'maxProperties' at #/$defs/f"));
    CHECK(refusal(format, with(two + "2}")).empty());
    CHECK(has(refusal(format, with(R"({"properties": {"": {}}})")), "'properties' at #/$defs/f"));
  }
  CHECK(has(refusal(hermes, R"([{"name": "f", "parameters": {"type": "string"}}])"),
            "no object meets #/$defs/f"));
  CHECK(has(refusal(hermes, R"([{"name": "f"}, {"name": "f"}])"), "'f' is there twice"));
  CHECK(has(refusal(hermes, R"([{"nam": "f"}])"), "entry 0 has no name"));
  CHECK(has(refusal(hermes, "{}"), "no array"));
  CHECK(has(refusal(hermes, "[", {}), "tools"));
  CHECK(has(refusal(hermes, "[]", {.choice = ToolChoice::required}), "there are none"));
  CHECK(
      has(refusal(hermes, language_tools, {.choice = ToolChoice::named, .name = "x"}), "'x' must be called"));
  CHECK(refusal(hermes, "[]").empty());
}

TEST_CASE("names that a notation cannot write are left out where they are not required") {
  const std::string list = R"([{"name": "now", "parameters": {"patternProperties": {"^ ": {}},
      "additionalProperties": false}}])";
  for (const char* const family : {"hermes", "qwen3-coder", "llama-4"}) {
    const CallFormat format = format_named(family);
    Answers answers(format, false, {}, list);
    CHECK(answers.has(written(format, "now", Json::object())));
    CHECK(answers.has(written(format, "now", {{" a", 1}})) == (format.notation == Notation::json));
  }
}

TEST_CASE("parameters may be any schema of an object, with an identifier or without") {
  const CallFormat format;
  Answers answers(format, false, {},
                  R"([{"name": "a", "parameters": true}, {"name": "b", "parameters": {"$id": 5}},
    {"name": "c", "parameters": {"$id": "#x", "$defs": {"t": {"type": "null"}},
      "properties": {"x": {"$ref": "#/$defs/t"}}}}, {"name": "d", "parameters": {"enum": [{"x": 1}, 2]}}])");
  for (const char* const name : {"a", "b"}) CHECK(answers.has(written(format, name, {{"x", 1}})));
  CHECK(answers.has(written(format, "c", {{"x", nullptr}})));
  CHECK_FALSE(answers.has(written(format, "c", {{"x", 1}})));
  CHECK(answers.has(written(format, "d", {{"x", 1}})));
  CHECK_FALSE(answers.has(written(format, "d", {{"x", 2}})));
}

TEST_CASE("references within the schema of a tool stay within it") {
  const CallFormat format;
  const std::string list = R"([
    {"name": "a", "parameters": {"$defs": {"t": {"type": "integer"}}, "properties": {"x": {"$ref": "#/$defs/t"}}}},
    {"name": "b", "parameters": {"$defs": {"t": {"type": "null"}}, "properties": {"x": {"$ref": "#/$defs/t"}}}},
    {"name": "c", "parameters": {"$id": "http://x/c", "definitions": {"t": {"type": "boolean"}}, "properties":
      {"x": {"$ref": "http://x/c#/definitions/t"}}}},
    {"name": "d", "parameters": {"$ref": "#/$defs/o", "$defs": {"o": {"properties": {"x": {"$ref": "#"}},
      "additionalProperties": false}}}}])";
  Answers answers(format, false, {}, list);
  CHECK(answers.has(written(format, "a", {{"x", 1}})));
  CHECK_FALSE(answers.has(written(format, "a", {{"x", nullptr}})));
  CHECK(answers.has(written(format, "b", {{"x", nullptr}})));
  CHECK(answers.has(written(format, "c", {{"x", true}})));
  CHECK(answers.has(written(format, "d", {{"x", {{"x", Json::object()}}}})));
  CHECK_FALSE(answers.has(written(format, "d", {{"y", 1}})));
}

}  // namespace mica::test::call_language_notations_test
