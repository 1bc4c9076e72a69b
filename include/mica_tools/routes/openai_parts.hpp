// SPDX-License-Identifier: Apache-2.0
//
// What the routes of OpenAI and llama-server share: options, the numbers at the end of a reply, and the
// chunks of a stream.
#pragma once

#include "mica_tools/http/router.hpp"
#include "mica_tools/http/stream.hpp"
#include "mica_tools/routes/constraints.hpp"
#include "mica_tools/routes/random_id.hpp"
#include "mica_tools/routes/route_options.hpp"
#include "mica_tools/routes/sampling.hpp"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

inline constexpr std::size_t max_answers = 128;     // of one request
inline constexpr std::int64_t max_top_tokens = 20;  // at each position

[[nodiscard]] inline std::int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

/// The model that a request names, and the server's options. Raises Refusal (option) for a text encoder.
inline void begin_job(Job& job, Service& service, std::string_view model, const RouteOptions& options,
                      const HttpRequest& request) {
  job.model = service.model(model, request.open);
  require_writer(job.model->card());
  job.sampler = options.sampler;
  job.max_tokens = options.max_tokens;
}

/// A job of the model that the request names, with the server's options and those of sampling and length, and
/// with a grammar. Options of llama-server that Job has no place for must have the values that change
/// nothing.
[[nodiscard]] inline Job read_job(Fields& fields, Service& service, const RouteOptions& options,
                                  const HttpRequest& request) {
  Job job;
  begin_job(job, service, fields.text("model").value_or(""), options, request);
  read_sampling(fields, job);
  read_stop(fields, "stop", job.stop);
  for (const char* name : {"n_predict", "max_tokens", "max_completion_tokens"})  // the last one counts
    read_max_tokens(fields, name, job);
  for (const char* name :
       {"user", "metadata", "store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
        "service_tier", "cache_prompt"})  // changes no bit of an answer
    fields.accept(name);
  for (const char* name : {"timings_per_token", "return_progress", "post_sampling_probs"})
    fields.allow_only(name, false);
  for (const char* name : {"t_max_predict_ms", "n_keep", "n_discard", "n_indent", "n_cache_reuse"})
    fields.allow_only(name, 0);
  const auto slot = fields.integer("id_slot", -1, static_cast<std::int64_t>(options.max_running) - 1);
  if (slot.value_or(-1) >= 0) job.slot = static_cast<std::size_t>(*slot);
  read_grammar(fields, job);
  fields.allow_only("lora", Json::array());
  return job;
}

/// The same job n times, whose seeds follow each other; once where its prompt is too long, since it will be
/// refused.
inline void add_jobs(std::vector<Job>& jobs, const Job& job, std::size_t n) {
  if (jobs.size() + n > max_answers)
    throw Refusal(Cause::invalid, join("the request has more than ", max_answers, " answers"));
  if (job.prompt.tokens.size() >= job.model->card().n_ctx) n = 1;
  for (std::size_t i = 0; i < n; ++i) {
    jobs.push_back(job);
    jobs.back().sampler.seed += i;
  }
}

/// n: answers to each prompt, whose tokens count once.
[[nodiscard]] inline Json usage_of(std::span<const Ended> answers, std::size_t n) {
  std::size_t prompt = 0, cached = 0, written = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i % n == 0) prompt += answers[i].prompt_tokens, cached += answers[i].cached_tokens;
    written += answers[i].answer_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", written},
          {"total_tokens", prompt + written},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

/// llama-server's field of that name; of several answers the sums.
[[nodiscard]] inline Json timings_of(std::span<const Ended> answers) {
  Phase prompt, predicted;
  std::size_t cached = 0;
  for (const Ended& each : answers) {
    prompt.tokens += each.timings.prompt.tokens, prompt.seconds += each.timings.prompt.seconds;
    predicted.tokens += each.timings.predicted.tokens, predicted.seconds += each.timings.predicted.seconds;
    cached += each.cached_tokens;
  }
  Json out = {{"cache_n", cached}};
  const auto add = [&](const std::string& name, const Phase& phase) {
    out[name + "_n"] = phase.tokens;
    out[name + "_ms"] = phase.seconds * 1e3;
    out[name + "_per_token_ms"] =
        phase.tokens == 0 ? 0.0 : phase.seconds * 1e3 / static_cast<double>(phase.tokens);
    out[name + "_per_second"] = phase.tokens_per_second();
  };
  add("prompt", prompt);
  add("predicted", predicted);
  return out;
}

/// "length" at a maximum of tokens, else "stop".
[[nodiscard]] inline std::string_view finish_reason(const Ended& ended) noexcept {
  return ended.reason == StopReason::length || ended.reason == StopReason::context_full ? "length" : "stop";
}

/// JSON has no infinity.
[[nodiscard]] inline double finite_logprob(const ScoredPiece& token) noexcept {
  return std::isfinite(token.log_probability) ? static_cast<double>(token.log_probability) : -9999.0;
}

/// {"token","bytes","logprob","top_logprobs"}, with "id" for llama-server.
[[nodiscard]] inline Json scored_token(const ScoredPiece& token, bool with_id, bool with_top = true) {
  Json bytes = Json::array();
  for (const char c : token.bytes) bytes.push_back(static_cast<unsigned char>(c));
  Json out = Json::object();
  if (with_id) out["id"] = token.id;
  out["token"] = token.bytes;
  out["logprob"] = finite_logprob(token);
  out["bytes"] = std::move(bytes);
  if (!with_top) return out;
  out["top_logprobs"] = Json::array();
  for (const ScoredPiece& each : token.top) out["top_logprobs"].push_back(scored_token(each, with_id, false));
  return out;
}
[[nodiscard]] inline Json scored_tokens(std::span<const ScoredPiece> tokens, bool with_id) {
  Json out = Json::array();
  for (const ScoredPiece& token : tokens) out.push_back(scored_token(token, with_id));
  return out;
}

/// The form of a reply, whole or in chunks.
struct OpenAiForm {
  Json head;                // id, object, created, model, system_fingerprint
  std::size_t n = 1;        // answers to each prompt
  bool stream = false;      // chunks in place of one object
  bool with_usage = false;  // in a chunk of its own, without choices
  Json verbose = {};        // with the numbers, as __verbose; null: not asked for
};

/// Reads stream, stream_options and n. object: of a whole reply; chunk: of a chunk.
[[nodiscard]] inline OpenAiForm read_form(Fields& fields, const Job& job, const RouteOptions& options,
                                          std::string_view prefix, const char* object, const char* chunk) {
  OpenAiForm form;
  form.stream = fields.flag("stream").value_or(false);
  if (const Json* const given = fields.find("stream_options")) {
    Fields inner(*given, fields.place("stream_options"));
    form.with_usage = inner.flag("include_usage").value_or(false);
    inner.accept("include_obfuscation");
    inner.refuse_others();
    if (!form.stream) refuse_field(fields.place("stream_options"), "is for answers with stream: true");
  }
  for (const char* name : {"n_cmpl", "n"})
    form.n = static_cast<std::size_t>(
        fields.integer(name, 1, std::int64_t{max_answers}).value_or(static_cast<std::int64_t>(form.n)));
  form.head = {{"id", random_id(prefix)},
               {"object", form.stream ? chunk : object},
               {"created", unix_seconds()},
               {"model", job.model->card().id},
               {"system_fingerprint", options.version.empty() ? "mica" : "mica-" + options.version}};
  return form;
}

/// Writes a stream. choices_of(index, event) gives the choices that are to be sent for an event, without
/// their index; the last chunk has usage and timings.
template <class ChoicesOf>
void write_chunks(Answers& answers, EventStream& stream, const OpenAiForm& form, ChoicesOf&& choices_of) {
  std::vector<Ended> ended(answers.size());
  std::size_t open = ended.size();
  const auto add_numbers = [&](Json& chunk) {
    chunk["usage"] = usage_of(ended, form.n);
    chunk["timings"] = timings_of(ended);
    if (!form.verbose.is_null()) chunk["__verbose"] = form.verbose;
  };
  const auto take = [&](std::size_t i, Event event) {
    if (const auto* const end = std::get_if<Ended>(&event)) ended[i] = *end, --open;
    std::vector<Json> choices = choices_of(i, event);
    for (std::size_t k = 0; k < choices.size(); ++k) {
      Json chunk = form.head;
      Json choice = {{"index", i}};
      choice.update(choices[k]);
      chunk["choices"] = Json::array({std::move(choice)});
      if (open == 0 && k + 1 == choices.size() && !form.with_usage) add_numbers(chunk);
      if (!stream.data(chunk)) return false;
    }
    return true;
  };
  if (!answers.run(take, [&] { return stream.idle(); })) return;
  if (form.with_usage) {
    Json chunk = form.head;
    chunk["choices"] = Json::array();
    add_numbers(chunk);
    if (!stream.data(chunk)) return;
  }
  stream.done();
}

/// A whole reply: choice_of(index, answer) gives a choice without its index.
template <class ChoiceOf>
[[nodiscard]] Json whole_body(const std::vector<WholeAnswer>& answers, const OpenAiForm& form,
                              ChoiceOf&& choice_of) {
  Json body = form.head;
  body["choices"] = Json::array();
  std::vector<Ended> ended;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ended.push_back(answers[i].ended);
    Json choice = {{"index", i}};
    choice.update(choice_of(i, answers[i]));
    body["choices"].push_back(std::move(choice));
  }
  body["usage"] = usage_of(ended, form.n);
  body["timings"] = timings_of(ended);
  if (!form.verbose.is_null()) body["__verbose"] = form.verbose;
  return body;
}

}  // namespace mica::serve
