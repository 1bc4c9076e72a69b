// SPDX-License-Identifier: Apache-2.0
//
// Which experts a token uses, and with what weight: from the router's logits to a list of (expert, weight)
// per token, and from there to rows sorted by expert.
//
//   tokens            0: {1, 3}   1: {0, 3}   2: {1, 4}
//   rows by expert    | 0: 1 | 1: 0 2 | 3: 0 1 | 4: 2 |      expert = {0, 1, 3, 4}, begin = {0, 1, 3, 5, 6}
//
// The experts of a token are in ascending order, and their outputs are added in this order. So the result for
// a token does not depend on the experts of other tokens in the step.
#pragma once

#include "mica/kernel/activation.hpp"
#include "mica/kernel/elementwise.hpp"
#include "mica/ranks/division.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace mica::block {

/// How the router's logits become weights.
enum class Routing : std::uint8_t { softmax, sigmoid };

/// A mixture of experts.
struct ExpertsConfig {
  std::size_t count = 0;
  std::size_t used = 0;  // by a token
  std::size_t ff_width = 0;
  Routing routing = Routing::softmax;
  bool normalized = true;           // the weights of the chosen ones are made to sum to 1
  bool weighted_input = false;      // the weight multiplies what goes into an expert, not what comes out
  bool scaled_router = false;       // the router reads RMSNorm(residual) * scale / sqrt(width) (Gemma 4)
  std::size_t shared_ff_width = 0;  // of the expert that every token uses; 0: none
  bool shared_gate = false;         // its output is multiplied by sigmoid(gate . x)
  kernel::Gate gate = kernel::Gate::silu;
  bool bias = false;                   // router and experts have biases (gpt-oss)
  bool post_norm = false;              // the output is normed before it is added
  std::string_view norm = "ffn_norm";  // name of the norm before it
  // Where ranks divide the layer: the hidden numbers of this one, which are then ff_width and
  // shared_ff_width.
  ranks::Part divided = {};         // of each expert; all == 0: they are whole
  ranks::Part shared_divided = {};  // of the expert that every token uses

  /// The hidden numbers of this rank, among all.
  [[nodiscard]] ranks::Part ff_part() const noexcept {
    return divided.all == 0 ? ranks::all_of(ff_width) : divided;
  }
  [[nodiscard]] ranks::Part shared_part() const noexcept {
    return shared_divided.all == 0 ? ranks::all_of(shared_ff_width) : shared_divided;
  }
};

/// One expert that a token uses.
struct Choice {
  std::uint32_t expert = 0;
  float weight = 0;
  std::uint32_t row = 0;  // among the rows sorted by expert
};

/// Logits of one token become probabilities in place: softmax over all experts, or the logistic function of
/// each.
inline void router_scores(Routing routing, std::span<float> logits) noexcept {
  if (routing == Routing::sigmoid) {
    for (float& x : logits) x = kernel::sigmoid(x);
    return;
  }
  float max = logits[0];
  for (const float x : logits) max = x > max ? x : max;
  double sum = 0;
  for (float& x : logits) sum += static_cast<double>(x = kernel::exp(x - max));
  for (float& x : logits) x = static_cast<float>(static_cast<double>(x) / sum);
}

/// Chooses the experts of one token; of equal scores the lower expert. `logits` is used up. scale: (count)
/// factors of the experts' weights, or null. Not-a-number scores choose the first experts and keep a weight
/// that is none.
inline void choose_experts(const ExpertsConfig& experts, std::span<float> logits, const float* scale,
                           std::span<Choice> choices) noexcept {
  router_scores(experts.routing, logits);
  double sum = 0;
  for (Choice& choice : choices) {
    std::size_t best = 0;
    for (std::size_t e = 1; e < logits.size(); ++e) {
      if (logits[e] > logits[best] || logits[best] < 0) best = e;
    }
    choice = {static_cast<std::uint32_t>(best), logits[best]};
    sum += static_cast<double>(logits[best]);
    logits[best] = -1;  // scores are not negative
  }
  for (Choice& choice : choices) {
    if (experts.normalized) choice.weight = static_cast<float>(static_cast<double>(choice.weight) / sum);
    if (scale != nullptr) choice.weight *= scale[choice.expert];
  }
  std::sort(choices.data(), choices.data() + choices.size(),
            [](Choice a, Choice b) { return a.expert < b.expert; });
}

/// One row for each choice of each token, sorted by expert, then by token. Arrays of the caller.
struct ExpertRows {
  std::span<Choice> choices;        // (n * used), by token
  std::span<std::uint32_t> expert;  // (count): those that have rows, in ascending order, then anything
  std::span<std::uint32_t> begin;   // (count + 1): their first rows, then n * used, then anything
  std::span<std::uint32_t> token;   // (n * used), by row
  std::span<float> weight;          // (n * used), by row

  /// Fills all arrays, and the rows of choices. There is at least one choice.
  void sort(std::size_t used) noexcept {
    std::fill(begin.begin(), begin.end(), 0u);
    for (const Choice& choice : choices) ++begin[choice.expert + 1];
    for (std::size_t e = 1; e < begin.size(); ++e) begin[e] += begin[e - 1];
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const std::uint32_t row = begin[choices[i].expert]++;
      choices[i].row = row;
      token[row] = static_cast<std::uint32_t>(i / used);
      weight[row] = choices[i].weight;
    }
    keep_used();
  }

 private:
  /// begin[e]: the row behind those of expert e.
  void keep_used() noexcept {
    std::uint32_t row = 0;
    std::size_t i = 0;
    for (std::size_t e = 0; row < choices.size(); ++e) {
      const std::uint32_t end = begin[e];
      if (end == row) continue;
      expert[i] = static_cast<std::uint32_t>(e);
      begin[i++] = std::exchange(row, end);
    }
    begin[i] = row;
  }
};

}  // namespace mica::block
