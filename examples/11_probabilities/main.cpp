// SPDX-License-Identifier: Apache-2.0
//
// Lesson 11: the probability of each token of an answer, and of the tokens that it was chosen from.
//
//   11_probabilities [MODEL.gguf]
//
// The numbers are those of the model, before the sampler changes anything. They say how certain a model is of
// its words; exp(- the mean of the logarithms) is the perplexity of the text.

#include "mica/runtime/complete.hpp"

#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

namespace {

/// A token as one word of a line.
std::string shown(const mica::Model& model, mica::TokenId id) {
  std::string text = model.tokenizer().piece(id, true);
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return "'" + text + "'";
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a model\n", path.c_str()), 0;
  auto model = mica::open(path, {.n_ctx = 128});
  double sum = 0;
  mica::GenerateOptions options{.max_tokens = 16, .top_tokens = 3};
  options.on_token = [&](const mica::TokenScores& scores) {
    sum += scores.token.log_probability;
    std::printf("%-12s %6.2f %% of", shown(model, scores.token.id).c_str(),
                100 * std::exp(scores.token.log_probability));
    for (const auto& [id, log_probability] : scores.top)
      std::printf("  %s %.2f %%", shown(model, id).c_str(), 100 * std::exp(log_probability));
    std::printf("\n");
  };
  mica::sample::Standard<> sampler({.temperature = 0.8f, .seed = 2}, model.config().n_vocab);
  const auto answer = mica::complete(model, "Once upon a time", sampler, options, [](auto) { return true; });
  std::printf("perplexity %.2f\n", std::exp(-sum / static_cast<double>(answer.tokens.size())));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
