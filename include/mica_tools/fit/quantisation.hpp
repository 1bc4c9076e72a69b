// SPDX-License-Identifier: Apache-2.0
//
// The quantisations of weights, the best first, and the loss of quality of each.
#pragma once

#include "mica_tools/quantize/recipe.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::fit {

namespace detail {

/// A name and its number.
struct Named {
  std::string_view name;
  double number;
};

/// The number of that name, or `otherwise`.
[[nodiscard]] constexpr double number_of(std::string_view name, std::span<const Named> table,
                                         double otherwise) noexcept {
  for (const Named& each : table) {
    if (each.name == name) return each.number;
  }
  return otherwise;
}

}  // namespace detail

/// One quantisation of a model's weights.
struct Quantisation {
  std::string name;                             // "Q4_K_M", "mlx-4bit"
  std::optional<quantize::Recipe> recipe = {};  // of GGUF files
  double bits = 0;     // per weight, for formats other than GGUF; 0: that of the recipe
  double penalty = 0;  // of 100 points of quality, in llmfit's score
  double worth = 1;    // the fraction of its weights that a model with the same quality would have in F16
};

/// MLX keeps a scale and a bias of 16 bits each for 64 weights: half a bit more for each.
inline constexpr double mlx_group_bits = 2 * 16.0 / 64;

/// Points of quality that a recipe costs; by its bits a weight where llmfit has no number for it.
[[nodiscard]] constexpr double penalty_of(std::string_view name, double bits) noexcept {
  constexpr detail::Named known[] = {{"Q8_0", 0}, {"Q6_K", 1},   {"Q5_K_M", 2},   {"Q4_K_M", 5},
                                     {"Q4_0", 5}, {"Q3_K_M", 8}, {"Q2_K", 12},    {"F16", 0},
                                     {"BF16", 0}, {"F32", 0},    {"mlx-8bit", 0}, {"mlx-4bit", 4}};
  const double unknown = bits >= 8     ? 0
                         : bits >= 6   ? 1
                         : bits >= 5   ? 2
                         : bits >= 4.2 ? 5
                         : bits >= 3.2 ? 8
                                       : 12;
  return detail::number_of(name, known, unknown);
}

/// The worth of a quantisation; from its bits per weight for names that are not in the table. llama.cpp's
/// page on its perplexity tool has the perplexity of Llama 3 8B in each (6.2332 in F16), and that of Llama 2
/// 7B and 70B (5.7985, 3.4313): its logarithm falls by 0.156 if the weights double. So the worth is
/// 2^(-ln(perplexity / 6.2332) / 0.156). mlx-4bit has the worth of Q4_1, whose scales have as
/// many bits.
[[nodiscard]] constexpr double worth_of(std::string_view name, double bits) noexcept {
  constexpr detail::Named known[] = {{"Q8_0", 1.0},    {"Q6_K", 0.98},    {"Q5_K_M", 0.96},  {"Q5_K_S", 0.93},
                                     {"Q5_1", 0.93},   {"Q5_0", 0.91},    {"Q4_K_M", 0.88},  {"Q4_K_S", 0.83},
                                     {"Q4_1", 0.73},   {"Q4_0", 0.73},    {"Q3_K_L", 0.68},  {"Q3_K_M", 0.64},
                                     {"Q3_K_S", 0.36}, {"Q2_K", 0.14},    {"F16", 1.0},      {"BF16", 1.0},
                                     {"F32", 1.0},     {"mlx-8bit", 1.0}, {"mlx-4bit", 0.73}};
  const double unknown = bits >= 8     ? 1
                         : bits >= 6   ? 0.98
                         : bits >= 5   ? 0.93
                         : bits >= 4.2 ? 0.83
                         : bits >= 3.4 ? 0.64
                         : bits >= 3   ? 0.36
                                       : 0.14;
  return detail::number_of(name, known, unknown);
}

/// Of GGUF files: Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q3_K_M, Q2_K.
[[nodiscard]] inline std::vector<Quantisation> gguf_quantisations() {
  using R = quantize::Recipe;
  std::vector<Quantisation> ladder;
  for (const R recipe : {R::Q8_0, R::Q6_K, R::Q5_K_M, R::Q4_K_M, R::Q3_K_M, R::Q2_K}) {
    const std::string_view name = quantize::info(recipe).name;
    ladder.push_back({std::string(name), recipe, 0, penalty_of(name, 0), worth_of(name, 0)});
  }
  return ladder;
}

/// Of MLX, for machines whose processors share their memory: eight bits, four bits.
[[nodiscard]] inline std::vector<Quantisation> mlx_quantisations() {
  std::vector<Quantisation> ladder;
  for (const auto& [name, bits] : {std::pair("mlx-8bit", 8.0), std::pair("mlx-4bit", 4.0)}) {
    ladder.push_back({name, std::nullopt, bits + mlx_group_bits, penalty_of(name, 0), worth_of(name, 0)});
  }
  return ladder;
}

}  // namespace mica::fit
