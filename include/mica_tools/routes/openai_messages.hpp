// SPDX-License-Identifier: Apache-2.0
//
// The conversation in a request of OpenAI's form.
#pragma once

#include "mica_tools/routes/messages.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mica::serve {

namespace detail {

[[nodiscard]] inline text::Message read_message(const Json& value, const std::string& place) {
  constexpr std::array<std::string_view, 5> roles = {"system", "developer", "user", "assistant", "tool"};
  Fields fields(value, place);
  text::Message message;
  message.role = fields.text("role").value_or("");
  if (std::find(roles.begin(), roles.end(), message.role) == roles.end())
    refuse_field(fields.place("role"), join("found '", escaped(message.role, 40),
                                            "', allowed: system, developer, user, assistant, tool"));
  const bool assistant = message.role == "assistant";
  if (assistant) {
    message.thoughts = fields.text("reasoning_content").value_or("");
    message.calls = read_tool_calls(fields, CallsOf::openai);
    fields.allow_only("function_call");
    fields.allow_only("refusal", "");
    fields.allow_only("audio");
    fields.accept("annotations");
  }
  if (message.role == "tool") {
    message.call_id = fields.text("tool_call_id").value_or("");
    message.tool = fields.text("name").value_or("");
  }
  fields.accept("name");  // of others: templates have no place for it
  const Json* const content = fields.find("content");
  if (content != nullptr) {
    message.content = content_text(*content, fields.place("content"));
  } else if (!assistant || (message.thoughts.empty() && message.calls.empty())) {
    refuse_field(fields.place("content"), "is missing");
  }
  fields.refuse_others();
  return message;
}

}  // namespace detail

/// Reads messages, chat_template_kwargs and reasoning_effort. A last message of the assistant is continued,
/// unless it has calls.
[[nodiscard]] inline Conversation read_conversation(Fields& fields) {
  Conversation out;
  const Json& messages = fields.need("messages");
  if (!messages.is_array() || messages.empty())
    refuse_field(fields.place("messages"), "must be an array with one message at least");
  for (std::size_t i = 0; i < messages.size(); ++i)
    out.messages.push_back(detail::read_message(messages[i], join("messages[", i, "]")));
  name_results(out.messages);
  out.continues = continues_answer(out.messages);

  Json variables = Json::object();
  if (const Json* const given = fields.find("chat_template_kwargs")) {
    if (!given->is_object()) fields.refuse_type("chat_template_kwargs", "an object", *given);
    variables = *given;
    Fields inner(variables, fields.place("chat_template_kwargs"));
    out.thinking = inner.flag("enable_thinking");
    variables.erase("enable_thinking");
  }
  if (const auto effort = fields.text("reasoning_effort")) {
    constexpr std::array<std::string_view, 6> efforts = {"none", "minimal", "low", "medium", "high", "xhigh"};
    if (std::find(efforts.begin(), efforts.end(), *effort) == efforts.end())
      refuse_field(
          fields.place("reasoning_effort"),
          join("found '", escaped(*effort, 40), "', allowed: none, minimal, low, medium, high, xhigh"));
    if (!out.thinking) out.thinking = *effort != "none";
    if (*effort != "none") variables["reasoning_effort"] = *effort;
  }
  if (!variables.empty()) out.variables = dump(variables);

  fields.allow_only("functions", Json::array());  // OpenAI's first form of tools
  fields.allow_only("function_call", "none", "auto");
  return out;
}

}  // namespace mica::serve
