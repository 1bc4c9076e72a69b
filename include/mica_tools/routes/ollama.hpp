// SPDX-License-Identifier: Apache-2.0
//
// Answers of Ollama's API, POST /api/chat and /api/generate: lines of JSON with some text each, and a last
// one with counters. Its routes about models are in ollama_models.hpp, those for embeddings in
// ollama_embed.hpp.
#pragma once

#include "mica_tools/routes/answer_choice.hpp"
#include "mica_tools/routes/keep_alive.hpp"
#include "mica_tools/routes/messages.hpp"
#include "mica_tools/routes/ollama_embed.hpp"
#include "mica_tools/routes/ollama_models.hpp"
#include "mica_tools/routes/openai_parts.hpp"
#include "mica_tools/routes/parts.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

/// What a request of Ollama's API asks for.
struct OllamaRequest {
  bool chat = true;                          // false: /api/generate
  std::string model;                         // its name
  Conversation conversation;                 // empty: the model is to be loaded, or unloaded
  std::string raw = {};                      // a prompt without a template, in place of a conversation
  bool stream = true;                        // a line for each piece; false: one line
  std::optional<KeepAlive> keep_alive = {};  // empty: the request has none
  Stopwatch since_begin = {};                // since the request came
  double load_seconds = 0;                   // until its model was there
  Job job = {};                              // without a prompt
  AnswerChoice allowed = {};
  std::shared_ptr<const CallReading> calls = {};  // how calls are read; null: it has no tools and no schema
};

namespace detail {

inline void add_ollama_message(const Json& json, const std::string& place, std::vector<text::Message>& out) {
  Fields message(json, place);
  text::Message read{message.text("role").value_or(""), message.text("content").value_or(""),
                     message.text("thinking").value_or("")};
  if (read.role != "system" && read.role != "user" && read.role != "assistant" && read.role != "tool")
    refuse_field(message.place("role"),
                 join("found '", escaped(read.role, 40), "', allowed: system, user, assistant, tool"));
  message.allow_only("images", Json::array());
  read.calls = read_tool_calls(message, CallsOf::ollama);
  read.tool = message.text("tool_name").value_or(message.text("name").value_or(""));
  read.call_id = message.text("tool_call_id").value_or("");
  message.refuse_others();
  out.push_back(std::move(read));
}

inline void read_chat(Fields& fields, OllamaRequest& out) {
  read_tool_list(fields, out.allowed);
  const Json* const messages = fields.find("messages");
  if (messages == nullptr) return;
  if (!messages->is_array()) fields.refuse_type("messages", "an array", *messages);
  for (std::size_t i = 0; i < messages->size(); ++i)
    add_ollama_message((*messages)[i], join("messages[", i, "]"), out.conversation.messages);
  name_results(out.conversation.messages);
  out.conversation.continues = continues_answer(out.conversation.messages);
}

inline void read_generate(Fields& fields, OllamaRequest& out) {
  for (const char* const name : {"suffix", "template"}) fields.allow_only(name, "");
  for (const char* const name : {"context", "images"}) fields.allow_only(name, Json::array());
  const std::string system = fields.text("system").value_or("");
  std::string prompt = fields.text("prompt").value_or("");
  const bool raw = fields.flag("raw").value_or(false);
  if (raw && !system.empty()) refuse_field("system", "a raw prompt is the whole text; put it there");
  if (prompt.empty()) return;
  if (raw) {
    out.raw = std::move(prompt);
    return;
  }
  if (!system.empty()) out.conversation.messages.push_back({"system", system});
  out.conversation.messages.push_back({"user", std::move(prompt)});
}

/// `think`: true, false, or how much, which is the variable `reasoning_effort` of the template.
inline void read_think(Fields& fields, Conversation& out) {
  const Json* const think = fields.find("think");
  if (think == nullptr) return;
  if (think->is_string()) {
    set_effort(think->get<std::string>(), "think", {"low", "medium", "high", "max"}, out);
  } else {
    out.thinking = fields.flag("think");
  }
}

/// `options`. Those about the machine mean nothing here, and change no answer: the server has its own.
inline void read_ollama_options(const Json& json, Job& job) {
  Fields options(json, "options");
  for (const char* const name : {"numa", "num_batch", "num_gpu", "main_gpu", "low_vram", "use_mmap",
                                 "use_mlock", "num_thread", "num_keep"})
    options.accept(name);
  for (const char* const name : {"vocab_only", "logits_all", "embedding_only"})
    options.allow_only(name, false);
  options.allow_only("penalize_newline", true);
  options.allow_only("tfs_z", 1);
  read_max_tokens(options, "num_predict", job);
  const std::size_t n_ctx = job.model->card().n_ctx;
  const auto wanted = options.integer("num_ctx", 0, std::int64_t{1} << 40);
  if (wanted && static_cast<std::size_t>(*wanted) > n_ctx)
    refuse_field("options.num_ctx", join("is ", *wanted, "; this server has a context of ", n_ctx,
                                         " tokens, which is set when it is started"));
  read_stop(options, "stop", job.stop);
  read_sampling(options, job);
  options.refuse_others();
}

/// All of a request but what needs the model.
[[nodiscard]] inline OllamaRequest read_ollama(Fields& fields, const Service& service, bool chat) {
  OllamaRequest out;
  out.chat = chat;
  out.model = ollama_name(service, fields.need_text("model"));
  out.stream = fields.flag("stream").value_or(true);
  if (const Json* const format = fields.find("format"); format != nullptr && *format != "") {
    *format == "json" ? require_object(out.allowed, "format")
                      : require_schema(out.allowed, *format, "format");
  }
  if (const Json* const time = fields.find("keep_alive")) out.keep_alive = read_keep_alive(*time);
  read_think(fields, out.conversation);
  out.job.scores = fields.flag("logprobs").value_or(false);
  out.job.top_tokens = static_cast<std::size_t>(fields.integer("top_logprobs", 0, 20).value_or(0));
  if (chat) {
    read_chat(fields, out);
  } else {
    read_generate(fields, out);
  }
  fields.accept("options");
  fields.refuse_others();
  return out;
}

/// Makes the lines of one answer.
class OllamaAnswer {
 public:
  using Give = std::function<bool(const Json& line)>;  // false: the client has disconnected

  explicit OllamaAnswer(const OllamaRequest& asked)
      : chat_(asked.chat),
        stream_(asked.stream),
        split_(asked.raw.empty()),
        model_(asked.model),
        since_begin_(asked.since_begin),
        load_seconds_(asked.load_seconds),
        scores_(asked.job.scores),
        parts_(asked.job, asked.calls, "call_") {}

  /// A line for each piece of text; without a stream, one for all of it.
  [[nodiscard]] bool take(Event event, const Give& give) {
    const auto part = [&](const calls::CallEvent& found, const auto&) {
      return !add(found) || !stream_ || give(line(false));
    };
    if (auto* const more = std::get_if<Text>(&event)) {
      tokens_.insert(tokens_.end(), more->tokens.begin(), more->tokens.end());
      return split_ ? parts_.take(Text{more->text, {}}, part) : part({Kind::text, 0, more->text}, 0);
    }
    const auto* const ended = std::get_if<Ended>(&event);
    if (ended == nullptr) return true;
    return (!split_ || parts_.finish(part)) && give(last_line(*ended));
  }
  /// The line for a model that was loaded or unloaded.
  [[nodiscard]] Json empty_line(std::string_view reason) {
    Json out = line(true);
    out["done_reason"] = reason;
    return out;
  }

 private:
  using Kind = calls::CallEvent::Kind;

  /// Whether the part is complete: calls are given as a whole.
  bool add(const calls::CallEvent& part) {
    if (part.kind == Kind::thoughts) thoughts_ += part.text;
    if (part.kind == Kind::text) text_ += part.text;
    if (part.kind == Kind::call_begin) id_ = part.id, name_ = part.name, arguments_.clear();
    if (part.kind == Kind::arguments) arguments_ += part.text;
    if (part.kind == Kind::call_end && part.is_complete)
      calls_.push_back(
          {{"id", id_},
           {"function", {{"index", part.index}, {"name", name_}, {"arguments", Json::parse(arguments_)}}}});
    return part.kind != Kind::call_begin && part.kind != Kind::arguments;
  }
  [[nodiscard]] Json line(bool done) {
    Json out = {{"model", model_}, {"created_at", rfc3339(std::chrono::system_clock::now())}};
    Json& texts = chat_ ? out["message"] : out;
    if (chat_) texts["role"] = "assistant";
    texts[chat_ ? "content" : "response"] = std::exchange(text_, {});
    if (!thoughts_.empty()) texts["thinking"] = std::exchange(thoughts_, {});
    if (!calls_.empty()) texts["tool_calls"] = std::exchange(calls_, Json::array());
    out["done"] = done;
    if (scores_ && !tokens_.empty()) out["logprobs"] = scored_tokens(std::exchange(tokens_, {}), false);
    return out;
  }
  [[nodiscard]] Json last_line(const Ended& ended) {
    const auto nanoseconds = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
    const bool full = ended.reason == StopReason::length || ended.reason == StopReason::context_full;
    Json out = empty_line(full ? "length" : "stop");
    out["total_duration"] = nanoseconds(since_begin_.seconds());
    out["load_duration"] = nanoseconds(load_seconds_);
    out["prompt_eval_count"] = ended.prompt_tokens;
    out["prompt_eval_duration"] = nanoseconds(ended.timings.prompt.seconds);
    out["eval_count"] = ended.answer_tokens;
    out["eval_duration"] = nanoseconds(ended.timings.predicted.seconds);
    return out;
  }

  bool chat_, stream_;
  bool split_;  // thoughts have a field of their own
  std::string model_;
  Stopwatch since_begin_;
  double load_seconds_;
  bool scores_;
  Parts parts_;
  std::string text_, thoughts_;        // for the next line
  Json calls_ = Json::array();         // the same
  std::string id_, name_, arguments_;  // of the call that is being written
  std::vector<ScoredPiece> tokens_;    // for the next line
};

/// A model is loaded, or unloaded, without an answer.
[[nodiscard]] inline HttpReply load_or_unload(Service& service, OllamaRequest& asked,
                                              const HttpRequest& request) {
  const bool unload = asked.keep_alive && asked.keep_alive->ends_now();
  if (unload) {
    (void)service.unload(asked.model);
  } else {
    (void)service.model(asked.model, request.open);
    if (asked.keep_alive) service.keep_alive(asked.model, asked.keep_alive->time);
  }
  return json_reply(OllamaAnswer(asked).empty_line(unload ? "unload" : "load"));
}

/// Lines of JSON. An error after the first line is a line too.
[[nodiscard]] inline HttpReply line_reply(std::shared_ptr<Answers> answers, OllamaAnswer answer) {
  HttpReply reply;
  reply.type = "application/x-ndjson";
  reply.stream = [answers = std::move(answers), answer = std::move(answer)](const Connection& to) mutable {
    const auto give = [&](const Json& line) { return to.write(dump(line) + "\n"); };
    try {
      const auto take = [&](std::size_t, Event event) { return answer.take(std::move(event), give); };
      (void)answers->run(take, to.open);
    } catch (const std::exception& error) {
      (void)give(error_body(Api::ollama, refusal_of(error)));
    }
  };
  return reply;
}

[[nodiscard]] inline HttpReply ollama_answer(Service& service, const RouteOptions& options,
                                             const HttpRequest& request, bool chat) {
  const Json body = parse_body(request);
  Fields fields(body);
  OllamaRequest asked = read_ollama(fields, service, chat);
  if (asked.conversation.messages.empty() && asked.raw.empty())
    return load_or_unload(service, asked, request);
  Job& job = asked.job;
  const Stopwatch load;
  begin_job(job, service, asked.model, options, request);
  asked.load_seconds = load.seconds();
  const Json none = Json::object();
  const Json* const given = fields.find("options");
  read_ollama_options(given == nullptr ? none : *given, job);
  if (asked.raw.empty()) {
    asked.calls = begin_answer(job, asked.conversation, asked.allowed);
  } else {
    job.prompt.tokens = job.model->encode(asked.raw, true, true);
    if (!asked.allowed.schema.empty())
      constrain_to_schema(job, Json::parse(asked.allowed.schema), asked.allowed.schema_place);
  }
  OllamaAnswer answer(asked);
  auto answers = std::make_shared<Answers>(service, std::vector<Job>{std::move(job)});
  if (asked.keep_alive) service.keep_alive(asked.model, asked.keep_alive->time);
  if (asked.stream) return line_reply(std::move(answers), std::move(answer));
  return whole_reply(std::move(answers), Api::ollama, [answer](const auto& whole) mutable {
    Json out;
    const auto keep = [&](const Json& line) {
      out = line;
      return true;
    };
    (void)answer.take(Text{whole[0].text, whole[0].tokens}, keep);
    (void)answer.take(whole[0].ended, keep);
    return out;
  });
}

}  // namespace detail

/// Adds all routes of Ollama's API. service outlives the router.
inline void add_ollama(Router& router, Service& service, const RouteOptions& options) {
  const auto add = [&](const char* method, const char* path, auto answer) {
    router.add(method, path, Api::ollama,
               [answer](const HttpRequest& request, const std::string&) { return answer(request); });
  };
  for (const bool chat : {true, false})
    add("POST", chat ? "/api/chat" : "/api/generate", [&service, options, chat](const HttpRequest& request) {
      return detail::ollama_answer(service, options, request, chat);
    });
  add_ollama_embed(router, service, options);
  add("POST", "/api/show",
      [&service, options](const HttpRequest& request) { return ollama_show(service, options, request); });
  add("GET", "/api/tags", [&service](const HttpRequest&) { return ollama_tags(service); });
  add("GET", "/api/ps", [&service](const HttpRequest&) { return ollama_ps(service); });
  add("GET", "/api/version", [version = options.version](const HttpRequest&) {
    // Clients compare it with Ollama's versions, to see what a server can do.
    return json_reply({{"version", "0.12.0+mica." + version}});
  });
  const auto refuse = [](const char* reason) {
    return [reason](const HttpRequest& request) -> HttpReply {
      throw Refusal(Cause::unsupported, join(request.path, ": ", reason));
    };
  };
  for (const char* const path : {"/api/pull", "/api/push", "/api/create", "/api/copy"})
    add("POST", path, refuse("this server changes no models; `mica pull` fetches one"));
  add("DELETE", "/api/delete", refuse("this server changes no models; `mica rm` deletes one"));
}

}  // namespace mica::serve
