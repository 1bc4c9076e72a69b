// SPDX-License-Identifier: Apache-2.0
//
// What all APIs have in the messages of a conversation: plain text, in a string or in parts of an array, and
// calls of tools with their results.
#pragma once

#include "mica_tools/chat/message.hpp"
#include "mica_tools/http/fields.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace mica::serve {

/// The text of one part. types: of parts that have a field `text`. place: of the part in the request. Raises
/// Refusal: option for other parts (images, audio, files), invalid for other values.
[[nodiscard]] inline std::string part_text(const Json& json, const std::string& place,
                                           std::initializer_list<std::string_view> types = {"text"}) {
  Fields part(json, place);
  const std::string type = part.text("type").value_or("");
  if (std::find(types.begin(), types.end(), type) == types.end())
    refuse_field(part.place("type"), join("found '", escaped(type, 40), "', but this server reads text only"),
                 Cause::option);
  std::string text = part.need_text("text");
  part.accept("cache_control");  // of Anthropic: the prefix cache of this server needs no field for it
  part.accept("annotations");    // of answers, which clients send back
  part.accept("citations");
  part.accept("logprobs");
  part.refuse_others();
  return text;
}

/// A string, or all parts, joined without a separator. Raises as part_text().
[[nodiscard]] inline std::string content_text(const Json& content, const std::string& place,
                                              std::initializer_list<std::string_view> types = {"text"}) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    refuse_field(place, join("must be a string or an array of parts, not ", type_name(content)));
  std::string out;
  for (std::size_t i = 0; i < content.size(); ++i)
    out += part_text(content[i], join(place, "[", i, "]"), types);
  return out;
}

/// The arguments of a call: an object, or its text. Raises Refusal (invalid) for others.
[[nodiscard]] inline std::string arguments_text(const Json& value, const std::string& place) {
  if (value.is_object()) return dump(value);
  if (!value.is_string()) refuse_field(place, join("must be an object in JSON, not ", type_name(value)));
  const std::string& text = value.get_ref<const std::string&>();
  if (text.empty()) return "{}";
  try {
    const Json json = io::parse_json<Json>(text, "the text", ErrorCode::usage);
    if (json.is_object()) return dump(json);
  } catch (const Error& error) {
    refuse_field(place, error.message());
  }
  refuse_field(place, "must be the text of an object in JSON");
}

/// Whose form `tool_calls` has. Ollama's count within the function and may lack arguments, OpenAI's beside it.
enum class CallsOf : std::uint8_t { openai, ollama };

/// Reads `tool_calls` of an assistant: [{"id", "type": "function", "function": {"name", "arguments"}}].
[[nodiscard]] inline std::vector<text::ToolCall> read_tool_calls(Fields& message, CallsOf form) {
  std::vector<text::ToolCall> out;
  const Json* const calls = message.find("tool_calls");
  if (calls == nullptr) return out;
  if (!calls->is_array()) message.refuse_type("tool_calls", "an array", *calls);
  const bool is_openai = form == CallsOf::openai;
  const Json none = Json::object();
  for (std::size_t i = 0; i < calls->size(); ++i) {
    Fields call((*calls)[i], join(message.place("tool_calls"), "[", i, "]"));
    const std::string id = call.text("id").value_or("");
    call.allow_only("type", "function");
    Fields function(call.need("function"), call.place("function"));
    (is_openai ? call : function).accept("index");
    const std::string name = function.need_text("name");
    const Json* const arguments = is_openai ? &function.need("arguments") : function.find("arguments");
    out.push_back(
        {id, name, arguments_text(arguments == nullptr ? none : *arguments, function.place("arguments"))});
    function.refuse_others();
    call.refuse_others();
  }
  return out;
}

/// Sets the missing tool name and id of each result. A result without an id takes the first unanswered call
/// of its tool or, without a name, of any tool.
inline void name_results(std::vector<text::Message>& messages) {
  std::vector<text::ToolCall> open;
  for (text::Message& message : messages) {
    open.insert(open.end(), message.calls.begin(), message.calls.end());
    if (message.role != "tool") continue;
    const auto call = std::find_if(open.begin(), open.end(), [&](const text::ToolCall& each) {
      return message.call_id.empty() ? message.tool.empty() || each.name == message.tool
                                     : each.id == message.call_id;
    });
    if (call == open.end()) continue;
    if (message.tool.empty()) message.tool = call->name;
    if (message.call_id.empty()) message.call_id = call->id;
    open.erase(call);
  }
}

/// Whether the last message is the beginning of the answer.
[[nodiscard]] inline bool continues_answer(const std::vector<text::Message>& messages) {
  return !messages.empty() && messages.back().role == "assistant" && messages.back().calls.empty();
}

}  // namespace mica::serve
