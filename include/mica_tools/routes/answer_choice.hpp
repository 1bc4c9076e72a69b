// SPDX-License-Identifier: Apache-2.0
//
// The answers that a request allows: calls of tools, text, or JSON of a schema. The routes of every API fill
// one struct, which becomes the constraint of the answer.
#pragma once

#include "mica_tools/calls/call_language.hpp"
#include "mica_tools/routes/constraints.hpp"
#include "mica_tools/routes/parts.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

struct AnswerChoice {
  Json tools = Json::array();  // as OpenAI describes them
  calls::ToolChoice choice = calls::ToolChoice::automatic;
  std::string name = {};  // of the tool that must be called, for ToolChoice::named
  bool parallel = true;   // several calls in one answer
  /// JSON Schema of the text; empty: any text. schema_place: its field in the request.
  std::string schema = {}, schema_place = {};
};

/// Texts meet a schema. Raises Refusal (invalid) for a value that is no schema, and for a second schema.
inline void require_schema(AnswerChoice& out, const Json& schema, const std::string& place) {
  check_schema(schema, place);
  if (!out.schema.empty()) refuse_field(place, "a request has one grammar or schema");
  out.schema = schema.dump();
  out.schema_place = place;
}
/// Texts are JSON objects.
inline void require_object(AnswerChoice& out, const std::string& place) {
  require_schema(out, Json{{"type", "object"}}, place);
}

/// Reads a response format of OpenAI's APIs: text, json_object or json_schema. Chat completions have the
/// schema in the field `json_schema`, responses beside the type. A schema is always enforced, `strict` or
/// not.
inline void read_format(const Json& given, const std::string& place, AnswerChoice& out) {
  Fields format(given, place);
  const std::string type = format.need_text("type");
  if (type == "json_object") {
    // llama-server has a schema here, too.
    const Json* const schema = format.find("schema");
    schema != nullptr ? require_schema(out, *schema, format.place("schema")) : require_object(out, place);
  } else if (type == "json_schema") {
    const Json* const inner = format.find("json_schema");
    Fields named(inner != nullptr ? *inner : given, inner != nullptr ? format.place("json_schema") : place);
    for (const char* const name : {"name", "description", "strict", "type"}) named.accept(name);
    require_schema(out, named.need("schema"), named.place("schema"));
    named.refuse_others();
    if (inner == nullptr) return;
  } else if (type != "text") {
    refuse_field(format.place("type"),
                 join("found '", escaped(type, 40), "', allowed: text, json_object, json_schema"));
  }
  format.refuse_others();
}

/// Adds a tool. place: its field in the request. Raises Refusal (invalid) for a name that is there already.
inline void add_tool(AnswerChoice& out, const std::string& name, const std::string& description,
                     const Json* parameters, const std::string& place) {
  if (name.empty()) refuse_field(place, "the name of the tool is empty");
  for (const Json& each : out.tools) {
    if (each["function"]["name"] == name)
      refuse_field(place, join("the tool '", escaped(name, 60), "' is there twice"));
  }
  Json function = {{"name", name}};
  if (!description.empty()) function["description"] = description;
  function["parameters"] =
      parameters != nullptr ? *parameters : Json::parse(R"({"type":"object","properties":{},
    "additionalProperties":false})");
  out.tools.push_back({{"type", "function"}, {"function", std::move(function)}});
}

/// The tool that must be called. Raises Refusal (invalid) for one that is not there.
inline void choose_tool(AnswerChoice& out, std::string name, const std::string& place) {
  const auto is_it = [&](const Json& tool) { return tool["function"]["name"] == name; };
  if (std::none_of(out.tools.begin(), out.tools.end(), is_it))
    refuse_field(place, join("there is no tool '", escaped(name, 60), "'"));
  out.choice = calls::ToolChoice::named;
  out.name = std::move(name);
}

/// Reads one entry of `tools` of OpenAI's APIs. Chat completions have name and schema in "function",
/// responses beside the type.
inline void read_tool(const Json& json, const std::string& place, AnswerChoice& out) {
  Fields entry(json, place);
  const std::string type = entry.text("type").value_or("function");
  if (type != "function")
    refuse_field(entry.place("type"),
                 join("found '", escaped(type, 40),
                      "', but this server has no tools of its own; it takes those "
                      "of the type function, which the client runs"),
                 Cause::option);
  const Json* const inner = entry.find("function");
  Fields tool(inner != nullptr ? *inner : json, inner != nullptr ? entry.place("function") : place);
  tool.accept("type");
  tool.accept("strict");  // schemas are always enforced
  const std::string name = tool.need_text("name");
  add_tool(out, name, tool.text("description").value_or(""), tool.find("parameters"), tool.place("name"));
  tool.refuse_others();
  if (inner != nullptr) entry.refuse_others();
}

/// Reads `tools` of OpenAI's APIs and Ollama's.
inline void read_tool_list(Fields& fields, AnswerChoice& out) {
  const Json* const tools = fields.find("tools");
  if (tools == nullptr) return;
  if (!tools->is_array()) fields.refuse_type("tools", "an array", *tools);
  for (std::size_t i = 0; i < tools->size(); ++i)
    read_tool((*tools)[i], join(fields.place("tools"), "[", i, "]"), out);
}

/// Reads tools, tool_choice and parallel_tool_calls of OpenAI's APIs.
inline void read_tools(Fields& fields, AnswerChoice& out) {
  read_tool_list(fields, out);
  out.parallel = fields.flag("parallel_tool_calls").value_or(true);
  const Json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return;
  if (*choice == "none") {
    out.choice = calls::ToolChoice::none;
  } else if (*choice == "required") {
    if (out.tools.empty()) refuse_field(fields.place("tool_choice"), "is 'required', but there are no tools");
    out.choice = calls::ToolChoice::required;
  } else if (choice->is_object()) {
    Fields named(*choice, fields.place("tool_choice"));
    if (const std::string type = named.text("type").value_or("function"); type != "function")
      refuse_field(named.place("type"), join("found '", escaped(type, 40), "', supported: function"),
                   Cause::option);
    const Json* const inner = named.find("function");
    Fields function(inner != nullptr ? *inner : *choice,
                    inner != nullptr ? named.place("function") : fields.place("tool_choice"));
    function.accept("type");
    choose_tool(out, function.need_text("name"), fields.place("tool_choice"));
    function.refuse_others();
    if (inner != nullptr) named.refuse_others();
  } else {
    refuse_field(fields.place("tool_choice"),
                 "must be 'none', 'auto', 'required' or {\"type\": \"function\", ...} with a name");
  }
}

/// Renders the conversation into job.prompt, and constrains the answer to what the choice allows. Returns how
/// calls in the answer are to be read; null without tools and schema. Raises Refusal: what
/// ServedModel::prompt() raises; option, with keyword and place, for a keyword that is not enforced and a
/// name that the family cannot write; invalid for a value that is no schema, one that is too large, and a
/// schema or tools beside a grammar.
[[nodiscard]] inline std::shared_ptr<const CallReading> begin_answer(Job& job, Conversation& conversation,
                                                                     const AnswerChoice& choice) {
  if (!choice.tools.empty()) conversation.tools = dump(choice.tools);
  job.prompt = job.model->prompt(conversation);
  if (choice.tools.empty() && choice.schema.empty()) return nullptr;
  const ServedCalls& served = job.model->calls();
  using calls::ToolChoice;
  const bool has_text = choice.choice == ToolChoice::automatic || choice.choice == ToolChoice::none;
  auto reading = std::make_shared<CallReading>(
      CallReading{served.its.format, calls::tools_of_json(choice.tools), has_text});
  const calls::CallFormat& format = reading->format;

  const auto tokens = job.model->tokens();
  std::vector<std::string_view> texts;
  for (const ServedCalls::Mark& mark : served.marks) {
    texts.push_back(mark.text);
    if (!mark.is_end) job.shown.push_back(mark.id);
  }
  calls::CallLanguageOptions options;
  options.choice = choice.choice;
  options.name = choice.name;
  options.parallel = choice.parallel;
  options.text_schema = choice.schema;
  options.prompt = job.prompt.end;
  options.tokens = texts;
  options.token_bytes = [&](std::string_view text) {
    const auto mark = std::find_if(served.marks.begin(), served.marks.end(),
                                   [text](const ServedCalls::Mark& each) { return each.text == text; });
    return mark == served.marks.end() || mark->is_end ? std::string()
                                                      : std::string(tokens->bytes_of(mark->id));
  };
  options.thoughts = conversation.thinking.value_or(true);
  options.stop = job.prompt.stop;
  bound(options.schema);
  if (choice.tools.empty())
    options.schema.whitespace = schema::Whitespace::compact, options.schema.unlisted_members = true;
  constrain(job, choice.tools.empty() ? choice.schema_place : "tools", [&] {
    return calls::call_language(format, choice.tools.empty() ? "[]" : conversation.tools, options);
  });
  return reading;
}

}  // namespace mica::serve
