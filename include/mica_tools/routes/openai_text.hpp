// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/completions of OpenAI: text that continues a text, without a chat template.
#pragma once

#include "mica/text/utf8.hpp"
#include "mica_tools/routes/openai_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

namespace detail {

/// A prompt of one text, or of tokens and texts; the first text begins with BOS if it is the first part.
[[nodiscard]] inline Prompt read_prompt(const Json& value, const std::string& place,
                                        const ServedModel& model) {
  if (value.is_object()) {  // llama-server's form for media, which are not read here
    Fields fields(value, place);
    const std::string text = fields.need_text("prompt_string");
    fields.allow_only("multimodal_data", Json::array());
    fields.refuse_others();
    return read_prompt(Json(text), place, model);
  }
  const auto whole = Json::array({value});
  const std::size_t n_vocab = model.card().n_vocab;
  Prompt out;
  for (const Json& part : value.is_array() ? value : whole) {
    if (part.is_string()) {
      const auto tokens = model.encode(part.get<std::string>(), out.tokens.empty(), true);
      out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
      continue;
    }
    if (part.is_object()) refuse_field(place, "is an object; this server reads text only", Cause::option);
    if (!part.is_number() || !value.is_array())
      refuse_field(place, join("must be text or tokens, not ", type_name(part)));
    const double id = part.get<double>();
    if (!(id >= 0 && id < static_cast<double>(n_vocab) && std::floor(id) == id))
      refuse_field(place, join("token ", dump(part), " is outside the vocabulary of ", n_vocab, " tokens"));
    out.tokens.push_back(static_cast<TokenId>(id));
  }
  if (out.tokens.empty()) refuse_field(place, "has no token");
  return out;
}

/// "text", [1, 2, "text"], or several: ["text", "text"], [[1, 2], "text"].
[[nodiscard]] inline std::vector<Prompt> read_prompts(Fields& fields, const ServedModel& model) {
  const Json& value = fields.need("prompt");
  const std::string place = fields.place("prompt");
  const auto is_number = [](const Json& each) { return each.is_number(); };
  if (!value.is_array() || std::any_of(value.begin(), value.end(), is_number))
    return {read_prompt(value, place, model)};
  if (value.empty() || value.size() > max_answers)
    refuse_field(place, join("has ", value.size(), " prompts; it must have 1 to ", max_answers));
  std::vector<Prompt> out;
  for (std::size_t i = 0; i < value.size(); ++i)
    out.push_back(read_prompt(value[i], join(place, "[", i, "]"), model));
  return out;
}

/// Characters of a text, as many as a Python string has.
[[nodiscard]] inline std::size_t characters_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// OpenAI's older form of probabilities; `offset` is the place of the next token in the text.
[[nodiscard]] inline Json text_logprobs(const std::vector<ScoredPiece>& tokens, std::size_t& offset) {
  Json names = Json::array(), values = Json::array(), offsets = Json::array(), tops = Json::array();
  for (const ScoredPiece& token : tokens) {
    names.push_back(text::repaired_utf8(token.bytes));
    values.push_back(finite_logprob(token));
    offsets.push_back(offset);
    offset += characters_of(token.bytes);
    Json top = Json::object();
    for (const ScoredPiece& each : token.top) top[text::repaired_utf8(each.bytes)] = finite_logprob(each);
    tops.push_back(std::move(top));
  }
  return {{"tokens", names}, {"token_logprobs", values}, {"top_logprobs", tops}, {"text_offset", offsets}};
}

/// The text of a prompt, without BOS, which the server adds.
[[nodiscard]] inline std::string echoed(const Prompt& prompt, const ServedModel& model) {
  std::string text = model.decode(prompt.tokens);
  if (text.starts_with(model.card().bos)) text.erase(0, model.card().bos.size());
  return text;
}

[[nodiscard]] inline HttpReply text_completion(Service& service, const RouteOptions& options,
                                               const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  Job job = read_job(fields, service, options, request);
  read_json_schema(fields, job);
  const OpenAiForm form = read_form(fields, job, options, "cmpl-", "text_completion", "text_completion");
  const auto top = fields.integer("logprobs", 0, max_top_tokens);
  job.scores = top.has_value();
  job.top_tokens = static_cast<std::size_t>(top.value_or(0));
  const bool echo = fields.flag("echo").value_or(false);
  if (echo && top) refuse_field("logprobs", "is not supported together with echo", Cause::option);
  fields.allow_only("best_of", 1);
  fields.allow_only("suffix", "");
  std::vector<Prompt> prompts = read_prompts(fields, *job.model);
  fields.refuse_others();

  std::vector<Job> jobs;
  std::vector<std::string> beginnings;  // of the text of each answer
  for (Prompt& prompt : prompts) {
    const std::string beginning = echo ? echoed(prompt, *job.model) : std::string();
    job.prompt = std::move(prompt);
    add_jobs(jobs, job, form.n);
    beginnings.resize(jobs.size(), beginning);
  }
  const auto answers = std::make_shared<Answers>(service, std::move(jobs));
  const auto choice = [](std::string text, Json logprobs, Json reason) {
    return Json{
        {"text", std::move(text)}, {"logprobs", std::move(logprobs)}, {"finish_reason", std::move(reason)}};
  };
  const bool scores = job.scores;
  if (form.stream)
    return event_reply(answers, Api::openai, options.ping, [=](Answers& these, EventStream& stream) {
      std::vector<std::size_t> offsets(these.size());
      write_chunks(these, stream, form, [&](std::size_t i, const Event& event) {
        std::vector<Json> out;
        if (std::holds_alternative<Begun>(event) && !beginnings[i].empty())
          out.push_back(choice(beginnings[i], nullptr, nullptr));
        if (const auto* const more = std::get_if<Text>(&event))
          out.push_back(
              choice(more->text, scores ? text_logprobs(more->tokens, offsets[i]) : Json(), nullptr));
        if (const auto* const ended = std::get_if<Ended>(&event))
          out.push_back(choice("", nullptr, finish_reason(*ended)));
        return out;
      });
    });
  return whole_reply(answers, Api::openai, [=](const std::vector<WholeAnswer>& whole) {
    return whole_body(whole, form, [&](std::size_t i, const WholeAnswer& answer) {
      std::size_t offset = 0;
      return choice(beginnings[i] + answer.text, scores ? text_logprobs(answer.tokens, offset) : Json(),
                    finish_reason(answer.ended));
    });
  });
}

}  // namespace detail

/// service outlives the router.
inline void add_openai_text(Router& router, Service& service, const RouteOptions& options) {
  router.add("POST", "/v1/completions", Api::openai,
             [&service, options](const HttpRequest& request, const std::string&) {
               return detail::text_completion(service, options, request);
             });
}

}  // namespace mica::serve
