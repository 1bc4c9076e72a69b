// SPDX-License-Identifier: Apache-2.0
//
// usage: sampler_bench [--json FILE]
//
// One thread: microseconds from a row of logits to a token, vocabularies of 128,256 and 262,144, for the
// usual settings and for each other stage, the check for finite numbers among them. DRY searches a text of
// 8,192 tokens that repeats itself. Before it is timed, what top-k, typical, top-n-sigma and XTC keep is
// compared with a sort of everything, and the longest repetition of DRY with a search of all pairs. Best and
// median of half a second.

#include "kernel/measure.hpp"
#include "mica/base/finite.hpp"
#include "mica/base/rng.hpp"
#include "mica/sample/standard.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace mica;  // NOLINT: a program

/// Logits as a head makes them: near normal, forty far above.
std::vector<float> make_logits(std::size_t vocab) {
  CounterRng rng(1);
  std::vector<float> logits(vocab);
  for (float& x : logits) {
    double sum = 0;
    for (int i = 0; i < 6; ++i) sum += rng.uniform() - 0.5;
    x = static_cast<float>(3.0 * sum);
  }
  for (int i = 0; i < 40; ++i) logits[rng.next() % vocab] += 16.0f;
  return logits;
}

void check_best(std::span<const float> logits, std::size_t k) {
  std::vector<sample::Candidate> all(logits.size()), best(logits.size());
  sample::Candidates sorted(all), kept(best);
  const bool filled = sorted.fill(logits) && kept.fill_best(logits, k);
  std::sort(sorted.span().begin(), sorted.span().end(), sample::better);
  const auto same = [](const auto& a, const auto& b) { return a.id == b.id && a.logit == b.logit; };
  if (filled && std::equal(kept.span().begin(), kept.span().end(), sorted.span().begin(), same)) return;
  std::fprintf(stderr, "the best %zu are not the best\n", k);
  std::exit(1);
}

/// The probabilities of a row, by id.
std::vector<double> probabilities(std::span<const float> logits) {
  const auto max = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> p;
  for (const float x : logits) p.push_back(std::exp(static_cast<double>(x) - max));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& each : p) each /= sum;
  return p;
}

/// Stops unless a stage keeps exactly the tokens for which `keeps` holds.
template <class Stage, class Keeps>
void check_kept(const char* name, std::span<const float> logits, Stage stage, Keeps&& keeps) {
  std::vector<sample::Candidate> storage(logits.size());
  sample::Candidates candidates(storage);
  bool good = candidates.fill(logits);
  stage.apply(candidates);
  std::size_t expected = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) expected += keeps(id) ? 1 : 0;
  for (const sample::Candidate& each : candidates.span()) good = good && keeps(each.id);
  if (good && candidates.size() == expected && expected < logits.size()) return;
  std::fprintf(stderr, "%s keeps %zu tokens, and not the %zu of its definition\n", name, candidates.size(),
               expected);
  std::exit(1);
}

void check_stages(std::span<const float> logits) {
  const std::vector<double> p = probabilities(logits);
  const auto n = static_cast<double>(logits.size());
  const double best = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double mean = 0, variance = 0, entropy = 0;
  for (const float x : logits) mean += static_cast<double>(x) / n;
  for (const float x : logits)
    variance += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean) / n;
  for (const double each : p) entropy -= each > 0 ? each * std::log(each) : 0;
  check_kept("top-n-sigma", logits, sample::TopNSigma(3.0f), [&](std::size_t id) {
    return static_cast<double>(logits[id]) >= best - 3.0 * std::sqrt(variance);
  });
  const auto distance = [&](std::size_t id) { return std::abs(-std::log(p[id]) - entropy); };
  std::vector<std::size_t> ids(p.size());
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  std::sort(ids.begin(), ids.end(), [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
  double sum = 0, last = 0;
  for (std::size_t i = 0; sum < 0.5; ++i) sum += p[ids[i]], last = distance(ids[i]);
  check_kept("typical", logits, sample::Typical(0.5f), [&](std::size_t id) { return distance(id) <= last; });
  double least = 1;
  for (const double each : p) least = each >= 0.02 ? std::min(least, each) : least;
  check_kept("xtc", logits, sample::Xtc(1.0f, 0.02f, CounterRng()),
             [&](std::size_t id) { return p[id] <= least; });
}

constexpr std::size_t text_tokens = 8192;

/// A text of sentences, of which some come again.
std::vector<TokenId> make_text() {
  CounterRng rng(2);
  std::vector<TokenId> text;
  while (text.size() < text_tokens + 10) {
    const std::uint64_t sentence = rng.next() % 200;
    for (std::uint64_t i = 0; i < 10; ++i)
      text.push_back(static_cast<TokenId>((sentence * 31 + i * 7) % 3000));
  }
  text.resize(text_tokens + 6);  // ends with eight tokens of a sentence
  text.erase(text.begin(), text.begin() + 6);
  return text;
}

sample::DryOptions dry_options() {
  return {.multiplier = 0.8f, .last_n = text_tokens, .breakers = {{3000}, {1, 3001}}};
}

/// The largest change of a logit against that of the longest repetition among all pairs of positions.
void check_dry(const std::vector<TokenId>& text) {
  std::size_t longest = 0;
  for (std::size_t end = 1; end < text.size(); ++end) {
    std::size_t length = 0;
    while (length < end && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
    longest = std::max(longest, length);
  }
  std::vector<sample::Candidate> storage(3000);
  sample::Candidates candidates(storage);
  sample::Dry<> dry(dry_options());
  for (const TokenId token : text) dry.accept(token);
  const bool filled = candidates.fill(std::vector<float>(3000, 0.0f));
  dry.apply(candidates);
  float lowest = 0;
  for (const sample::Candidate& each : candidates.span()) lowest = std::min(lowest, each.logit);
  const double expected = -0.8f * std::pow(1.75, static_cast<double>(longest) - 2.0);
  if (filled && longest > 2 && std::abs(static_cast<double>(lowest) / expected - 1) < 1e-5) return;
  std::fprintf(stderr, "dry: %g for a repetition of %zu tokens\n", static_cast<double>(lowest), longest);
  std::exit(1);
}

struct Setting {
  const char* name;
  sample::SamplerOptions options;
};

/// A draw from the whole vocabulary and one more option.
template <class T>
sample::SamplerOptions with(T sample::SamplerOptions::*option, T value) {
  sample::SamplerOptions o{.top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
  o.*option = std::move(value);
  return o;
}

sample::SamplerOptions options(float temperature, std::int64_t top_k, float top_p, float min_p) {
  sample::SamplerOptions o;
  o.temperature = temperature;
  o.top_k = top_k;
  o.top_p = top_p;
  o.min_p = min_p;
  return o;
}

void measure(std::size_t vocab, std::FILE* json) {
  const std::vector<float> logits = make_logits(vocab);
  const std::vector<TokenId> text = make_text();
  for (const std::size_t k : {std::size_t{1}, std::size_t{40}, std::size_t{1000}}) check_best(logits, k);
  check_stages(logits);
  check_dry(text);
  sample::SamplerOptions xtc = with(&sample::SamplerOptions::xtc_probability, 1.0f);
  xtc.xtc_threshold = 0.02f;
  std::vector<sample::TokenBias> biases;
  for (TokenId id = 0; id < 10; ++id) biases.push_back({id * 1000, -2.0f});
  const Setting settings[] = {{"greedy", options(0.0f, 0, 1.0f, 0.0f)},
                              {"top-k 40, top-p 0.95", options(0.8f, 40, 0.95f, 0.0f)},
                              {"top-p 0.95", options(0.8f, 0, 0.95f, 0.0f)},
                              {"min-p 0.05", options(0.8f, 0, 1.0f, 0.05f)},
                              {"draw from all", options(0.8f, 0, 1.0f, 0.0f)},
                              {"top-n-sigma 3", with(&sample::SamplerOptions::top_n_sigma, 3.0f)},
                              {"typical 0.95", with(&sample::SamplerOptions::typical, 0.95f)},
                              {"xtc 1, 0.02", xtc},
                              {"dynatemp 0.5", with(&sample::SamplerOptions::dynatemp_range, 0.5f)},
                              {"mirostat 1", with(&sample::SamplerOptions::mirostat, 1)},
                              {"mirostat 2", with(&sample::SamplerOptions::mirostat, 2)},
                              {"dry, 8192 tokens", with(&sample::SamplerOptions::dry, dry_options())},
                              {"bias of 10 tokens", with(&sample::SamplerOptions::logit_bias, biases)}};
  for (const Setting& setting : settings) {
    sample::Standard<> sampler(setting.options, vocab);
    for (const TokenId token : text) sampler.accept(token);
    const auto t = bench::time([&] {
      if (!all_finite(logits) || !sampler.sample(logits)) std::exit(1);
    });
    std::printf("%7zu  %-21s %8.1f %8.1f us\n", vocab, setting.name, t.best * 1e6, t.median * 1e6);
    if (json == nullptr) continue;
    std::fprintf(json,
                 "{\"vocabulary\": %zu, \"sampler\": \"%s\", \"unit\": \"us\", \"best\": %.1f, \"median\": "
                 "%.1f}\n",
                 vocab, setting.name, t.best * 1e6, t.median * 1e6);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* json = nullptr;
  if (argc == 3 && std::string_view(argv[1]) == "--json") json = std::fopen(argv[2], "w");
  if (argc != 1 && json == nullptr) {
    std::fprintf(stderr, "usage: sampler_bench [--json FILE that can be written]\n");
    return 2;
  }
  for (const std::size_t vocab : {std::size_t{128256}, std::size_t{262144}}) measure(vocab, json);
  if (json != nullptr) std::fclose(json);
}
