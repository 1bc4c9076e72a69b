// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/responses and /v1/responses/input_tokens: OpenAI's Responses API, which Open Responses specifies
// for all servers. Nothing is stored, so a client sends the whole conversation each time.
#pragma once

#include "mica_tools/routes/answer_choice.hpp"
#include "mica_tools/routes/messages.hpp"
#include "mica_tools/routes/openai_parts.hpp"
#include "mica_tools/routes/parts.hpp"
#include "mica_tools/routes/response_writer.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

/// What a request for a response asks for.
struct ResponsesRequest {
  Conversation conversation;                  // `instructions` and `input`
  Job job;                                    // without a prompt
  std::shared_ptr<const CallReading> calls;   // how calls are read; null: it has no tools and no schema
  Json response;                              // the object that the writer completes
  bool stream = false;                        // events in place of a response
  ThoughtsAs thoughts = ThoughtsAs::content;  // of `reasoning.summary`
};

namespace detail {

/// The thoughts of a reasoning item: its content, or where it has none its summary.
[[nodiscard]] inline std::string reasoning_text(Fields& item) {
  item.allow_only("encrypted_content", "");
  const Json none = Json::array();
  const Json* const summary = item.find("summary");
  const Json* const content = item.find("content");
  const std::string brief =
      content_text(summary == nullptr ? none : *summary, item.place("summary"), {"summary_text"});
  const std::string whole =
      content_text(content == nullptr ? none : *content, item.place("content"), {"reasoning_text"});
  return whole.empty() ? brief : whole;
}

/// Adds an item of the input. thoughts: of reasoning items that wait for the message after them.
inline void add_item(const Json& json, const std::string& place, std::string& thoughts,
                     std::vector<text::Message>& out) {
  Fields item(json, place);
  item.accept("id");
  item.accept("status");
  const std::string type = item.text("type").value_or("message");
  if (type == "reasoning") {
    if (!thoughts.empty()) thoughts += "\n\n";
    thoughts += reasoning_text(item);
    return item.refuse_others();
  }
  if (type == "function_call") {
    text::ToolCall call{item.need_text("call_id"), item.need_text("name"),
                        arguments_text(item.need("arguments"), item.place("arguments"))};
    item.refuse_others();
    if (out.empty() || out.back().role != "assistant" || !thoughts.empty())
      out.push_back({"assistant", "", std::exchange(thoughts, {})});
    return out.back().calls.push_back(std::move(call));
  }
  if (type == "function_call_output") {
    text::Message result{"tool", content_text(item.need("output"), item.place("output"),
                                              {"input_text", "output_text", "text"})};
    result.call_id = item.need_text("call_id");
    item.refuse_others();
    return out.push_back(std::move(result));
  }
  if (type == "item_reference")
    refuse_field(item.place("type"), "this server stores nothing: send the item itself", Cause::option);
  if (type != "message")
    refuse_field(item.place("type"),
                 join("found '", escaped(type, 40),
                      "', supported: message, reasoning, function_call, function_call_output"),
                 Cause::option);
  const std::string role = item.text("role").value_or("");
  if (role != "user" && role != "assistant" && role != "system" && role != "developer")
    refuse_field(item.place("role"),
                 join("found '", escaped(role, 40), "', allowed: user, assistant, system, developer"));
  item.accept("phase");  // commentary or final_answer
  const std::string content =
      content_text(item.need("content"), item.place("content"), {"input_text", "output_text", "text"});
  item.refuse_others();
  if (!thoughts.empty() && role != "assistant") out.push_back({"assistant", "", std::exchange(thoughts, {})});
  const bool first_of_system = !out.empty() && out.size() == 1 && out[0].role == "system";
  if (first_of_system && (role == "system" || role == "developer")) {
    out[0].content += "\n\n" + content;  // many templates have one place for such a message
  } else {
    out.push_back({role, content, std::exchange(thoughts, {})});
  }
}

/// `instructions` and `input` as messages.
[[nodiscard]] inline std::vector<text::Message> read_input(Fields& fields) {
  std::vector<text::Message> out;
  if (auto instructions = fields.text("instructions")) out.push_back({"system", *std::move(instructions)});
  const Json& input = fields.need("input");
  if (input.is_string()) {
    out.push_back({"user", input.get<std::string>()});
    return out;
  }
  if (!input.is_array()) fields.refuse_type("input", "a string or an array of items", input);
  std::string thoughts;
  for (std::size_t i = 0; i < input.size(); ++i)
    add_item(input[i], join(fields.place("input"), "[", i, "]"), thoughts, out);
  if (!thoughts.empty()) out.push_back({"assistant", "", std::move(thoughts)});
  return out;
}

/// `reasoning`: an effort of none turns thoughts off; another one turns them on, and is a variable of the
/// template.
inline void read_reasoning(Fields& fields, ResponsesRequest& out) {
  out.response["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
  const Json* const given = fields.find("reasoning");
  if (given == nullptr) return;
  Fields reasoning(*given, fields.place("reasoning"));
  if (const auto effort = reasoning.text("effort")) {
    set_effort(*effort, reasoning.place("effort"), {"none", "minimal", "low", "medium", "high", "xhigh"},
               out.conversation);
    out.response["reasoning"]["effort"] = *effort;
  }
  if (const auto summary = reasoning.text("summary")) {
    if (*summary != "auto" && *summary != "concise" && *summary != "detailed")
      refuse_field(reasoning.place("summary"),
                   join("found '", escaped(*summary, 40), "', allowed: auto, concise, detailed"));
    out.thoughts = ThoughtsAs::summary;
    out.response["reasoning"]["summary"] = *summary;
  }
  reasoning.refuse_others();
}

/// The format of the answer; what is read and means nothing here, and what this server does not have.
inline void read_features(Fields& fields, AnswerChoice& allowed) {
  for (const char* const name : {"user", "store", "prompt_cache_retention"}) fields.accept(name);
  for (const char* const name : {"previous_response_id", "conversation", "prompt"}) {
    if (fields.find(name) != nullptr)
      refuse_field(name, "this server stores nothing: send the whole conversation as input", Cause::option);
  }
  fields.allow_only("background", false);
  fields.allow_only("truncation", "disabled", "auto");  // auto leaves it to the server
  fields.allow_only("service_tier", "auto", "default");
  if (const Json* const given = fields.find("text")) {
    Fields text(*given, "text");
    if (const Json* const format = text.find("format")) read_format(*format, "text.format", allowed);
    text.allow_only("verbosity", "medium");
    text.refuse_others();
  }
  if (const Json* const given = fields.find("stream_options")) {
    Fields options(*given, "stream_options");
    options.allow_only("include_obfuscation", false);
    options.refuse_others();
  }
}

/// `include` and `top_logprobs`. Encrypted thoughts may be asked for: they are there, but not encrypted.
inline void read_scores(Fields& fields, Job& job) {
  job.top_tokens = static_cast<std::size_t>(fields.integer("top_logprobs", 0, 20).value_or(0));
  job.scores = job.top_tokens > 0;
  if (const Json* const include = fields.find("include")) {
    if (!include->is_array()) fields.refuse_type("include", "an array of strings", *include);
    for (const Json& each : *include) {
      if (each == Json("message.output_text.logprobs")) {
        job.scores = true;
      } else if (each != Json("reasoning.encrypted_content")) {
        refuse_field("include",
                     join("found ", escaped(dump(each), 60),
                          ", supported: message.output_text.logprobs, reasoning.encrypted_content"),
                     Cause::option);
      }
    }
  }
}

[[nodiscard]] inline Json read_metadata(Fields& fields) {
  const Json* const given = fields.find("metadata");
  if (given == nullptr) return Json::object();
  if (!given->is_object() || given->size() > 16)
    refuse_field("metadata", "must be an object with at most 16 strings");
  for (const Json& value : *given) {
    if (!value.is_string()) fields.refuse_type("metadata", "an object of strings", value);
  }
  return *given;
}

/// A request whose model is loaded.
[[nodiscard]] inline ResponsesRequest read_response_request(Fields& fields, Job job) {
  ResponsesRequest out;
  Json& r = out.response;
  r = {{"id", random_id("resp_")}, {"object", "response"}, {"created_at", unix_seconds()}};
  r.update(Json::parse(R"({"completed_at":null,"status":"in_progress","incomplete_details":null,"error":null,
    "previous_response_id":null,"output":[],"tools":[],"text":{"format":{"type":"text"}},"usage":null,
    "truncation":"disabled","store":false,"background":false,"service_tier":"default"})"));
  r["model"] = job.model->card().id;
  for (const char* const name : {"instructions", "safety_identifier", "prompt_cache_key"}) {
    const auto value = fields.text(name);
    r[name] = value ? Json(*value) : Json();
  }
  for (const char* const name : {"max_output_tokens", "max_tool_calls"}) {
    const auto value = fields.integer(name, 1, std::int64_t{1} << 40);
    r[name] = value ? Json(*value) : Json();
  }
  out.conversation.messages = read_input(fields);
  name_results(out.conversation.messages);
  AnswerChoice allowed;
  read_tools(fields, allowed);
  read_reasoning(fields, out);
  read_scores(fields, job);
  read_sampling(fields, job);
  read_max_tokens(fields, "max_output_tokens", job);
  r["temperature"] = shown(job.sampler.temperature);
  r["top_p"] = shown(job.sampler.top_p);
  r["presence_penalty"] = shown(job.sampler.presence_penalty);
  r["frequency_penalty"] = shown(job.sampler.frequency_penalty);
  r["top_logprobs"] = job.top_tokens;
  for (const Json& tool : allowed.tools) {
    r["tools"].push_back({{"type", "function"}, {"description", nullptr}, {"strict", true}});
    r["tools"].back().update(tool["function"]);
  }
  const Json* const choice = fields.find("tool_choice");
  r["tool_choice"] = choice != nullptr ? *choice : Json("auto");
  r["parallel_tool_calls"] = allowed.parallel;
  r["metadata"] = read_metadata(fields);
  out.stream = fields.flag("stream").value_or(false);
  read_features(fields, allowed);
  if (const Json* const text = fields.find("text"); text != nullptr && text->contains("format"))
    r["text"]["format"] = (*text)["format"];
  fields.refuse_others();
  out.calls = begin_answer(job, out.conversation, allowed);
  out.job = std::move(job);
  return out;
}

[[nodiscard]] inline Json response_usage(const Ended& ended, std::size_t thoughts) {
  return {{"input_tokens", ended.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", ended.cached_tokens}, {"cache_write_tokens", 0}}},
          {"output_tokens", ended.answer_tokens},
          {"output_tokens_details", {{"reasoning_tokens", thoughts}}},
          {"total_tokens", ended.prompt_tokens + ended.answer_tokens}};
}

/// Why an answer is incomplete; empty: it is complete.
[[nodiscard]] inline std::string_view incomplete_reason(StopReason reason) noexcept {
  const bool full = reason == StopReason::length || reason == StopReason::context_full;
  return full ? "max_output_tokens" : std::string_view();
}

/// Writes the text of one answer and its end.
class ResponseText {
 public:
  explicit ResponseText(const ResponsesRequest& asked) : parts_(asked.job, asked.calls, "call_") {}

  [[nodiscard]] bool take(Event event, ResponseWriter& writer) {
    const auto give = [&](const calls::CallEvent& part, const std::vector<ScoredPiece>& tokens) {
      return writer.take(part, scored_tokens(tokens, false));
    };
    if (auto* const more = std::get_if<Text>(&event)) return parts_.take(std::move(*more), give);
    const auto* const ended = std::get_if<Ended>(&event);
    if (ended == nullptr) return true;
    return parts_.finish(give) &&
           writer.end(incomplete_reason(ended->reason),
                      response_usage(*ended, parts_.thought_tokens(ended->answer_tokens)), unix_seconds());
  }

 private:
  Parts parts_;
};

[[nodiscard]] inline ResponsesRequest read_responses(Service& service, const RouteOptions& options,
                                                     const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  Job job;
  begin_job(job, service, fields.need_text("model"), options, request);
  ResponsesRequest out = read_response_request(fields, std::move(job));
  const bool open = !request.headers.get("OpenResponses-Version").empty();
  if (open && out.thoughts == ThoughtsAs::content) out.thoughts = ThoughtsAs::open_content;
  return out;
}

/// POST /v1/responses
[[nodiscard]] inline HttpReply create_response(Service& service, const RouteOptions& options,
                                               const HttpRequest& request) {
  ResponsesRequest asked = read_responses(service, options, request);
  const ThoughtsAs thoughts = asked.thoughts;
  ResponseText text(asked);
  const auto answers = std::make_shared<Answers>(service, std::vector<Job>{std::move(asked.job)});
  if (!asked.stream)
    return whole_reply(answers, Api::openai,
                       [text, thoughts, response = std::move(asked.response)](const auto& whole) mutable {
                         ResponseWriter writer(response, thoughts);
                         (void)text.take(Text{whole[0].text, whole[0].tokens}, writer);
                         (void)text.take(whole[0].ended, writer);
                         return writer.response();
                       });
  const auto write = [text, thoughts, response = std::move(asked.response)](Answers& from,
                                                                            EventStream& to) mutable {
    ResponseWriter writer(response, thoughts, [&](const Json& event) {
      return to.event(event["type"].get<std::string>(), event);
    });
    try {
      (void)writer.begin();  // run() sees that a client has disconnected
      const auto take = [&](std::size_t, Event event) { return text.take(std::move(event), writer); };
      if (!from.run(take, [&] { return to.idle(); })) return;
    } catch (const std::exception& error) {
      (void)writer.fail(refusal_of(error).message());
    }
    to.done();
  };
  return event_reply(answers, Api::openai, options.ping, write);
}

}  // namespace detail

/// Adds /v1/responses and /v1/responses/input_tokens. service outlives the router.
inline void add_responses(Router& router, Service& service, const RouteOptions& options) {
  for (const char* path : {"/v1/responses", "/responses"}) {
    router.add("POST", path, Api::openai,
               [&service, options](const HttpRequest& request, const std::string&) {
                 return detail::create_response(service, options, request);
               });
    router.add("POST", join(path, "/input_tokens"), Api::openai,
               [&service, options](const HttpRequest& request, const std::string&) {
                 const ResponsesRequest asked = detail::read_responses(service, options, request);
                 return json_reply(
                     {{"object", "response.input_tokens"}, {"input_tokens", asked.job.prompt.tokens.size()}});
               });
  }
}

}  // namespace mica::serve
