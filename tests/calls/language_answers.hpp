// SPDX-License-Identifier: Apache-2.0
//
// Tools of several kinds, calls of them as a family writes them, and the language of such answers.
#pragma once

#include "answers.hpp"
#include "language_texts.hpp"
#include "mica_tools/calls/call_language.hpp"
#include "mica_tools/calls/known_formats.hpp"
#include "mica_tools/calls/tools_of_json.hpp"
#include "mica_tools/schema/cases.hpp"

#include <string>
#include <vector>

namespace mica::test {

inline const std::string language_tools = R"([
  {"type": "function", "function": {"name": "get_weather", "description": "<tool_call> Weather", "strict": true,
    "parameters": {"type": "object", "$defs": {"days": {"type": "integer", "minimum": 1, "maximum": 14}},
      "properties": {
        "city": {"type": "string"},
        "days": {"$ref": "#/$defs/days"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "list": {"type": "array", "maxItems": 3, "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        "at": {"type": "object", "properties": {"lat": {"type": "number", "minimum": -90, "maximum": 90},
            "name": {"type": "string"}}, "required": ["lat"], "additionalProperties": false},
        "flag": {"type": "boolean"}, "none": {"type": "null"}},
      "required": ["city", "days"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "add-two", "description": "Adds",
    "parameters": {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"},
      "note": {"type": ["string", "null"]}}, "required": ["a", "b"]}}},
  {"name": "now"},
  {"name": "book", "input_schema": {"type": "object", "properties": {
    "code": {"type": "string", "pattern": "^[A-Z]{3}$"}, "text": {"type": "string", "minLength": 1, "maxLength": 5},
    "day": {"type": "string", "format": "date"}}, "required": ["code"], "additionalProperties": false}}])";
inline const std::vector<ToolTypes> language_types = calls::tools_of_json(Json::parse(language_tools));

inline const Json weather_arguments = {{"city", "K\u00F6ln \"S\u00FCd\" 'x' {a} [b] (c) \\d </x> <"},
                                       {"days", 3},
                                       {"unit", "celsius"},
                                       {"list", {"x", 7}},
                                       {"at", {{"lat", -7.5}, {"name", "a'b"}}},
                                       {"flag", true},
                                       {"none", nullptr}};

/// Calls with the ids that the format writes.
inline std::vector<Call> calls_for(const CallFormat& format, std::vector<Call> calls) {
  const bool has_id = !format.keys.id.empty() || (!format.id.open.empty() && !format.id.is_number);
  for (Call& call : calls) call.id = has_id ? "aBc123xyz" : "";
  return calls;
}
/// One call as the family writes it.
inline std::string written(const CallFormat& format, const std::string& name, const Json& arguments) {
  return written_calls(format, calls_for(format, {{name, arguments.dump()}}));
}
inline std::string written_twice(const CallFormat& format) {
  const Call add{"add-two", R"({"a":-15,"b":2})"};
  return written_calls(format, calls_for(format, {{"get_weather", weather_arguments.dump()}, add}));
}

inline bool has_mark(const CallFormat& format) { return calls::detail::has_mark(format); }
inline std::string with_thoughts(const CallFormat& format, const std::string& rest) {
  if (format.has_channels) return "<|channel|>analysis<|message|>Hm, <b>.<|end|><|start|>assistant" + rest;
  return format.thoughts.open + "\nHm, <b> so.\n" + format.thoughts.close + "\n\n" + rest;
}
inline std::string with_text(const CallFormat& format, const std::string& rest) {
  const std::string text = "I look <tool> it up [1].";
  if (format.has_channels)
    return "<|channel|>commentary<|message|>" + text + "<|end|><|start|>assistant" + rest;
  if (!has_mark(format)) return rest;
  return (format.family == "functionary-3.2" ? ">>>all\n" : "") + text + "\n\n" + rest;
}

/// A language whose marks are tokens or not, and answers in it.
struct Answers {
  explicit Answers(const CallFormat& of, bool are_tokens = false, calls::CallLanguageOptions options = {},
                   const std::string& list = language_tools)
      : format(of), tokens(of, are_tokens), texts(language(options, list)) {}

  bool has(const std::string& answer) { return texts.has(tokens.bytes_of(answer)); }

  const CallFormat& format;
  MarkTokens tokens;
  LanguageTexts texts;

 private:
  constraint::Language language(calls::CallLanguageOptions& options, const std::string& list) const {
    options.schema.unlisted_members = true;
    options.schema.whitespace = schema::Whitespace::compact;  // as CallWriter writes JSON
    tokens.set(options);
    return calls::call_language(format, list, options);
  }
};

/// Whether arguments meet a schema.
inline bool meets(const Json& schema, const std::string& arguments) {
  const schema::SchemaOptions options;
  schema::Document document(schema.dump(), options);
  constraint::Expressions expressions;
  schema::Strings strings(expressions);
  try {
    return schema::Cases(document, strings, options).meets(Json::parse(arguments), {0});
  } catch (const Json::out_of_range&) {
    return true;  // a number that is too large for a double
  }
}
/// Whether the arguments of a call meet the schema of its tool.
inline bool meets(const Call& call) {
  for (const Json& each : Json::parse(language_tools)) {
    const Json& tool = each.contains("function") ? each["function"] : each;
    if (tool["name"] != call.name) continue;
    const Json* const found = calls::detail::parameters_of(tool);
    return meets(found == nullptr ? Json{{"additionalProperties", false}} : *found, call.arguments);
  }
  return false;
}

}  // namespace mica::test
