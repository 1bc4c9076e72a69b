// SPDX-License-Identifier: Apache-2.0
//
// The routes that llama-server has of its own, by which editors find a server and its context: health, props,
// slots, metrics; and text, tokens and templates without the form of OpenAI. Beyond it: the live ledger in
// props.
#pragma once

#include "mica/text/utf8.hpp"
#include "mica_tools/routes/answer_choice.hpp"
#include "mica_tools/routes/metrics_text.hpp"
#include "mica_tools/routes/openai_messages.hpp"
#include "mica_tools/routes/openai_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

namespace detail {

/// -1: any.
[[nodiscard]] inline Json id_slot_of(const std::optional<std::size_t>& slot) {
  return slot ? Json(*slot) : Json(-1);
}

[[nodiscard]] inline Json settings_of(const Job& job) {
  const sample::SamplerOptions& s = job.sampler;
  const Json max = job.max_tokens == 0 ? Json(-1) : Json(job.max_tokens);
  Json order = Json::array();
  for (std::size_t i = 0; i < (s.order.empty() ? n_stages : s.order.size()); ++i)
    order.push_back(stage_names[s.order.empty() ? i : static_cast<std::size_t>(s.order[i])].name);
  Json biases = Json::array();
  for (const sample::TokenBias& each : s.logit_bias)
    biases.push_back({{"token", each.id}, {"bias", std::isfinite(each.bias) ? Json(each.bias) : Json()}});
  return {{"n_predict", max},
          {"max_tokens", max},
          {"seed", s.seed},
          {"temperature", s.temperature},
          {"dynatemp_range", s.dynatemp_range},
          {"dynatemp_exponent", s.dynatemp_exponent},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"top_n_sigma", s.top_n_sigma},
          {"xtc_probability", s.xtc_probability},
          {"xtc_threshold", s.xtc_threshold},
          {"typical_p", s.typical},
          {"repeat_last_n", s.repeat_last_n},
          {"repeat_penalty", s.repeat_penalty},
          {"presence_penalty", s.presence_penalty},
          {"frequency_penalty", s.frequency_penalty},
          {"dry_multiplier", s.dry.multiplier},
          {"dry_base", s.dry.base},
          {"dry_allowed_length", s.dry.allowed_length},
          {"dry_penalty_last_n", s.dry.last_n},
          {"mirostat", s.mirostat},
          {"mirostat_tau", s.mirostat_tau},
          {"mirostat_eta", s.mirostat_eta},
          {"stop", job.stop},
          {"ignore_eos", !job.stop_at_end},
          {"logit_bias", std::move(biases)},
          {"n_probs", job.top_tokens},
          {"samplers", std::move(order)}};
}

/// Of the query or the default; not loaded for it.
[[nodiscard]] inline ModelCard card_of(const Service& service, std::string_view name) {
  const std::vector<ModelCard> cards = service.models();
  for (const ModelCard& card : cards) {
    if (name.empty() || card.id == name) return card;
  }
  throw Refusal(Cause::not_found, join("model '", escaped(name), "': there is no such model"));
}

[[nodiscard]] inline Json ledger_of(const Snapshot& now) {
  Json accounts = Json::object();
  now.accounts.for_each([&](budget::Account account, std::uint64_t bytes) {
    accounts[std::string(budget::name(account))] = bytes;
  });
  return {{"budget_bytes", now.budget_bytes},       {"used_bytes", now.used_bytes},
          {"peak_bytes", now.peak_bytes},           {"reserved_bytes", now.reserved_bytes},
          {"prefix_bytes", now.shared_bytes},       {"prefixes", now.prefixes},
          {"disk_read_bytes", now.disk_read_bytes}, {"accounts", std::move(accounts)}};
}

[[nodiscard]] inline HttpReply props(Service& service, const RouteOptions& options,
                                     const HttpRequest& request) {
  const ModelCard card = card_of(service, request.query.get("model"));
  Job job;
  job.sampler = options.sampler;
  job.max_tokens = options.max_tokens;
  return json_reply({{"default_generation_settings", {{"n_ctx", card.n_ctx}, {"params", settings_of(job)}}},
                     {"total_slots", options.max_running},
                     {"model_alias", card.id},
                     {"model_path", card.path},
                     {"modalities", {{"vision", false}, {"audio", false}}},
                     {"chat_template", card.chat_template},
                     {"bos_token", card.bos},
                     {"eos_token", card.eos},
                     {"build_info", "mica " + options.version},
                     {"is_sleeping", !card.loaded},
                     {"ledger", ledger_of(service.snapshot())}});
}

/// Running answers, as many idle entries as may run beside them, then answers in the queue.
[[nodiscard]] inline HttpReply slots(Service& service, const RouteOptions& options,
                                     const HttpRequest& request) {
  const Snapshot now = service.snapshot();
  const std::vector<ModelCard> cards = service.models();
  const auto waits = std::find_if(now.answers.begin(), now.answers.end(),
                                  [](const AnswerState& each) { return !each.running; });
  const auto running = static_cast<std::size_t>(waits - now.answers.begin());
  if (running >= options.max_running && !request.query.get("fail_on_no_slot").empty())
    throw Refusal(Cause::unavailable, join(running, " answers are running, as many as --parallel allows"));
  Json list = Json::array();
  const auto add = [&](const AnswerState& each, std::string_view state) {
    const auto card = std::find_if(cards.begin(), cards.end(), [&](const ModelCard& known) {
      return each.model.empty() || known.id == each.model;
    });
    Json entry = {{"id", list.size()},
                  {"n_ctx", card == cards.end() ? 0 : card->n_ctx},
                  {"speculative", false},
                  {"is_processing", state == "running"},
                  {"state", state}};
    if (state != "idle")
      entry.update({{"id_task", each.id},
                    {"id_slot", id_slot_of(each.slot)},
                    {"model", each.model},
                    {"n_prompt_tokens", each.prompt_tokens},
                    {"n_prompt_tokens_processed", each.read_tokens},
                    {"n_prompt_tokens_cache", each.cached_tokens},
                    {"n_decoded", each.answer_tokens},
                    {"max_tokens", each.max_tokens},
                    {"bytes", each.bytes}});
    list.push_back(std::move(entry));
  };
  for (auto at = now.answers.begin(); at != waits; ++at) add(*at, "running");
  for (std::size_t i = running; i < options.max_running; ++i) add({}, "idle");
  for (auto at = waits; at != now.answers.end(); ++at) add(*at, "waiting");
  return json_reply(list);
}

[[nodiscard]] inline bool has_new_line(std::string_view text) noexcept {
  return text.find('\n') != std::string_view::npos;
}

/// What a completion replies with, beside its text.
struct LlamaForm {
  std::string model = {};  // its name; the jobs keep it in memory no longer
  std::size_t n_ctx = 0;
  std::size_t n = 1;                      // answers to each prompt
  std::vector<Job> jobs = {};             // without prompts' tokens, which have been submitted
  std::vector<std::string> prompts = {};  // texts, one for n jobs
  bool tokens = false;                    // ids of tokens are wanted
  std::string grammar = {};

  [[nodiscard]] Json piece(std::size_t i, const std::string& text,
                           const std::vector<ScoredPiece>& scored) const {
    Json ids = Json::array();
    for (const ScoredPiece& each : scored) {
      if (tokens) ids.push_back(each.id);
    }
    Json out = {{"index", i},
                {"content", text},
                {"tokens", std::move(ids)},
                {"id_slot", id_slot_of(jobs[i].slot)},
                {"stop", false}};
    if (jobs[i].top_tokens > 0) out["completion_probabilities"] = scored_tokens(scored, true);
    return out;
  }
  /// new_line: whether its text has one.
  [[nodiscard]] Json end(std::size_t i, Json out, const Ended& ended, bool new_line) const {
    const Job& job = jobs[i];
    out["stop"] = true;
    out["model"] = model;
    out["tokens_predicted"] = ended.answer_tokens;
    out["tokens_evaluated"] = ended.prompt_tokens;
    out["tokens_cached"] = ended.cached_tokens;
    out["generation_settings"] = settings_of(job);
    out["generation_settings"]["n_ctx"] = n_ctx;
    out["generation_settings"]["grammar"] = grammar;
    out["prompt"] = prompts[i / n];
    out["truncated"] = ended.reason == StopReason::context_full;
    out["stop_type"] = finish_reason(ended) == "length" ? "limit" : ended.stop.empty() ? "eos" : "word";
    out["stopping_word"] = ended.stop;
    out["has_new_line"] = new_line;
    out["timings"] = timings_of({&ended, 1});
    return out;
  }
};

[[nodiscard]] inline HttpReply completion(Service& service, const RouteOptions& options,
                                          const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  Job job = read_job(fields, service, options, request);
  read_json_schema(fields, job);
  LlamaForm form;
  form.tokens = fields.flag("return_tokens").value_or(false);
  form.grammar = fields.text("grammar").value_or("");
  job.top_tokens = static_cast<std::size_t>(fields.integer("n_probs", 0, max_top_tokens).value_or(0));
  job.scores = form.tokens || job.top_tokens > 0;
  const bool streams = fields.flag("stream").value_or(false);
  form.n = static_cast<std::size_t>(fields.integer("n_cmpl", 1, std::int64_t{max_answers}).value_or(1));
  std::vector<Prompt> prompts = read_prompts(fields, *job.model);
  fields.refuse_others();

  std::vector<Job> jobs;
  form.model = job.model->card().id;
  form.n_ctx = job.model->card().n_ctx;
  for (Prompt& prompt : prompts) {
    form.prompts.push_back(job.model->decode(prompt.tokens));
    job.prompt = {};
    add_jobs(form.jobs, job, form.n);
    job.prompt = std::move(prompt);
    add_jobs(jobs, job, form.n);
  }
  for (Job& each : form.jobs) {  // the answers keep both as long as they need them
    each.model.reset();
    each.constraint = {};
  }
  const auto answers = std::make_shared<Answers>(service, std::move(jobs));
  if (streams)
    return event_reply(answers, Api::openai, options.ping, [form](Answers& these, EventStream& stream) {
      std::vector<bool> lines(these.size());  // whether an answer has a new line
      const auto take = [&](std::size_t i, const Event& event) {
        if (const auto* const more = std::get_if<Text>(&event)) {
          if (has_new_line(more->text)) lines[i] = true;
          return stream.data(form.piece(i, more->text, more->tokens));
        }
        if (const auto* const ended = std::get_if<Ended>(&event))
          return stream.data(form.end(i, form.piece(i, "", {}), *ended, lines[i]));
        return true;
      };
      (void)these.run(take, [&] { return stream.idle(); });
    });
  return whole_reply(answers, Api::openai, [form](const std::vector<WholeAnswer>& whole) {
    Json list = Json::array();
    for (std::size_t i = 0; i < whole.size(); ++i)
      list.push_back(form.end(i, form.piece(i, whole[i].text, whole[i].tokens), whole[i].ended,
                              has_new_line(whole[i].text)));
    return list.size() == 1 ? list[0] : list;
  });
}

/// The text of a token; its bytes, where they are no whole characters.
[[nodiscard]] inline std::string piece_json(const std::string& piece) {
  if (text::is_utf8(piece)) return dump(Json(piece));
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return dump(bytes);
}

[[nodiscard]] inline HttpReply tokenize(Service& service, const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  const auto model = service.model(fields.text("model").value_or(""), request.open);
  (void)fields.need("content");
  const std::string text = *fields.text("content");
  const bool begin = fields.flag("add_special").value_or(false);
  const bool special = fields.flag("parse_special").value_or(true);
  const bool pieces = fields.flag("with_pieces").value_or(false);
  fields.refuse_others();
  HttpReply reply;  // written by hand: a tree of a million tokens takes hundreds of MiB
  reply.body = "{\"tokens\":[";
  for (const TokenId id : model->encode(text, begin, special)) {
    if (reply.body.back() != '[') reply.body += ',';
    reply.body += pieces ? join("{\"id\":", id, ",\"piece\":", piece_json(model->piece(id)), "}") : join(id);
  }
  reply.body += "]}";
  return reply;
}

[[nodiscard]] inline HttpReply detokenize(Service& service, const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  const auto model = service.model(fields.text("model").value_or(""), request.open);
  const Json& tokens = fields.need("tokens");
  if (!tokens.is_array()) fields.refuse_type("tokens", "an array of tokens", tokens);
  fields.refuse_others();
  const std::string text = tokens.empty() ? "" : model->decode(read_prompt(tokens, "tokens", *model).tokens);
  return json_reply({{"content", text}});
}

[[nodiscard]] inline HttpReply apply_template(Service& service, const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  const auto model = service.model(fields.text("model").value_or(""), request.open);
  Conversation conversation = read_conversation(fields);
  AnswerChoice allowed;
  read_tools(fields, allowed);
  if (!allowed.tools.empty()) conversation.tools = dump(allowed.tools);
  fields.refuse_others();
  return json_reply({{"prompt", model->rendered(conversation)}});
}

/// Saves, restores or erases the slot of that number.
[[nodiscard]] inline HttpReply slot_action(Service& service, const RouteOptions& options,
                                           const HttpRequest& request, const std::string& id) {
  const std::string_view action = request.query.get("action");
  SlotTask task;
  if (action == "restore") task.action = SlotAction::restore;
  if (action == "erase") task.action = SlotAction::erase;
  if (action != "save" && action != "restore" && action != "erase")
    throw Refusal(Cause::invalid,
                  join("action: found '", escaped(action, 40), "', allowed: save, restore, erase"));
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), task.slot);
  if (error != std::errc() || end != id.data() + id.size() || task.slot >= options.max_running)
    throw Refusal(Cause::invalid,
                  join("slot: found '", escaped(id, 40), "', allowed: 0 to ", options.max_running - 1));
  const Json body = request.body.empty() ? Json::object() : parse_body(request);
  Fields fields(body);
  const std::string model = fields.text("model").value_or("");
  const bool erases = task.action == SlotAction::erase;
  if (!erases) (void)fields.need("filename");
  task.file = fields.text("filename").value_or("");
  fields.refuse_others();
  task.model = service.model(model, request.open);
  const std::size_t slot = task.slot;
  const SlotResult done = service.slot(std::move(task));
  if (erases) return json_reply({{"id_slot", slot}, {"n_erased", done.tokens}});
  const bool saves = action == "save";
  const auto name = [](bool first, const char* a, const char* b) { return std::string(first ? a : b); };
  Json out = {{"id_slot", slot}, {"filename", *fields.text("filename")}};
  out[name(saves, "n_saved", "n_restored")] = done.tokens;
  out[name(saves, "n_written", "n_read")] = done.bytes;
  out["timings"][name(saves, "save_ms", "restore_ms")] = done.seconds * 1e3;
  return json_reply(out);
}

}  // namespace detail

/// service outlives the router.
inline void add_llama(Router& router, Service& service, const RouteOptions& options) {
  const auto add = [&](const char* method, const char* path, auto handler) {
    router.add(method, path, Api::openai,
               [&service, options, handler](const HttpRequest& request, const std::string&) {
                 return handler(service, options, request);
               });
  };
  const auto health = [](Service&, const RouteOptions&, const HttpRequest&) {
    return json_reply({{"status", "ok"}});
  };
  add("GET", "/health", health);
  add("GET", "/v1/health", health);
  add("GET", "/props", detail::props);
  add("GET", "/slots", detail::slots);
  add("POST", "/completion", detail::completion);
  add("POST", "/completions", detail::completion);
  const auto without_options = [](auto handler) {
    return [handler](Service& its, const RouteOptions&, const HttpRequest& request) {
      return handler(its, request);
    };
  };
  add("POST", "/tokenize", without_options(detail::tokenize));
  add("POST", "/detokenize", without_options(detail::detokenize));
  add("POST", "/apply-template", without_options(detail::apply_template));
  add("GET", "/metrics", [started = unix_seconds()](Service& its, const RouteOptions&, const HttpRequest&) {
    HttpReply reply;
    reply.type = "text/plain; version=0.0.4; charset=utf-8";
    reply.headers.add("Process-Start-Time-Unix", std::to_string(started));
    reply.body = metrics_text(its.snapshot(), its.models());
    return reply;
  });
  router.add("POST", "/slots/{id}", Api::openai,
             [&service, options](const HttpRequest& request, const std::string& id) {
               return detail::slot_action(service, options, request, id);
             });
  for (const char* path : {"/props", "/infill", "/lora-adapters"})
    add("POST", path, [](Service&, const RouteOptions&, const HttpRequest& request) -> HttpReply {
      throw Refusal(Cause::unsupported, request.path + ": this server does not have it");
    });
}

}  // namespace mica::serve
