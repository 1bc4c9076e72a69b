// SPDX-License-Identifier: Apache-2.0
//
// Lesson 9 (09_own_block [MODEL.gguf]): a block that the library does not have, and a family that puts it
// into the layers of a Llama. The block is one file, moving_average.hpp; the family below names it. Without
// strength the block changes no bit of the answer; with some it does, and the answer does not depend on how
// many tokens are read at a time.

#include "mica/arch/llama.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/transformer.hpp"
#include "moving_average.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <vector>

/// A Llama whose layers end with a moving average, its strength in hundredths.
template <int Strength>
struct Averaging {
  // Required by Arch
  static constexpr std::string_view name = "llama";
  using Blocks = mica::TypeList<mica::block::Attention, mica::block::DenseFeedForward, MovingAverage>;

  static mica::arch::Config config(const mica::gguf::Document& document) {
    mica::arch::Config config = mica::arch::Llama::config(document);
    for (mica::arch::Layer& layer : config.layers) {
      layer.add<MovingAverage>({.width = config.width, .strength = 0.01f * Strength});
    }
    return config;
  }
};
static_assert(mica::Arch<Averaging<0>>);

/// The logits after 40 tokens, read in chunks.
template <class Family>
std::vector<float> logits_of(const mica::gguf::Document& document, std::size_t chunk) {
  mica::exec::Inline executor;
  mica::Transformer<Family> model(document, executor, {.n_ctx = 64, .chunk = chunk});
  auto cache = model.make_cache();
  std::vector<mica::text::TokenId> ids;
  for (mica::text::TokenId i = 0; i < 40; ++i) ids.push_back(3 + i * 37 % 250);
  for (std::span<const mica::text::TokenId> rest = ids; !rest.empty(); rest = rest.subspan(chunk)) {
    if (model.step(cache, rest.first(chunk)) != mica::model::StepStatus::ok) std::abort();
  }
  const std::size_t last = chunk - 1;
  const auto row = model.logits({&last, 1})[0];
  return {row.begin(), row.end()};
}

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a Llama file\n", path), 0;
  const auto document = mica::gguf::open(path);
  const auto plain = logits_of<mica::arch::Llama>(document, 8);
  const bool same = plain == logits_of<Averaging<0>>(document, 8);
  const auto averaging = logits_of<Averaging<5>>(document, 8);
  const bool steady = averaging == logits_of<Averaging<5>>(document, 1);
  double change = 0, all = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    change += std::pow(static_cast<double>(averaging[i] - plain[i]), 2);
    all += std::pow(static_cast<double>(plain[i]), 2);
  }
  std::printf(
      "without strength: %s; 8 tokens at a time, or 1: %s; with strength the logits move by %.3f of their "
      "size\n",
      same ? "the same logits" : "OTHER LOGITS", steady ? "the same" : "OTHERS", std::sqrt(change / all));
  return same && steady && change > 0 ? 0 : 1;
}
