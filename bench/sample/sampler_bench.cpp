// SPDX-License-Identifier: Apache-2.0
//
// usage: sampler_bench [--json FILE]
//
// One thread: microseconds from a row of logits to a token, vocabularies of 128,256 and 262,144, for the
// usual settings, the check for finite numbers among them. Before it is timed, what top-k keeps is compared
// with a sort of everything. Best and median of half a second.

#include "kernel/measure.hpp"
#include "mica/base/finite.hpp"
#include "mica/base/rng.hpp"
#include "mica/sample/standard.hpp"

#include <algorithm>
#include <string_view>
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

struct Setting {
  const char* name;
  sample::SamplerOptions options;
};

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
  for (const std::size_t k : {std::size_t{1}, std::size_t{40}, std::size_t{1000}}) check_best(logits, k);
  const Setting settings[] = {{"greedy", options(0.0f, 0, 1.0f, 0.0f)},
                              {"top-k 40, top-p 0.95", options(0.8f, 40, 0.95f, 0.0f)},
                              {"top-p 0.95", options(0.8f, 0, 0.95f, 0.0f)},
                              {"min-p 0.05", options(0.8f, 0, 1.0f, 0.05f)}};
  for (const Setting& setting : settings) {
    sample::Standard<> sampler(setting.options, vocab);
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
