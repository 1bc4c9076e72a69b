// SPDX-License-Identifier: Apache-2.0
//
// Embeddings of Ollama's API: POST /api/embed, of one text or several, and the older /api/embeddings, of one,
// whose embedding is as the model gives it, not of length 1.
#pragma once

#include "mica_tools/json/row_text.hpp"
#include "mica_tools/routes/embed_parts.hpp"
#include "mica_tools/routes/keep_alive.hpp"
#include "mica_tools/routes/ollama_models.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace mica::serve {

namespace detail {

/// What a request of either route asks for, but for its texts.
struct OllamaEmbed {
  EmbedRequest asked;
  std::string model;  // its name
  std::optional<KeepAlive> keep_alive = {};
  Stopwatch since_begin = {};
  double load_seconds = 0;

  [[nodiscard]] std::string head() const { return join("{\"model\":", dump(Json(model))); }
};

/// `options`: those about the machine mean nothing here, and change no row.
inline void read_embed_options(const Json* given, const EmbedRequest& asked) {
  if (given == nullptr) return;
  Fields options(*given, "options");
  for (const char* const name : {"numa", "num_batch", "num_gpu", "main_gpu", "low_vram", "use_mmap",
                                 "use_mlock", "num_thread", "num_keep"})
    options.accept(name);
  const std::size_t max = asked.model->max_text_tokens();
  const auto wanted = options.integer("num_ctx", 0, std::int64_t{1} << 40);
  if (wanted && !asked.truncate && static_cast<std::size_t>(*wanted) > max)
    refuse_field("options.num_ctx", join("is ", *wanted, "; this model reads texts of ", max, " tokens"));
  for (const auto& [name, value] : given->items()) options.accept(name);  // samplers
}

/// No texts: the model is loaded, or unloaded.
[[nodiscard]] inline HttpReply load_without_texts(Service& service, const OllamaEmbed& embed,
                                                  const HttpRequest& request, const std::string& body) {
  if (embed.keep_alive && embed.keep_alive->ends_now()) {
    (void)service.unload(embed.model);
  } else {
    (void)service.model(embed.model, request.open);
    if (embed.keep_alive) service.keep_alive(embed.model, embed.keep_alive->time);
  }
  HttpReply reply;
  reply.body = body;
  return reply;
}

[[nodiscard]] inline OllamaEmbed read_ollama_embed(Fields& fields, const Service& service) {
  OllamaEmbed out;
  out.model = ollama_name(service, fields.need_text("model"));
  if (const Json* const time = fields.find("keep_alive")) out.keep_alive = read_keep_alive(*time);
  out.asked.truncate = fields.flag("truncate").value_or(true);
  return out;
}

inline void require_plain_texts(const Fields& fields, const Json& input) {
  constexpr const char* wanted = "a text or an array of texts";
  if (!input.is_string() && !input.is_array()) fields.refuse_type("input", wanted, input);
  for (std::size_t i = 0; input.is_array() && i < input.size(); ++i) {
    if (!input[i].is_string()) fields.refuse_type("input", wanted, input[i]);
  }
}

/// The model, and how its rows are made.
inline void choose_rows(Fields& fields, Service& service, const RouteOptions& options,
                        const HttpRequest& request, OllamaEmbed& out) {
  const Stopwatch load;
  out.asked.model = service.model(out.model, request.open);
  out.load_seconds = load.seconds();
  require_embedder(out.asked.model->card());
  choose_pooling(fields, options, false, out.asked);
  read_rows(fields, out.asked);
  read_embed_options(fields.find("options"), out.asked);
}

[[nodiscard]] inline HttpReply ollama_rows(Service& service, OllamaEmbed embed,
                                           std::function<std::string(const WholeRows&)> body_of) {
  const std::optional<KeepAlive> keep_alive = embed.keep_alive;
  const std::string model = embed.model;
  HttpReply reply = rows_reply(service, std::move(embed.asked), Api::ollama, std::move(body_of));
  if (keep_alive) service.keep_alive(model, keep_alive->time);
  return reply;
}

/// POST /api/embed
[[nodiscard]] inline HttpReply ollama_embed(Service& service, const RouteOptions& options,
                                            const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  OllamaEmbed embed = read_ollama_embed(fields, service);
  const Json* const input = fields.find("input");
  if (input != nullptr) require_plain_texts(fields, *input);
  if (input == nullptr || *input == "" || input->empty())
    return load_without_texts(service, embed, request, embed.head() + ",\"embeddings\":[]}");
  choose_rows(fields, service, options, request, embed);
  read_texts(*input, "input", embed.asked);
  fields.refuse_others();
  const auto line = [head = embed.head(), since = embed.since_begin,
                     load = embed.load_seconds](const WholeRows& whole) {
    const auto nanoseconds = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
    std::string out = head + ",\"embeddings\":[";
    for (std::size_t i = 0; i < whole.rows.numbers.size() / whole.rows.width; ++i) {
      if (i > 0) out += ',';
      append_row(out, whole[i]);
    }
    return out + join("],\"total_duration\":", nanoseconds(since.seconds()),
                      ",\"load_duration\":", nanoseconds(load),
                      ",\"prompt_eval_count\":", whole.ended.prompt_tokens, "}");
  };
  return ollama_rows(service, std::move(embed), line);
}

/// POST /api/embeddings
[[nodiscard]] inline HttpReply ollama_embeddings(Service& service, const RouteOptions& options,
                                                 const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  OllamaEmbed embed = read_ollama_embed(fields, service);
  const std::string prompt = fields.text("prompt").value_or("");
  if (prompt.empty()) return load_without_texts(service, embed, request, "{\"embedding\":[]}");
  choose_rows(fields, service, options, request, embed);
  embed.asked.embed.rows.normalize = false;
  read_texts(Json(prompt), "prompt", embed.asked);
  fields.refuse_others();
  return ollama_rows(service, std::move(embed), [](const WholeRows& whole) {
    std::string out = "{\"embedding\":";
    append_row(out, whole[0]);
    return out + "}";
  });
}

}  // namespace detail

/// Adds both routes. service outlives the router.
inline void add_ollama_embed(Router& router, Service& service, const RouteOptions& options) {
  const auto add = [&](const char* path, auto answer) {
    router.add("POST", path, Api::ollama,
               [&service, options, answer](const HttpRequest& request, const std::string&) {
                 return answer(service, options, request);
               });
  };
  add("/api/embed", detail::ollama_embed);
  add("/api/embeddings", detail::ollama_embeddings);
}

}  // namespace mica::serve
