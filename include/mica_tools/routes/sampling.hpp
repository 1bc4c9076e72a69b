// SPDX-License-Identifier: Apache-2.0
//
// The options of sampling in a request. OpenAI, llama-server and Ollama use the same names, so one function reads
// them all; what a request leaves out keeps the value of the server.
#pragma once

#include "mica/sample/sampler_options.hpp"
#include "mica_tools/http/fields.hpp"
#include "mica_tools/routes/route_options.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace mica::serve {

inline constexpr std::size_t max_stop_texts = 16;                  // of one request
inline constexpr std::size_t max_stop_bytes = 1024;                // of one text
inline constexpr std::size_t max_biases = 1024;                    // of one request
inline constexpr std::int64_t max_last_n = std::int64_t{1} << 20;  // tokens that penalties and DRY search

namespace detail {

struct StageName {
  std::string_view name;
  sample::Stage stage;
};
inline constexpr StageName stage_names[] = {{"penalties", sample::Stage::penalties},
                                            {"dry", sample::Stage::dry},
                                            {"top_n_sigma", sample::Stage::top_n_sigma},
                                            {"top_k", sample::Stage::top_k},
                                            {"typ_p", sample::Stage::typical},
                                            {"top_p", sample::Stage::top_p},
                                            {"min_p", sample::Stage::min_p},
                                            {"xtc", sample::Stage::xtc},
                                            {"temperature", sample::Stage::temperature},
                                            {"typical_p", sample::Stage::typical}};

inline constexpr std::size_t n_stages = 9;  // of sample::Stage, whose order the names have

inline void read_into(Fields& fields, std::string_view name, double min, double max, float& value) {
  if (const auto given = fields.number(name, min, max)) value = static_cast<float>(*given);
}
/// -1 means the whole context.
inline void read_last_n(Fields& fields, std::string_view name, std::size_t n_ctx, std::int64_t& value) {
  const auto given = fields.integer(name, -1, max_last_n);
  if (given) value = *given < 0 ? std::min(static_cast<std::int64_t>(n_ctx), max_last_n) : *given;
}

/// The sequences of tokens that contain one of the texts and end with it: tokens with all of it, and tokens that
/// end with its beginning, followed by the tokens of the rest. Visits the vocabulary once.
[[nodiscard]] inline std::vector<std::vector<TokenId>> breakers_of(const std::vector<std::string>& texts,
                                                                   const ServedModel& model) {
  struct Beginning {
    std::string_view text;
    std::vector<TokenId> rest;
  };
  std::vector<Beginning> beginnings;
  for (const std::string& text : texts) {
    for (std::size_t n = 1; n < text.size(); ++n) {
      const std::string_view all = text;
      beginnings.push_back({all.substr(0, n), model.encode(all.substr(n), false, true)});
    }
  }
  std::vector<std::vector<TokenId>> out;
  for (std::size_t i = 0; !texts.empty() && i < model.card().n_vocab; ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string piece = model.piece(id);
    const auto within = [&](const std::string& text) { return piece.find(text) != std::string::npos; };
    if (std::any_of(texts.begin(), texts.end(), within)) {
      out.push_back({id});
      continue;
    }
    for (const Beginning& each : beginnings) {
      if (each.rest.empty() || !piece.ends_with(each.text)) continue;
      out.push_back({id});
      out.back().insert(out.back().end(), each.rest.begin(), each.rest.end());
    }
  }
  return out;
}

inline void read_dry(Fields& fields, const ServedModel& model, sample::DryOptions& dry) {
  constexpr std::size_t max_bytes =
      256;  // of all breakers: each is compared with each token of the vocabulary
  read_into(fields, "dry_multiplier", 0, 1e3, dry.multiplier);
  read_into(fields, "dry_base", 1, 1e3, dry.base);
  if (const auto length = fields.integer("dry_allowed_length", 1, max_last_n)) dry.allowed_length = *length;
  read_last_n(fields, "dry_penalty_last_n", model.card().n_ctx, dry.last_n);
  std::vector<std::string> texts = {"\n", ":", "\"", "*"};
  const Json* const given = fields.find("dry_sequence_breakers");
  if (given != nullptr) {
    if (!given->is_array()) fields.refuse_type("dry_sequence_breakers", "an array of strings", *given);
    texts.clear();
    std::size_t bytes = 0;
    for (const Json& each : *given) {
      if (!each.is_string()) fields.refuse_type("dry_sequence_breakers[]", "a string", each);
      const std::string& text = texts.emplace_back(each.get<std::string>());
      bytes += text.size();
      if (text.empty() || bytes > max_bytes)
        refuse_field(fields.place("dry_sequence_breakers"),
                     join("must be texts that are not empty, of ", max_bytes, " bytes together"));
    }
  }
  if (dry.multiplier > 0 && (given != nullptr || dry.breakers.empty()))
    dry.breakers = breakers_of(texts, model);
}

/// The tokens that a bias is for: an id, or each token of a text.
[[nodiscard]] inline std::vector<TokenId> biased_tokens(const std::string& place, const Json& token,
                                                        const ServedModel& model) {
  const std::size_t n_vocab = model.card().n_vocab;
  double id = -1;
  if (token.is_number()) {
    id = token.get<double>();
  } else if (token.is_string()) {
    const auto text = token.get<std::string>();
    if (text.find_first_not_of("0123456789") != std::string::npos || text.empty())
      return model.encode(text, false, true);
    std::uint64_t number = n_vocab;
    (void)std::from_chars(text.data(), text.data() + text.size(), number);  // too long: outside too
    id = static_cast<double>(number);
  } else {
    refuse_field(place, join("names a token by its id or a text, not by ", type_name(token)));
  }
  if (!(id >= 0 && id < static_cast<double>(n_vocab) && std::floor(id) == id))
    refuse_field(place, join("token ", dump(token), " is outside the vocabulary of ", n_vocab, " tokens"));
  return {static_cast<TokenId>(id)};
}

inline void add_bias(const std::string& place, const Json& token, const Json& bias, const ServedModel& model,
                     std::vector<sample::TokenBias>& out) {
  constexpr double max = 1e9;
  float value = -std::numeric_limits<float>::infinity();  // false: never
  if (bias.is_number()) {
    const double number = bias.get<double>();
    if (!(number >= -max && number <= max)) refuse_field(place, "a bias must be from -1e9 to 1e9");
    value = static_cast<float>(number);
  } else if (bias != Json(false)) {
    refuse_field(place, join("a bias must be a number, or false for never, not ", type_name(bias)));
  }
  for (const TokenId id : biased_tokens(place, token, model)) out.push_back({id, value});
  if (out.size() > max_biases) refuse_field(place, join("is for more than ", max_biases, " tokens"));
}

/// OpenAI's object {"15043": -1}, or llama-server's array [[15043, -1], ["text", false]].
inline void read_biases(Fields& fields, const ServedModel& model, std::vector<sample::TokenBias>& out) {
  const Json* const given = fields.find("logit_bias");
  if (given == nullptr) return;
  const std::string place = fields.place("logit_bias");
  if (!given->is_structured()) fields.refuse_type("logit_bias", "an object or an array of pairs", *given);
  if (given->is_object()) {
    for (const auto& [token, bias] : given->items()) add_bias(place, Json(token), bias, model, out);
    return;
  }
  for (const Json& pair : *given) {
    if (!pair.is_array() || pair.size() != 2) refuse_field(place, "each bias must be [token, number]");
    add_bias(place, pair[0], pair[1], model, out);
  }
}

inline void read_order(Fields& fields, std::vector<sample::Stage>& order) {
  const Json* const given = fields.find("samplers");
  if (given == nullptr) return;
  if (!given->is_array()) fields.refuse_type("samplers", "an array of strings", *given);
  order.clear();
  for (const Json& each : *given) {
    if (!each.is_string()) fields.refuse_type("samplers[]", "a string", each);
    const auto text = each.get<std::string>();
    const auto found = std::find_if(std::begin(stage_names), std::end(stage_names),
                                    [&](const StageName& stage) { return stage.name == text; });
    if (found == std::end(stage_names) || std::find(order.begin(), order.end(), found->stage) != order.end())
      refuse_field(fields.place("samplers"), join("found '", escaped(text, 40),
                                                  "' once too often, allowed: penalties, dry, top_n_sigma, ",
                                                  "top_k, typ_p, top_p, min_p, xtc, temperature, each once"));
    order.push_back(found->stage);
  }
  if (order.empty()) refuse_field(fields.place("samplers"), "must have one stage at least");
}

}  // namespace detail

/// A seed that no other request has.
[[nodiscard]] inline std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 20) ^ device();  // JSON numbers hold 53 bits
}

/// Reads the fields of sampling, and ignore_eos, into a job whose model and defaults are set. A seed that is
/// negative or any_seed is random.
inline void read_sampling(Fields& fields, Job& job) {
  using detail::read_into;
  const ServedModel& model = *job.model;
  sample::SamplerOptions& s = job.sampler;
  constexpr double max_temperature = 1e4;
  read_into(fields, "temperature", -1, max_temperature, s.temperature);
  if (const auto k = fields.integer("top_k", -1, std::int64_t{1} << 31))
    s.top_k = std::max<std::int64_t>(*k, 0);
  read_into(fields, "top_p", 0, 1, s.top_p);
  read_into(fields, "min_p", 0, 1, s.min_p);
  read_into(fields, "typical_p", 0, 1, s.typical);
  read_into(fields, "top_n_sigma", -1, 1e3, s.top_n_sigma);
  read_into(fields, "repeat_penalty", 1e-3, 1e3, s.repeat_penalty);
  detail::read_last_n(fields, "repeat_last_n", model.card().n_ctx, s.repeat_last_n);
  read_into(fields, "frequency_penalty", -1e3, 1e3, s.frequency_penalty);
  read_into(fields, "presence_penalty", -1e3, 1e3, s.presence_penalty);
  read_into(fields, "xtc_probability", 0, 1, s.xtc_probability);
  read_into(fields, "xtc_threshold", 0, 1, s.xtc_threshold);
  read_into(fields, "dynatemp_range", 0, max_temperature, s.dynatemp_range);
  read_into(fields, "dynatemp_exponent", 0, 1e3, s.dynatemp_exponent);
  if (const auto version = fields.integer("mirostat", 0, 2)) s.mirostat = static_cast<int>(*version);
  read_into(fields, "mirostat_tau", 0, 100, s.mirostat_tau);
  read_into(fields, "mirostat_eta", 0, 10, s.mirostat_eta);
  detail::read_dry(fields, model, s.dry);
  detail::read_biases(fields, model, s.logit_bias);
  detail::read_order(fields, s.order);
  fields.allow_only("min_keep", 0);
  constexpr std::int64_t max_seed = std::int64_t{1} << 53;
  if (const auto seed = fields.integer("seed", -max_seed, max_seed))
    s.seed = *seed < 0 ? any_seed : static_cast<std::uint64_t>(*seed);
  if (s.seed == any_seed) s.seed = random_seed();
  if (const auto ignore = fields.flag("ignore_eos")) job.stop_at_end = !*ignore;
}

/// Texts that end an answer: a string, or an array of at most 16.
inline void read_stop(Fields& fields, std::string_view name, std::vector<std::string>& out) {
  const Json* const given = fields.find(name);
  if (given == nullptr) return;
  const auto add = [&](const Json& text) {
    if (!text.is_string()) fields.refuse_type(name, "a string or an array of strings", text);
    if (text == Json("")) refuse_field(fields.place(name), "must not have an empty text");
    if (text.get_ref<const std::string&>().size() > max_stop_bytes)
      refuse_field(fields.place(name), join("has a text of more than ", max_stop_bytes, " bytes"));
    out.push_back(text.get<std::string>());
  };
  if (!given->is_array()) return add(*given);
  if (given->size() > max_stop_texts)
    refuse_field(fields.place(name), join("has ", given->size(), " texts; at most ", max_stop_texts));
  for (const Json& text : *given) add(text);
}

/// A maximum of tokens from 1 on; -1 and -2 are the rest of the context, and a missing one is the server's.
inline void read_max_tokens(Fields& fields, std::string_view name, Job& job) {
  const auto given = fields.integer(name, -2, std::int64_t{1} << 40);
  if (!given) return;
  if (*given == 0)
    refuse_field(fields.place(name), "is 0; it must be 1 or more, or -1 for the rest of the context");
  job.max_tokens = *given < 0 ? 0 : static_cast<std::size_t>(*given);
}

}  // namespace mica::serve
