// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/messages and /v1/messages/count_tokens: Anthropic's Messages API. Its version header is not
// needed.
#pragma once

#include "mica_tools/routes/answer_choice.hpp"
#include "mica_tools/routes/message_writer.hpp"
#include "mica_tools/routes/messages.hpp"
#include "mica_tools/routes/openai_parts.hpp"
#include "mica_tools/routes/parts.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

/// What a request for a message asks for.
struct MessageRequest {
  Conversation conversation;                  // with the system prompt first
  Job job;                                    // without a prompt
  std::shared_ptr<const CallReading> calls;   // how calls are read; null: it has no tools and no schema
  ThoughtsShown shown = ThoughtsShown::none;  // of the field `thinking`
  bool stream = false;                        // events in place of a message
};

namespace detail {

/// A call in the content of an assistant: {"type": "tool_use", "id", "name", "input"}.
[[nodiscard]] inline text::ToolCall read_tool_use(Fields& block) {
  text::ToolCall out{block.need_text("id"), block.need_text("name"),
                     arguments_text(block.need("input"), block.place("input"))};
  block.accept("cache_control");
  block.accept("caller");
  block.refuse_others();
  return out;
}

/// The content of a user: results of calls, which are messages of their own, and text behind them.
inline void read_user(const Json& content, const std::string& place, text::Message& out,
                      std::vector<text::Message>& results) {
  if (!content.is_array()) {
    out.content = content_text(content, place);
    return;
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string here = join(place, "[", i, "]");
    Fields block(content[i], here);
    if (block.text("type") != "tool_result") {
      out.content += part_text(content[i], here);
      continue;
    }
    text::Message result{"tool", "", ""};
    result.call_id = block.need_text("tool_use_id");
    if (const Json* const text = block.find("content"))
      result.content = content_text(*text, block.place("content"));
    if (block.flag("is_error").value_or(false)) result.content = "Error: " + result.content;
    block.accept("cache_control");
    block.refuse_others();
    results.push_back(std::move(result));
  }
}

/// The content of an assistant: thoughts, text and calls in blocks.
inline void read_assistant(const Json& content, const std::string& place, text::Message& out) {
  if (!content.is_array()) {
    out.content += content_text(content, place);
    return;
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string here = join(place, "[", i, "]");
    Fields block(content[i], here);
    if (block.text("type") == "tool_use") {
      out.calls.push_back(read_tool_use(block));
      continue;
    }
    if (block.text("type") != "thinking") {
      out.content += part_text(content[i], here);
      continue;
    }
    out.thoughts += block.text("thinking").value_or("");
    block.accept("signature");
    block.accept("cache_control");
    block.refuse_others();
  }
}

/// Messages in a row that have one role become one, as the API has it.
inline void add_message(const Json& json, const std::string& place, std::vector<text::Message>& out) {
  Fields message(json, place);
  const std::string role = message.text("role").value_or("");
  if (role != "user" && role != "assistant" && role != "system")
    refuse_field(message.place("role"), join("found '", escaped(role, 40), "', allowed: user, assistant"));
  const Json& content = message.need("content");
  message.refuse_others();
  text::Message read{role, "", ""};
  const std::size_t before = out.size();
  if (role == "assistant") {
    read_assistant(content, message.place("content"), read);
  } else {
    read_user(content, message.place("content"), read, out);
  }
  if (out.size() > before && read.content.empty()) return;  // nothing but results
  if (out.empty() || out.back().role != role) {
    out.push_back(std::move(read));
    return;
  }
  if (!out.back().content.empty() && !read.content.empty()) out.back().content += "\n\n";
  out.back().content += read.content;
  out.back().thoughts += read.thoughts;
  out.back().calls.insert(out.back().calls.end(), read.calls.begin(), read.calls.end());
}

/// `tools` and `tool_choice`.
inline void read_tools_of_messages(Fields& fields, AnswerChoice& out) {
  const Json* const tools = fields.find("tools");
  if (tools != nullptr && !tools->is_array()) fields.refuse_type("tools", "an array", *tools);
  for (std::size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    Fields tool((*tools)[i], join("tools[", i, "]"));
    if (const std::string type = tool.text("type").value_or("custom"); type != "custom")
      refuse_field(tool.place("type"),
                   join("found '", escaped(type, 40),
                        "', but this server has no tools of its own; it takes those "
                        "with an input_schema, which the client runs"),
                   Cause::option);
    const std::string name = tool.need_text("name");
    add_tool(out, name, tool.text("description").value_or(""), &tool.need("input_schema"),
             tool.place("name"));
    for (const char* const each : {"cache_control", "strict", "eager_input_streaming", "input_examples",
                                   "defer_loading", "allowed_callers"})
      tool.accept(each);
    tool.refuse_others();
  }
  const Json* const given = fields.find("tool_choice");
  if (given == nullptr) return;
  Fields choice(*given, "tool_choice");
  const std::string type = choice.need_text("type");
  out.parallel = !choice.flag("disable_parallel_tool_use").value_or(false);
  if (type == "tool") {
    choose_tool(out, choice.need_text("name"), choice.place("name"));
  } else if (type == "any") {
    if (out.tools.empty()) refuse_field("tool_choice.type", "is 'any', but there are no tools");
    out.choice = calls::ToolChoice::required;
  } else if (type == "none") {
    out.choice = calls::ToolChoice::none;
  } else if (type != "auto") {
    refuse_field("tool_choice.type", join("found '", escaped(type, 40), "', allowed: auto, any, tool, none"));
  }
  choice.refuse_others();
}

/// `thinking`. A budget of tokens is a target of the API and no limit; here max_tokens is the one limit.
inline void read_thinking(Fields& fields, std::size_t max_tokens, MessageRequest& out) {
  out.conversation.thinking = false;
  const Json* const given = fields.find("thinking");
  if (given == nullptr) return;
  Fields thinking(*given, "thinking");
  const std::string type = thinking.text("type").value_or("");
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    refuse_field("thinking.type",
                 join("found '", escaped(type, 40), "', allowed: enabled, disabled, adaptive"));
  if (type != "disabled") {
    out.conversation.thinking = true;
    const std::string display = thinking.text("display").value_or("summarized");
    if (display != "summarized" && display != "omitted")
      refuse_field("thinking.display",
                   join("found '", escaped(display, 40), "', allowed: summarized, omitted"));
    out.shown = display == "omitted" ? ThoughtsShown::empty : ThoughtsShown::all;
  }
  if (type == "enabled") {
    const auto budget = thinking.integer("budget_tokens", 1024, std::int64_t{1} << 40);
    if (!budget) refuse_field("thinking.budget_tokens", "is missing");
    if (max_tokens > 0 && static_cast<std::size_t>(*budget) >= max_tokens)
      refuse_field("thinking.budget_tokens",
                   join("is ", *budget, "; it must be less than max_tokens, ", max_tokens));
  }
  thinking.refuse_others();
}

/// What is read and means nothing here, and what this server does not have.
inline void refuse_other_features(Fields& fields) {
  fields.accept("metadata");
  fields.accept("cache_control");  // the prefix cache needs no mark
  fields.allow_only("service_tier", "auto", "standard_only");
  fields.allow_only("mcp_servers", Json::array());
  fields.allow_only("container");
}

/// The conversation and the job of a request whose model is loaded. counted: it needs no answer.
[[nodiscard]] inline MessageRequest read_message_request(Fields& fields, Job job, bool counted) {
  MessageRequest out;
  if (const Json* const system = fields.find("system"))
    out.conversation.messages.push_back({"system", content_text(*system, "system")});
  const Json& messages = fields.need("messages");
  if (!messages.is_array() || messages.empty())
    refuse_field(fields.place("messages"), "must be an array with one message at least");
  for (std::size_t i = 0; i < messages.size(); ++i)
    add_message(messages[i], join("messages[", i, "]"), out.conversation.messages);
  const auto max_tokens = fields.integer("max_tokens", 1, std::int64_t{1} << 40);
  if (!max_tokens && !counted) refuse_field("max_tokens", "is missing");
  job.max_tokens = static_cast<std::size_t>(max_tokens.value_or(0));
  read_thinking(fields, job.max_tokens, out);
  name_results(out.conversation.messages);
  AnswerChoice allowed;
  read_tools_of_messages(fields, allowed);
  if (const Json* const given = fields.find("output_config")) {
    Fields config(*given, "output_config");
    if (const auto effort = config.text("effort")) {
      const auto thinking = out.conversation.thinking;  // the API turns thoughts on by `thinking` alone
      set_effort(*effort, "output_config.effort", {"low", "medium", "high", "xhigh", "max"},
                 out.conversation);
      out.conversation.thinking = thinking;
    }
    if (const Json* const format = config.find("format"))
      read_format(*format, "output_config.format", allowed);
    config.refuse_others();
  }
  read_sampling(fields, job);
  read_stop(fields, "stop_sequences", job.stop);
  out.stream = fields.flag("stream").value_or(false);
  refuse_other_features(fields);
  fields.refuse_others();
  out.conversation.continues = continues_answer(out.conversation.messages);
  out.calls = begin_answer(job, out.conversation, allowed);
  out.job = std::move(job);
  return out;
}

[[nodiscard]] inline MessageRequest read_messages(Service& service, const RouteOptions& options,
                                                  const HttpRequest& request, bool counted) {
  const Json body = parse_body(request);
  Fields fields(body);
  Job job;
  begin_job(job, service, fields.need_text("model"), options, request);
  return read_message_request(fields, std::move(job), counted);
}

/// Writes an event of an answer.
[[nodiscard]] inline bool write_event(Event event, Parts& parts, MessageWriter& writer) {
  const auto give = [&](const calls::CallEvent& part, const auto&) { return writer.take(part); };
  if (const auto* const begun = std::get_if<Begun>(&event)) return writer.begin(*begun);
  if (auto* const more = std::get_if<Text>(&event)) return parts.take(std::move(*more), give);
  const auto* const ended = std::get_if<Ended>(&event);
  return ended == nullptr ||
         (parts.finish(give) && writer.end(*ended, parts.thought_tokens(ended->answer_tokens)));
}

/// POST /v1/messages
[[nodiscard]] inline HttpReply create_message(Service& service, const RouteOptions& options,
                                              const HttpRequest& request) {
  MessageRequest asked = read_messages(service, options, request, false);
  const std::string id = random_id("msg_"), model = asked.job.model->card().id;
  Parts parts(asked.job, asked.calls, "toolu_");
  const auto answers = std::make_shared<Answers>(service, std::vector<Job>{std::move(asked.job)});
  if (!asked.stream)
    return whole_reply(answers, Api::anthropic,
                       [parts, id, model, shown = asked.shown](const auto& whole) mutable {
                         MessageWriter writer(id, model, shown);
                         (void)write_event(Text{whole[0].text, {}}, parts, writer);
                         (void)write_event(whole[0].ended, parts, writer);
                         return writer.message();
                       });
  const auto write = [parts, id, model, shown = asked.shown](Answers& from, EventStream& to) mutable {
    MessageWriter writer(id, model, shown,
                         [&](std::string_view type, const Json& event) { return to.event(type, event); });
    const auto take = [&](std::size_t, Event event) { return write_event(std::move(event), parts, writer); };
    (void)from.run(take, [&] { return to.idle(); });
  };
  return event_reply(answers, Api::anthropic, options.ping, write);
}

}  // namespace detail

/// Adds /v1/messages and /v1/messages/count_tokens. service outlives the router.
inline void add_anthropic(Router& router, Service& service, const RouteOptions& options) {
  router.add("POST", "/v1/messages", Api::anthropic,
             [&service, options](const HttpRequest& request, const std::string&) {
               return detail::create_message(service, options, request);
             });
  router.add("POST", "/v1/messages/count_tokens", Api::anthropic,
             [&service, options](const HttpRequest& request, const std::string&) {
               const MessageRequest asked = detail::read_messages(service, options, request, true);
               return json_reply({{"input_tokens", asked.job.prompt.tokens.size()}});
             });
}

}  // namespace mica::serve
