// SPDX-License-Identifier: Apache-2.0
//
// The parts of formats, which a grammar is made of, and the schemas of tools.

#include "mica_tools/calls/call_parts.hpp"

#include "mica_tools/calls/known_formats.hpp"
#include "mica_tools/calls/tools_of_json.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::call_parts_test {

namespace {

using calls::call_parts;
using calls::CallPart;
using calls::format_named;

/// Texts as they are, tokens in «», the other parts in capitals.
std::string shown(const std::vector<CallPart>& parts) {
  constexpr std::array names = {"", "", "NAME", "ID", "NUMBER", "ARGUMENTS", "KEY", "TYPE", "VALUE"};
  std::string out;
  for (const CallPart& part : parts) {
    const bool is_token = part.kind == CallPart::Kind::token;
    out +=
        names[static_cast<std::size_t>(part.kind)] + (is_token ? "\u00AB" + part.text + "\u00BB" : part.text);
  }
  return out;
}

}  // namespace

TEST_CASE("the parts of a format stand in the order in which they are written") {
  const auto hermes = call_parts({});
  CHECK(shown(hermes.call) == "<tool_call>\n{\"name\": \"NAME\", \"arguments\": ARGUMENTS}\n</tool_call>");
  CHECK(shown(hermes.separator) == "\n");
  CHECK(hermes.opening.empty());
  const auto coder = call_parts(format_named("qwen3-coder"));
  CHECK(shown(coder.call) == "<tool_call>\n<function=NAME>ARGUMENTS\n</function>\n</tool_call>");
  CHECK(shown(coder.parameter) == "\n<parameter=KEY>\nVALUE\n</parameter>");
  CHECK(coder.parameter_separator.empty());
  const auto python = call_parts(format_named("llama-4"));
  CHECK(shown(python.opening) + shown(python.call) + shown(python.closing) == "[NAME(ARGUMENTS)]");
  CHECK(shown(python.parameter) + shown(python.parameter_separator) == "KEY=VALUE, ");
  const auto gemma = call_parts(format_named("gemma-4"));
  CHECK(shown(gemma.call) == "<|tool_call>call:NAME{ARGUMENTS}<tool_call|>");
  CHECK(shown(gemma.parameter) + shown(gemma.parameter_separator) == "KEY:VALUE,");
  CHECK(gemma.quote == "<|\"|>");
  CHECK(shown(call_parts(format_named("kimi-k2")).call) ==
        "<|tool_call_begin|>functions.NAME:NUMBER<|tool_call_argument_begin|>ARGUMENTS<|tool_call_end|>");
  CHECK(shown(call_parts(format_named("mistral")).call) ==
        R"({"name": "NAME", "arguments": ARGUMENTS, "id": "ID"})");
  CHECK(shown(call_parts(format_named("command-r")).call) ==
        R"({"tool_call_id": "ID", "tool_name": "NAME", "parameters": ARGUMENTS})");
  CHECK(shown(call_parts(format_named("deepseek-v4")).parameter) ==
        "<\uFF5CDSML\uFF5Cparameter name=\"KEY\" string=\"TYPE\">VALUE</\uFF5CDSML\uFF5Cparameter>\n");
}

TEST_CASE("tokens of the vocabulary are parts of their own, the longest first") {
  constexpr std::array<std::string_view, 3> tokens = {"<tool_call>", "</tool_call>", "</tool"};
  CHECK(shown(call_parts({}, tokens).call) ==
        "\u00AB<tool_call>\u00BB\n{\"name\": \"NAME\", \"arguments\": ARGUMENTS}\n\u00AB</tool_call>\u00BB");
}

TEST_CASE("a mark of the format is known by the text of its token") {
  const auto format = format_named("kimi-k2");
  CHECK(calls::is_mark(format, "<|tool_call_begin|>"));
  CHECK(calls::is_mark(format, "</think>"));
  CHECK_FALSE(calls::is_mark(format, "<|im_end|>"));
  CHECK(calls::is_mark(format_named("gpt-oss"), "<|constrain|>"));
  CHECK(calls::is_mark(format_named("gemma-4"), "<|\"|>"));
  CHECK_FALSE(calls::is_mark(format, ""));
}

TEST_CASE("a parameter is JSON where its schema has no string") {
  const auto json = nlohmann::json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object",
    "$defs": {"size": {"type": "integer"}, "word": {"enum": ["a", "b"]}, "loop": {"$ref": "#/$defs/loop"}},
    "properties": {"s": {"type": "string"}, "n": {"type": "number"}, "u": {}, "e": {"enum": [1, 2]},
      "m": {"type": ["string", "null"]}, "c": {"const": true}, "w": {"$ref": "#/$defs/word"},
      "r": {"$ref": "#/$defs/size"}, "x": {"$ref": "#/none"}, "l": {"$ref": "#/$defs/loop"},
      "a": {"anyOf": [{"type": "object"}, {"type": "null"}]},
      "o": {"oneOf": [{"type": "object"}, {"type": "string"}]}}}}},
    {"name": "g"}, {"function": 3}, 4])");
  const auto tools = calls::tools_of_json(json);
  REQUIRE(tools.size() == 2);
  CHECK(tools[0].name == "f");
  CHECK(tools[0].json_parameters == std::vector<std::string>{"a", "c", "e", "n", "r"});
  CHECK(tools[0].is_string("s"));
  CHECK(tools[0].is_string("unknown"));
  CHECK_FALSE(tools[0].is_string("n"));
  CHECK(tools[1].name == "g");
  CHECK(calls::tools_of_json(nlohmann::json::object()).empty());
}

}  // namespace mica::test::call_parts_test
