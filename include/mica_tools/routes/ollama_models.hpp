// SPDX-License-Identifier: Apache-2.0
//
// What Ollama's API says about models: /api/tags lists all, /api/ps those in memory, /api/show describes one.
#pragma once

#include "mica_tools/http/fields.hpp"
#include "mica_tools/http/router.hpp"
#include "mica_tools/routes/parts.hpp"
#include "mica_tools/routes/route_options.hpp"
#include "mica_tools/serve/service.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::serve {

/// A time as RFC 3339 writes it, in UTC with nanoseconds.
[[nodiscard]] inline std::string rfc3339(std::chrono::system_clock::time_point time) {
  namespace chrono = std::chrono;
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss clock(chrono::duration_cast<chrono::nanoseconds>(time - day));
  std::array<char, 40> out;
  const int n = std::snprintf(out.data(), out.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%09dZ", int(date.year()),
                              unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                              int(clock.minutes().count()), int(clock.seconds().count()),
                              int(clock.subseconds().count()));
  return {out.data(), static_cast<std::size_t>(n)};
}
[[nodiscard]] inline std::string rfc3339(std::int64_t seconds_since_1970) {
  return rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(seconds_since_1970)));
}

/// The name of a model as the service has it. Clients of Ollama add ":latest" to a name without a tag.
[[nodiscard]] inline std::string ollama_name(const Service& service, const std::string& name) {
  constexpr std::string_view tag = ":latest";
  const std::vector<ModelCard> models = service.models();
  const auto same = [&](const ModelCard& card) { return card.id == name; };
  if (!name.ends_with(tag) || std::any_of(models.begin(), models.end(), same)) return name;
  return name.substr(0, name.size() - tag.size());
}

namespace detail {

/// "8.0B", "361.82M"
[[nodiscard]] inline std::string parameter_size(std::uint64_t parameters) {
  const double n = static_cast<double>(parameters);
  std::array<char, 40> out;
  const int size = n >= 1e9   ? std::snprintf(out.data(), out.size(), "%.1fB", n / 1e9)
                   : n >= 1e6 ? std::snprintf(out.data(), out.size(), "%.2fM", n / 1e6)
                              : std::snprintf(out.data(), out.size(), "%.2fK", n / 1e3);
  return {out.data(), static_cast<std::size_t>(size)};
}

[[nodiscard]] inline Json model_details(const ModelCard& card) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", card.architecture},
          {"families", Json::array({card.architecture})},
          {"parameter_size", parameter_size(card.parameters)},
          {"quantization_level", card.quantisation}};
}

/// 64 hexadecimal digits that change with a file's path, size and time: clients tell models apart by them.
/// Ollama has the SHA-256 of the file here, which would have to read all of it. FNV-1a, from four beginnings.
[[nodiscard]] inline std::string digest_of(const ModelCard& card) {
  const std::string identity = join(card.path, "|", card.file_bytes, "|", card.modified);
  std::string out;
  for (std::uint64_t i = 0; i < 4; ++i) {
    std::uint64_t hash = 0xcbf29ce484222325 ^ i;
    for (const char c : identity) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    std::array<char, 17> digits;
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
    out += digits.data();
  }
  return out;
}

[[nodiscard]] inline Json listed_model(const ModelCard& card) {
  Json out = {{"name", card.id}, {"model", card.id}, {"modified_at", rfc3339(card.modified)}};
  out["size"] = card.file_bytes;
  out["digest"] = digest_of(card);
  out["details"] = model_details(card);
  return out;
}

[[nodiscard]] inline bool may_think(const std::string& chat_template) noexcept {
  const auto has = [&](const char* word) { return chat_template.find(word) != std::string::npos; };
  return has("think") || has("reasoning_effort") || has("THINK");
}

}  // namespace detail

/// GET /api/tags
[[nodiscard]] inline HttpReply ollama_tags(const Service& service) {
  Json models = Json::array();
  for (const ModelCard& card : service.models()) models.push_back(detail::listed_model(card));
  return json_reply({{"models", std::move(models)}});
}

/// GET /api/ps
[[nodiscard]] inline HttpReply ollama_ps(const Service& service) {
  Json models = Json::array();
  for (const ModelCard& card : service.models()) {
    if (!card.loaded) continue;
    Json model = detail::listed_model(card);
    model.erase("modified_at");
    model["size"] = card.memory_bytes;
    // a date that no server reaches, where a model stays until memory is needed
    model["expires_at"] = card.unload_at ? rfc3339(*card.unload_at) : "2999-12-31T00:00:00Z";
    model["size_vram"] = 0;
    model["context_length"] = card.n_ctx;
    models.push_back(std::move(model));
  }
  return json_reply({{"models", std::move(models)}});
}

/// POST /api/show. Raises Refusal.
[[nodiscard]] inline HttpReply ollama_show(const Service& service, const RouteOptions& options,
                                           const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  fields.accept("verbose");
  const auto model = fields.text("model"), name = fields.text("name");  // the second one is the older name
  if (!model && !name) refuse_field("model", "is missing");
  fields.refuse_others();
  const std::string id = ollama_name(service, model ? *model : *name);
  const std::vector<ModelCard> models = service.models();
  const auto found =
      std::find_if(models.begin(), models.end(), [&](const ModelCard& card) { return card.id == id; });
  if (found == models.end())
    throw Refusal(Cause::not_found, join("model '", escaped(id, 100), "' not found"));
  const ModelCard& card = *found;
  Json info = {{"general.architecture", card.architecture}, {"general.parameter_count", card.parameters}};
  info[card.architecture + ".context_length"] = card.trained_ctx;
  if (card.n_embd > 0) info[card.architecture + ".embedding_length"] = card.n_embd;
  if (card.n_vocab > 0) info[card.architecture + ".vocab_size"] = card.n_vocab;
  const sample::SamplerOptions& s = options.sampler;
  std::string parameters = join("temperature ", dump(shown(s.temperature)), "\ntop_k ", s.top_k, "\ntop_p ",
                                dump(shown(s.top_p)), "\nmin_p ", dump(shown(s.min_p)));
  if (card.n_ctx > 0) parameters += join("\nnum_ctx ", card.n_ctx);
  Json capabilities = Json::array();
  if (card.writes) capabilities.push_back("completion");
  if (card.embeds) capabilities.push_back("embedding");
  if (card.ranks) capabilities.push_back("rerank");
  if (card.writes && detail::may_think(card.chat_template)) capabilities.push_back("thinking");
  Json out = {{"modelfile", join("FROM ", card.id, "\n")}, {"parameters", std::move(parameters)}};
  out["template"] = card.chat_template;
  out["details"] = detail::model_details(card);
  out["model_info"] = std::move(info);
  out["capabilities"] = std::move(capabilities);
  out["modified_at"] = rfc3339(card.modified);
  return json_reply(out);
}

}  // namespace mica::serve
