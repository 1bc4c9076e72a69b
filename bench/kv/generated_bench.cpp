// SPDX-License-Identifier: Apache-2.0
//
// usage: generated_bench MODEL.gguf -f TEXT [--texts 4] [--prompt 256] [--tokens 384] [--step 1]
//                        [--pairs F16,Q8_0/Q4_0,KVARN4@32,...] [--json FILE]
//
// What elements of keys and values do to a text that the model itself wrote: errors of old keys and values
// then add up in decode, where a text of others would lead the model back. Each of equal parts of TEXT begins
// with a prompt. With keys and values in F16 the model goes on, by turns with the most likely token and with
// temperature 0.8. Every element then reads the same tokens, and each row of logits is compared with that of
// F16: the KL divergence, its mean and its 99 % and 99.9 % quantiles, and how often the most likely token is
// the same.
//
// A pair is the element of keys and that of values; one name is both. KVARN4@32 keeps the last 32 tokens in
// F16; without @, at most 16. Bits are those of a number of an old token. --step is the number of tokens that
// are read at a time; it changes no bit, and more are quicker.

#include "mica/base/rng.hpp"
#include "mica/runtime/open.hpp"
#include "mica/runtime/session.hpp"
#include "mica_tools/measure/divergence.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace mica;  // NOLINT: a program

struct Options {
  std::string model, text, json;
  std::string pairs = "F16,Q8_0,Q6_0,Q5_1,Q5_0,Q4_0,Q4_S,KIVI4,KVARN4,KVARN4/KVARN3,KVARN3,KIVI2";
  std::size_t texts = 4, prompt = 256, tokens = 384, step = 1;
};

/// An element of keys and one of values, and the recent tokens.
struct Pair {
  std::string name;
  kv::ElementChoice keys, values;
  std::size_t recent = 1;

  explicit Pair(std::string text) : name(std::move(text)) {
    const std::string names = name.substr(0, name.find('@'));
    const std::size_t slash = names.find('/');
    if (names.size() < name.size()) recent = std::strtoul(name.c_str() + names.size() + 1, nullptr, 10);
    keys = kv::parse_elements(names.substr(0, slash), "keys");
    values = slash == names.npos ? keys : kv::parse_elements(names.substr(slash + 1), "values");
  }
  /// Bits of a number of keys or of values of an old token.
  template <bool is_key>
  [[nodiscard]] double bits(std::size_t head_dim) const {
    double bytes = 0;
    kv::detail::visit_part<is_key>(kv::AnyElements<>(keys, values, recent).old(), [&](auto type) {
      using E = typename decltype(type)::type;
      bytes = static_cast<double>(is_key ? E::key_tile_bytes(head_dim) : E::value_tile_bytes(head_dim));
    });
    return 8 * bytes / static_cast<double>(format::tile_tokens * head_dim);
  }
};

[[nodiscard]] Model open_with(const Options& options, const Pair& pair) {
  OpenOptions with;
  with.n_ctx = options.prompt + options.tokens + 1;
  with.chunk = 128;
  with.logits_rows = 16;
  with.choice.cache_type_k = pair.keys;
  with.choice.cache_type_v = pair.values;
  with.choice.cache_recent = pair.recent;
  return open(options.model, with);
}

/// The next token: the most likely one, or one by its probability at this temperature.
[[nodiscard]] TokenId next_token(std::span<const float> logits, double temperature, CounterRng& rng) {
  const auto top = static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (temperature == 0) return static_cast<TokenId>(top);
  const auto weight = [&](float x) { return std::exp(static_cast<double>(x - logits[top]) / temperature); };
  double sum = 0;
  for (const float x : logits) sum += weight(x);
  double left = sum * rng.uniform();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    left -= weight(logits[i]);
    if (left < 0) return static_cast<TokenId>(i);
  }
  return static_cast<TokenId>(top);
}

/// Feeds ids from `first` on, `step` at a time, and calls on_row(logits, position) after each.
template <class OnRow>
void read(Session<AnyModel>& session, std::span<const TokenId> ids, std::size_t first, std::size_t step,
          OnRow&& on_row) {
  MICA_CHECK(session.feed(ids.first(first)) == model::StepStatus::ok, failed, "the prompt was not read");
  step = std::min({step, session.model().chunk(), session.model().logits_rows()});
  std::vector<std::size_t> positions;
  for (std::size_t at = first; at < ids.size(); at += step) {
    const std::size_t count = std::min(step, ids.size() - at);
    MICA_CHECK(session.feed(ids.subspan(at, count)) == model::StepStatus::ok, failed, "a step failed");
    positions.clear();
    for (std::size_t i = 0; i < count; ++i) positions.push_back(at + i);
    const auto rows = session.logits(positions);
    for (std::size_t i = 0; i < count; ++i) on_row(rows[i], at + i);
  }
}

/// A prompt and what the model wrote after it, and its rows of logits.
struct Text {
  std::vector<TokenId> ids;
  std::vector<QuantizedRow> rows;  // after each of the tokens that it wrote
};

[[nodiscard]] Text write_text(const Options& options, Model& model, std::string_view beginning,
                              std::size_t number) {
  Text out;
  out.ids = model.tokenizer().encode(beginning, {.add_special = true, .parse_special = false});
  MICA_CHECK(out.ids.size() >= options.prompt, usage, "the text is too short for its prompts");
  out.ids.resize(options.prompt);
  CounterRng rng(number);
  auto session = model.session();
  MICA_CHECK(session.feed(out.ids) == model::StepStatus::ok, failed, "the prompt was not read");
  for (std::size_t i = 0; i < options.tokens; ++i) {
    out.ids.push_back(next_token(session.logits(), number % 2 == 0 ? 0 : 0.8, rng));
    MICA_CHECK(session.feed(std::span(out.ids).last(1)) == model::StepStatus::ok, failed, "a step failed");
    out.rows.emplace_back(model.config().n_vocab);
    out.rows.back().encode(LogProbabilities(session.logits()));
  }
  return out;
}

/// The texts; their rows take two bytes for each token of the vocabulary.
[[nodiscard]] std::vector<Text> write_texts(const Options& options, std::string_view text) {
  Model model = open_with(options, Pair("F16"));
  std::vector<Text> out;
  for (std::size_t t = 0; t < options.texts; ++t) {
    const std::size_t begin = text.find('\n', text.size() / options.texts * t) + 1;
    out.push_back(write_text(options, model, text.substr(begin, 16 * options.prompt), t));
  }
  return out;
}

[[nodiscard]] std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

[[nodiscard]] std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

/// Rows of one pair: of all texts, of those of the most likely tokens, and of the others.
struct Rows {
  Divergence of[3];

  void add(std::size_t text, const LogProbabilities& row, const QuantizedRow& base, TokenId next) {
    of[0].add(row, base, next);
    of[1 + text % 2].add(row, base, next);
  }
};

[[nodiscard]] std::string cell(const Divergence& d) {
  char out[80];
  std::snprintf(out, sizeof out, " %.5f | %.4f | %.4f |", d.kl().value, d.kl_values().at(0.99),
                d.kl_values().at(0.999));
  return out;
}

void print(const Pair& pair, const Rows& rows, std::size_t head_dim, std::FILE* json, bool last) {
  const double keys = pair.bits<true>(head_dim), values = pair.bits<false>(head_dim);
  std::printf("| %s | %.3f |%s%s%s %.2f |\n", pair.name.c_str(), (keys + values) / 2,
              cell(rows.of[0]).c_str(), cell(rows.of[1]).c_str(), cell(rows.of[2]).c_str(),
              100 * rows.of[0].same_top().value);
  if (json == nullptr) return;
  std::fprintf(json, "  {\"pair\": \"%s\", \"recent\": %zu, \"bits_keys\": %.4f, \"bits_values\": %.4f",
               pair.name.c_str(), pair.recent, keys, values);
  const char* const names[] = {"all", "likeliest", "temperature_0.8"};
  for (std::size_t i = 0; i < 3; ++i) {
    const Divergence& d = rows.of[i];
    std::fprintf(
        json, ", \"%s\": {\"rows\": %zu, \"kl\": %.6f, \"kl_se\": %.6f, \"kl_99\": %.6f, \"kl_99.9\": %.6f}",
        names[i], d.count(), d.kl().value, d.kl().error, d.kl_values().at(0.99), d.kl_values().at(0.999));
  }
  std::fprintf(json, ", \"same_top\": %.5f}%s\n", rows.of[0].same_top().value, last ? "" : ",");
}

void run(const Options& options) {
  std::ifstream in(options.text);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  MICA_CHECK(!text.empty(), usage, "no text; give -f FILE");
  std::vector<Pair> pairs;
  for (const std::string& name : split(options.pairs)) pairs.emplace_back(name);
  std::vector<Rows> rows(pairs.size());
  std::size_t head_dim = 0;
  const std::vector<Text> texts = write_texts(options, text);
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    Model model = open_with(options, pairs[p]);
    head_dim = model.config().layers.front().get<block::Attention>().head_dim;
    for (std::size_t t = 0; t < texts.size(); ++t) {
      const Text& base = texts[t];
      auto session = model.session();
      read(session, base.ids, options.prompt, options.step,
           [&](std::span<const float> logits, std::size_t at) {
             const TokenId next = at + 1 < base.ids.size() ? base.ids[at + 1] : base.ids[at];
             rows[p].add(t, LogProbabilities(logits), base.rows[at - options.prompt], next);
           });
    }
    std::fprintf(stderr, "%zu of %zu: %s\n", p + 1, pairs.size(), pairs[p].name.c_str());
  }
  std::FILE* const json = options.json.empty() ? nullptr : std::fopen(options.json.c_str(), "w");
  if (json != nullptr) {
    std::fprintf(
        json,
        "{\"command\": \"generated_bench %s -f TEXT --texts %zu --prompt %zu --tokens %zu --step %zu --pairs "
        "%s\", \"text\": \"%s\", \"results\": [\n",
        file_name(options.model).c_str(), options.texts, options.prompt, options.tokens, options.step,
        options.pairs.c_str(), file_name(options.text).c_str());
  }
  std::printf(
      "| keys and values | bits | KL | 99 %% | 99.9 %% | KL, likeliest | 99 %% | 99.9 %% | KL, 0.8 | 99 %% | "
      "99.9 %% | same, %% |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (std::size_t p = 0; p < pairs.size(); ++p)
    print(pairs[p], rows[p], head_dim, json, p + 1 == pairs.size());
  if (json != nullptr) {
    std::fprintf(json, "]}\n");
    std::fclose(json);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    const auto number = [&] { return std::strtoul(value(), nullptr, 10); };
    if (word == "-f")
      options.text = value();
    else if (word == "--texts")
      options.texts = number();
    else if (word == "--prompt")
      options.prompt = number();
    else if (word == "--tokens")
      options.tokens = number();
    else if (word == "--step")
      options.step = number();
    else if (word == "--pairs")
      options.pairs = value();
    else if (word == "--json")
      options.json = value();
    else
      options.model = word;
  }
  run(options);
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
