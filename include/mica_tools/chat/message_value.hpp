// SPDX-License-Identifier: Apache-2.0
//
// Messages as templates read them: mappings with the names of OpenAI's API. Needs nlohmann/json; include it
// in one .cpp of a program.
//
//   {"role": "assistant", "content": ..., "tool_calls": [{"id": ..., "type": "function",
//                                                         "function": {"name": ..., "arguments": ...}}]}
//   {"role": "tool", "content": ..., "name": ..., "tool_call_id": ...}
#pragma once

#include "mica_tools/chat/call_values.hpp"
#include "mica_tools/chat/json_value.hpp"
#include "mica_tools/chat/message.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::text {

namespace detail {

/// Raises ErrorCode::usage for arguments that are no JSON object.
inline jinja::Value value_of_call(const ToolCall& call, const CallValues& values) {
  jinja::Value arguments = call.arguments;
  if (!values.arguments_are_text) {
    const auto json =
        io::parse_json<nlohmann::ordered_json>(call.arguments, "the arguments of a call", ErrorCode::usage);
    MICA_CHECK(json.is_object(), usage, "the arguments of a call of '", escaped(call.name, 60),
               "' are no JSON object");
    arguments = text::value_of_json(json);
  }
  jinja::Value function = jinja::Value::mapping({{"name", call.name}, {"arguments", std::move(arguments)}});
  jinja::Value::Entries entries = {{"type", "function"}, {"function", std::move(function)}};
  if (!call.id.empty()) entries.insert(entries.begin(), {"id", call.id});
  return jinja::Value::mapping(std::move(entries));
}

inline jinja::Value value_of_message(const Message& message, const CallValues& values) {
  const bool is_null = values.content_is_null && message.content.empty() && !message.calls.empty();
  jinja::Value::Entries entries = {
      {"role", message.role}, {"content", is_null ? jinja::Value(nullptr) : jinja::Value(message.content)}};
  if (!message.thoughts.empty())  // a template may use either name
    for (const char* const name : {"reasoning_content", "thinking"})
      entries.emplace_back(name, message.thoughts);
  std::vector<jinja::Value> calls;
  for (const ToolCall& call : message.calls) calls.push_back(value_of_call(call, values));
  if (!calls.empty()) entries.emplace_back("tool_calls", jinja::Value::list(std::move(calls)));
  if (!message.tool.empty()) entries.emplace_back("name", message.tool);
  if (!message.call_id.empty()) entries.emplace_back("tool_call_id", message.call_id);
  return jinja::Value::mapping(std::move(entries));
}

}  // namespace detail

/// The list for ChatFormat::render(). Raises ErrorCode::usage for arguments that are no JSON object, and
/// limit for those that nest deeper than values may.
[[nodiscard]] inline jinja::Value value_of_messages(std::span<const Message> messages,
                                                    const CallValues& values = {}) {
  std::vector<jinja::Value> out;
  for (const Message& message : messages) out.push_back(detail::value_of_message(message, values));
  return jinja::Value::list(std::move(out));
}

}  // namespace mica::text
