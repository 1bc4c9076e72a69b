// SPDX-License-Identifier: Apache-2.0
//
// A conversation with tools for a template that does not write them all: the rest becomes text of messages.
//
//   tools     at the beginning of the system message or, where there is none, of the first message of the user
//   calls     at the end of the assistant's content, in the format that its answers have
//   results   a message of the user:  <tool_response>\n...\n</tool_response>
#pragma once

#include "mica_tools/calls/call_writer.hpp"
#include "mica_tools/calls/template_calls.hpp"
#include "mica_tools/chat/message.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls {

namespace detail {

/// The last `bytes` letters and digits of an id, with zeros before them.
inline std::string fitted_id(std::string_view id, std::size_t bytes) {
  std::string out;
  for (const char c : id) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter || (c >= '0' && c <= '9')) out += c;
  }
  if (out.size() > bytes) out.erase(0, out.size() - bytes);
  return std::string(bytes - out.size(), '0') + out;
}

/// The text that describes tools to a model. tools: an array in JSON.
inline std::string tools_text(const std::string& tools, const CallFormat& format) {
  const bool is_json = format.notation == Notation::json;
  const std::vector<text::ToolCall> sample = {
      {"0", "NAME", is_json ? R"({"PARAMETER": "VALUE"})" : R"({"PARAMETER":"VALUE"})"}};
  return join("You can call tools. These are their names, and their parameters as JSON Schema:\n", tools,
              "\n\nTo call a tool, write as follows, and nothing behind it:\n",
              CallWriter(format).write(sample), "\n\n");
}

inline void list_tools(std::vector<text::Message>& messages, const std::string& text) {
  const auto has_place = [](const text::Message& message) {
    return message.role == "system" || message.role == "developer" || message.role == "user";
  };
  const auto at = std::find_if(messages.begin(), messages.end(), has_place);
  if (at == messages.end()) return void(messages.insert(messages.begin(), {"user", text}));
  at->content.insert(0, text);
}

/// A message with text and calls becomes two.
inline void part_text_from_calls(std::vector<text::Message>& messages) {
  for (std::size_t i = messages.size(); i-- > 0;) {
    if (messages[i].calls.empty() || messages[i].content.empty()) continue;
    text::Message calls{messages[i].role, {}};
    calls.calls = std::move(messages[i].calls);
    messages[i].calls.clear();
    messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(calls));
  }
}

inline void write_results(std::vector<text::Message>& messages) {
  std::vector<text::Message> out;
  bool follows = false;  // the message before was a result
  for (text::Message& message : messages) {
    const bool is_result = message.role == "tool";
    if (is_result) message = {"user", "<tool_response>\n" + message.content + "\n</tool_response>"};
    if (is_result && follows) {
      out.back().content += "\n" + message.content;
    } else {
      out.push_back(std::move(message));
    }
    follows = is_result;
  }
  messages = std::move(out);
}

}  // namespace detail

/// The messages for the template. tools: an array in JSON, in OpenAI's form; empty: none. Raises
/// ErrorCode::usage for arguments of calls that are no JSON.
[[nodiscard]] inline std::vector<text::Message> write_tools(std::vector<text::Message> messages,
                                                            const std::string& tools,
                                                            const TemplateCalls& its) {
  const std::size_t id_bytes = its.format.id_bytes;
  const auto fit = [id_bytes](std::string& id) {
    if (id_bytes > 0 && !id.empty() && id.size() != id_bytes) id = detail::fitted_id(id, id_bytes);
  };
  for (text::Message& message : messages) {
    fit(message.call_id);
    for (text::ToolCall& call : message.calls) fit(call.id);
    if (its.writes_calls || message.calls.empty()) continue;
    if (!message.content.empty()) message.content += "\n";
    message.content += CallWriter(its.format).write(message.calls);
    message.calls.clear();
  }
  if (its.writes_calls && its.values.text_is_apart) detail::part_text_from_calls(messages);
  if (!its.writes_results) detail::write_results(messages);
  if (!its.lists_tools && !tools.empty()) detail::list_tools(messages, detail::tools_text(tools, its.format));
  return messages;
}

}  // namespace mica::calls
