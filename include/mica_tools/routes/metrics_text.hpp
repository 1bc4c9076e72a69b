// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a server as Prometheus reads them (text format 0.0.4): names with mica_, and those of
// llama-server where they mean the same.
#pragma once

#include "mica_tools/http/fields.hpp"
#include "mica_tools/serve/service.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

namespace detail {

class MetricsText {
 public:
  using Samples =
      std::initializer_list<std::pair<std::string_view, double>>;  // by labels: `outcome="failed"`

  /// name: without prefix. Names of counters end in _total.
  void add(std::string_view name, std::string_view help, double value) { add(name, help, {{"", value}}); }
  template <class List = Samples>
  void add(std::string_view name, std::string_view help, const List& samples) {
    begin(join("mica_", name), name.ends_with("_total") ? "counter" : "gauge", help);
    for (const auto& [labels, value] : samples) line(join("mica_", name), labels, value);
  }
  void add(std::string_view name, std::string_view help, const Histogram& histogram) {
    const std::string full = join("mica_", name);
    begin(full, "histogram", help);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      count += histogram.counts[i];
      const std::string bound =
          i < Histogram::bounds.size() ? Json(Histogram::bounds[i]).dump() : std::string("+Inf");
      line(full + "_bucket", join("le=\"", bound, "\""), static_cast<double>(count));
    }
    line(full + "_sum", "", histogram.sum);
    line(full + "_count", "", static_cast<double>(count));
  }
  /// A name of llama-server.
  void add_llama(std::string_view name, std::string_view help, double value) {
    const std::string full = join("llamacpp:", name);
    begin(full, name.ends_with("_total") ? "counter" : "gauge", help);
    line(full, "", value);
  }
  [[nodiscard]] const std::string& text() const noexcept { return out_; }

 private:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    out_ += join("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  void line(std::string_view name, std::string_view labels, double value) {
    const std::string_view open = labels.empty() ? "" : "{", close = labels.empty() ? "" : "}";
    out_ += join(name, open, labels, close, " ", Json(value).dump(), "\n");
  }

  std::string out_;
};

[[nodiscard]] inline double real(std::uint64_t count) noexcept { return static_cast<double>(count); }
[[nodiscard]] inline double ratio(double a, double b) noexcept { return b > 0 ? a / b : 0.0; }
/// A text between quotes.
[[nodiscard]] inline std::string label(std::string_view name, std::string_view value) {
  std::string out = join(name, "=\"");
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

}  // namespace detail

/// The text of /metrics, in the format of Prometheus:
/// https://prometheus.io/docs/instrumenting/exposition_formats
[[nodiscard]] inline std::string metrics_text(const Snapshot& now, const std::vector<ModelCard>& models) {
  using detail::real;
  const Metrics& m = now.metrics;
  const auto running = static_cast<double>(std::count_if(
      now.answers.begin(), now.answers.end(), [](const AnswerState& each) { return each.running; }));
  const double waiting = static_cast<double>(now.answers.size()) - running;
  detail::MetricsText out;
  out.add("requests_total", "Answers that were accepted.", real(m.requests));
  out.add("refused_total", "Other answers, refused, by reason.",
          {{"reason=\"busy\"", real(m.refused_busy)}, {"reason=\"size\"", real(m.refused_size)}});
  out.add("answers_total", "Answers that have ended, by outcome.",
          {{"outcome=\"finished\"", real(m.finished)},
           {"outcome=\"cancelled\"", real(m.cancelled)},
           {"outcome=\"failed\"", real(m.failed)}});
  out.add("answers", "Answers at this moment, by state.",
          {{"state=\"running\"", running}, {"state=\"waiting\"", waiting}});
  out.add("prompt_tokens_total", "Tokens of prompts, cached ones included.", real(m.prompt_tokens));
  out.add("cached_tokens_total", "Tokens of prompts that needed no computation.", real(m.cached_tokens));
  out.add("answer_tokens_total", "Tokens of answers.", real(m.answer_tokens));
  out.add("embedded_texts_total", "Texts that became embeddings or scores.", real(m.embedded_texts));
  out.add("steps_total", "Steps of models.", real(m.steps));
  out.add("model_loads_total", "Models that were loaded.", real(m.loads));
  out.add("model_unloads_total", "Models that were unloaded.", real(m.unloads));
  out.add("sheds_total", "Times that others took the memory, so that answers ended and models were unloaded.",
          real(m.sheds));
  out.add("first_token_seconds", "Seconds from a request to its first token.", m.first_token);
  out.add("between_tokens_seconds", "Seconds between two tokens of an answer.", m.between_tokens);
  out.add("queued_seconds", "Seconds in the queue.", m.queued);
  out.add("budget_bytes", "The memory budget.", real(now.budget_bytes));
  out.add("used_bytes", "Bytes of it in use.", real(now.used_bytes));
  out.add("peak_bytes", "The most bytes that were in use.", real(now.peak_bytes));
  out.add("reserved_bytes", "Bytes that running answers will still need.", real(now.reserved_bytes));
  out.add("prefix_bytes", "Bytes that only the prefix cache has.", real(now.shared_bytes));
  out.add("prefixes", "Nodes of the prefix caches.", static_cast<double>(now.prefixes));
  out.add("disk_read_bytes_total", "Bytes of weights that were read from disk.", real(now.disk_read_bytes));
  std::vector<std::pair<std::string, double>> samples;
  now.accounts.for_each([&](budget::Account account, std::uint64_t bytes) {
    samples.emplace_back(detail::label("account", budget::name(account)), real(bytes));
  });
  out.add("ledger_bytes", "Bytes in use, by account.", samples);
  samples.clear();
  for (const ModelCard& card : models)
    samples.emplace_back(detail::label("model", card.id), card.loaded ? 1.0 : 0.0);
  out.add("model_loaded", "Whether a model is in memory.", samples);

  const double computed = real(m.prompt_tokens - std::min(m.cached_tokens, m.prompt_tokens));
  out.add_llama("prompt_tokens_total", "Tokens of prompts that were computed.", computed);
  out.add_llama("prompt_tokens_cached_total", "Tokens of prompts that needed no computation.",
                real(m.cached_tokens));
  out.add_llama("prompt_seconds_total", "Seconds of reading prompts.", m.prompt_seconds);
  out.add_llama("prompt_tokens_seconds", "Tokens of prompts per second.",
                detail::ratio(computed, m.prompt_seconds));
  out.add_llama("tokens_predicted_total", "Tokens of answers.", real(m.answer_tokens));
  out.add_llama("tokens_predicted_seconds_total", "Seconds of writing answers.", m.answer_seconds);
  out.add_llama("predicted_tokens_seconds", "Tokens of an answer per second.",
                detail::ratio(real(m.answer_tokens), m.answer_seconds));
  out.add_llama("requests_processing", "Answers that are running.", running);
  out.add_llama("requests_deferred", "Answers in the queue.", waiting);
  out.add_llama("n_decode_total", "Steps of models.", real(m.steps));
  return out.text();
}

}  // namespace mica::serve
