// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/chat/completions of OpenAI, with the additions of llama-server: thoughts apart from the answer
// (reasoning_content), variables of the template, timings. The client runs tools. Routes for audio, images
// and moderation answer 501.
#pragma once

#include "mica_tools/routes/answer_choice.hpp"
#include "mica_tools/routes/openai_messages.hpp"
#include "mica_tools/routes/openai_parts.hpp"

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

namespace detail {

/// The text of one answer as fields of a message. Holds back what may be a mark of thoughts or calls.
class ChatAnswer {
 public:
  /// end: of the prompt; empty: thoughts stay in the text.
  ChatAnswer(std::shared_ptr<const CallReading> calls, const std::optional<std::string>& end)
      : separates_(end.has_value()),
        marks_(calls ? calls->format.thoughts : calls::ThoughtMarks{}),
        is_plain_(!calls && !end),
        reader_(std::move(calls), end.value_or(""), "call_") {}

  /// The fields reasoning_content, content and tool_calls of the next piece. last: gives the rest, too.
  [[nodiscard]] Json take(std::string_view piece, bool last) {
    Json out = Json::object();
    if (is_plain_ && !piece.empty()) out["content"] = piece;
    if (is_plain_) return out;
    (void)reader_.take(piece, last, [&](const calls::CallEvent& event) {
      add(event, out);
      return true;
    });
    return out;
  }
  [[nodiscard]] bool has_calls() const noexcept { return reader_.calls() > 0; }
  [[nodiscard]] bool calls_are_complete() const noexcept { return reader_.calls_are_complete(); }

 private:
  using Kind = calls::CallEvent::Kind;

  static void append(Json& out, const char* name, std::string_view text) {
    const std::string before = out.contains(name) ? out[name].get<std::string>() : std::string();
    out[name] = before + std::string(text);
  }
  void add(const calls::CallEvent& event, Json& out) {
    const bool thinks = event.kind == Kind::thoughts;
    if (!separates_ && thinks != std::exchange(thinks_, thinks))
      append(out, "content", thinks ? marks_.open : marks_.close);
    if (thinks || event.kind == Kind::text)
      append(out, thinks && separates_ ? "reasoning_content" : "content", event.text);
    Json& calls = out["tool_calls"];
    if (event.kind == Kind::call_begin)
      calls.push_back({{"index", event.index},
                       {"id", event.id},
                       {"type", "function"},
                       {"function", {{"name", event.name}, {"arguments", ""}}}});
    if (event.kind == Kind::arguments) {
      if (calls.empty() || calls.back()["index"] != event.index)
        calls.push_back({{"index", event.index}, {"function", {{"arguments", ""}}}});
      append(calls.back()["function"], "arguments", event.text);
    }
    if (calls.empty()) out.erase("tool_calls");
  }

  bool separates_;
  calls::ThoughtMarks marks_;  // of thoughts that stay in the text
  bool is_plain_;
  PartReader reader_;
  bool thinks_ = false;
};

/// "tool_calls" for an answer with complete calls, which the client is to run.
[[nodiscard]] inline std::string_view finish_reason(const Ended& ended, const ChatAnswer& text) noexcept {
  const std::string_view reason = finish_reason(ended);
  return reason == "stop" && text.has_calls() && text.calls_are_complete() ? "tool_calls" : reason;
}

struct ChatForm {
  OpenAiForm form;
  std::optional<std::string> end;  // of the prompt, where thoughts are separated
  bool scores = false;
  std::shared_ptr<const CallReading> calls = {};

  [[nodiscard]] Json logprobs(const std::vector<ScoredPiece>& tokens) const {
    if (!scores) return nullptr;
    return {{"content", scored_tokens(tokens, false)}, {"refusal", nullptr}};
  }
  [[nodiscard]] ChatAnswer text() const { return {calls, end}; }
};

inline void write_chat(Answers& answers, EventStream& stream, const ChatForm& chat) {
  struct Choice {
    ChatAnswer text;
    std::vector<ScoredPiece> tokens = {};  // whose text is held back
  };
  std::vector<Choice> open(answers.size(), Choice{chat.text()});
  const auto choice = [](Json delta, Json logprobs, Json reason) {
    return Json{
        {"delta", std::move(delta)}, {"logprobs", std::move(logprobs)}, {"finish_reason", std::move(reason)}};
  };
  write_chunks(answers, stream, chat.form, [&](std::size_t i, Event& event) {
    std::vector<Json> out;
    if (std::holds_alternative<Begun>(event))
      out.push_back(choice({{"role", "assistant"}, {"content", nullptr}}, nullptr, nullptr));
    auto* const more = std::get_if<Text>(&event);
    const auto* const ended = std::get_if<Ended>(&event);
    if (more == nullptr && ended == nullptr) return out;
    auto& [text, tokens] = open[i];
    if (more != nullptr)
      tokens.insert(tokens.end(), std::make_move_iterator(more->tokens.begin()),
                    std::make_move_iterator(more->tokens.end()));
    Json delta = text.take(more != nullptr ? more->text : "", ended != nullptr);
    if (!delta.empty() || (ended != nullptr && !tokens.empty())) {
      out.push_back(choice(std::move(delta), chat.logprobs(tokens), nullptr));
      tokens.clear();
    }
    if (ended != nullptr) out.push_back(choice(Json::object(), nullptr, finish_reason(*ended, text)));
    return out;
  });
}

struct ChatRequest {
  Job job;
  ChatForm chat;
};

[[nodiscard]] inline ChatRequest read_chat(Service& service, const RouteOptions& options,
                                           const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  ChatRequest out{read_job(fields, service, options, request), {}};
  Job& job = out.job;
  ChatForm& chat = out.chat;
  Conversation conversation = read_conversation(fields);
  AnswerChoice allowed;
  read_tools(fields, allowed);
  chat.form = read_form(fields, job, options, "chatcmpl-", "chat.completion", "chat.completion.chunk");
  chat.scores = job.scores = fields.flag("logprobs").value_or(false);
  job.top_tokens = static_cast<std::size_t>(fields.integer("top_logprobs", 0, max_top_tokens).value_or(0));
  if (job.top_tokens > 0 && !job.scores) refuse_field("top_logprobs", "is for answers with logprobs: true");
  const std::string reasoning = fields.text("reasoning_format").value_or("auto");
  if (reasoning != "none" && reasoning != "auto" && reasoning != "deepseek")
    refuse_field("reasoning_format",
                 join("found '", escaped(reasoning, 40), "', allowed: none, auto, deepseek"));
  if (const Json* const format = fields.find("response_format"))
    read_format(*format, "response_format", allowed);
  if (const Json* const schema = fields.find("json_schema"); schema != nullptr && !schema->empty())
    require_schema(allowed, *schema, "json_schema");
  fields.allow_only("modalities", Json::array({"text"}));
  fields.allow_only("verbosity", "medium");
  fields.allow_only("reasoning_control", false);
  fields.allow_only("reasoning_in_content", false);
  fields.accept("prediction");  // a hint for speed
  const bool verbose = fields.flag("verbose").value_or(false);
  fields.refuse_others();

  chat.calls = begin_answer(job, conversation, allowed);
  if (verbose) chat.form.verbose = {{"prompt", job.model->rendered(conversation)}};
  if (reasoning != "none") chat.end = job.prompt.end;
  return out;
}

[[nodiscard]] inline HttpReply chat_completion(Service& service, const RouteOptions& options,
                                               const HttpRequest& request) {
  const auto [job, chat] = read_chat(service, options, request);
  std::vector<Job> jobs;
  add_jobs(jobs, job, chat.form.n);
  const auto answers = std::make_shared<Answers>(service, std::move(jobs));
  if (chat.form.stream)
    return event_reply(
        answers, Api::openai, options.ping,
        [chat = chat](Answers& these, EventStream& stream) { write_chat(these, stream, chat); });
  return whole_reply(answers, Api::openai, [chat = chat](const std::vector<WholeAnswer>& whole) {
    return whole_body(whole, chat.form, [&](std::size_t, const WholeAnswer& answer) {
      Json message = {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}};
      ChatAnswer text = chat.text();
      message.update(text.take(answer.text, true));
      if (text.has_calls() && message["content"] == "") message["content"] = nullptr;
      if (text.has_calls())
        for (Json& call : message["tool_calls"]) call.erase("index");
      return Json{{"message", std::move(message)},
                  {"logprobs", chat.logprobs(answer.tokens)},
                  {"finish_reason", finish_reason(answer.ended, text)}};
    });
  });
}

}  // namespace detail

/// service outlives the router.
inline void add_openai_chat(Router& router, Service& service, const RouteOptions& options) {
  for (const char* path : {"/v1/chat/completions", "/chat/completions"}) {
    router.add("POST", path, Api::openai,
               [&service, options](const HttpRequest& request, const std::string&) {
                 return detail::chat_completion(service, options, request);
               });
    router.add("POST", join(path, "/input_tokens"), Api::openai,
               [&service, options](const HttpRequest& request, const std::string&) {
                 const auto asked = detail::read_chat(service, options, request);
                 return json_reply(
                     {{"object", "response.input_tokens"}, {"input_tokens", asked.job.prompt.tokens.size()}});
               });
  }
  for (const char* path :
       {"/v1/audio/transcriptions", "/v1/audio/speech", "/v1/images/generations", "/v1/moderations"})
    router.add("POST", path, Api::openai, [](const HttpRequest& request, const std::string&) -> HttpReply {
      throw Refusal(Cause::unsupported,
                    request.path + ": this server writes and embeds text and has no other kind of model");
    });
}

}  // namespace mica::serve
