// SPDX-License-Identifier: Apache-2.0
//
// Texts and tokens per second that a model embeds, by the length of texts and their number in a call. Each row is
// timed after a check: all texts together have the bits that they have alone.
//
//   embed_bench MODEL.gguf [--tokens 16,128,512] [--texts 1,64] [--threads N] [--seconds 1.5] [--fast8]
#include "mica/base/rng.hpp"
#include "mica/base/token_id.hpp"
#include "mica_tools/embed/text_embedder.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Texts = std::vector<std::vector<mica::TokenId>>;

struct Options {
  std::string model;
  std::vector<std::size_t> tokens = {16, 128, 512};
  std::vector<std::size_t> texts = {1, 64};
  std::size_t threads = 0;
  double seconds = 1.5;
  bool fast8 = false;
};

std::vector<std::size_t> numbers(const std::string& text) {
  std::vector<std::size_t> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    all.push_back(std::strtoul(text.substr(at, end - at).c_str(), nullptr, 10));
    at = end + 1;
  }
  return all;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--fast8") {
      options.fast8 = true;
    } else if (word.starts_with("--") && i + 1 < argc) {
      const std::string value = argv[++i];
      if (word == "--tokens") options.tokens = numbers(value);
      if (word == "--texts") options.texts = numbers(value);
      if (word == "--threads") options.threads = std::strtoul(value.c_str(), nullptr, 10);
      if (word == "--seconds") options.seconds = std::strtod(value.c_str(), nullptr);
    } else {
      options.model = word;
    }
  }
  return options;
}

/// Words of a counter, so that every program can have the same.
Texts make_texts(std::size_t count, std::size_t tokens, std::size_t n_vocab) {
  mica::CounterRng rng(7);
  Texts texts(count, std::vector<mica::TokenId>(tokens));
  for (auto& text : texts) {
    for (mica::TokenId& id : text)
      id = static_cast<mica::TokenId>(rng.uniform() * static_cast<double>(n_vocab));
  }
  return texts;
}

void check(mica::TextEmbedder& embedder, const Texts& texts, const mica::Rows& together) {
  for (std::size_t i = 0; i < texts.size(); i += std::max<std::size_t>(1, texts.size() / 3)) {
    const mica::Rows alone = embedder.embed_tokens(std::span(&texts[i], 1));
    if (std::memcmp(alone.numbers.data(), together[i].data(), alone.numbers.size() * sizeof(float)) == 0)
      continue;
    std::fprintf(stderr, "text %zu has other bits alone than beside others\n", i);
    std::exit(1);
  }
}

void run(const Options& options) {
  mica::OpenOptions open{.threads = options.threads};
  open.choice.fast8 = options.fast8;
  mica::Model model = mica::open_embedder(options.model, open);
  mica::TextEmbedder embedder(model);
  std::printf("| tokens | texts | texts/s | tokens/s |\n|---|---|---|---|\n");
  for (const std::size_t tokens : options.tokens) {
    for (const std::size_t count : options.texts) {
      const Texts texts = make_texts(count, tokens, model.config().n_vocab);
      check(embedder, texts, embedder.embed_tokens(texts));
      std::vector<double> seconds;
      for (const auto start = Clock::now();
           seconds.size() < 3 || Clock::now() - start < std::chrono::duration<double>(options.seconds);) {
        const auto before = Clock::now();
        static_cast<void>(embedder.embed_tokens(texts));
        seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
      }
      std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                       seconds.end());
      const double each = static_cast<double>(count) / seconds[seconds.size() / 2];
      std::printf("| %zu | %zu | %.1f | %.0f |\n", tokens, count, each, each * static_cast<double>(tokens));
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.model.empty()) {
    std::fprintf(stderr,
                 "usage: embed_bench MODEL.gguf [--tokens 16,128,512] [--texts 1,64] [--threads N] "
                 "[--seconds 1.5] [--fast8]\n");
    return 2;
  }
  try {
    run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
