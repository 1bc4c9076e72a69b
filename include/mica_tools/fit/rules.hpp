// SPDX-License-Identifier: Apache-2.0
//
// The estimates of other tools: the rules of llmfit (1.1, llmfit-core/src/models.rs and fit.rs) and of a
// calculator for GGUF files, unchanged. They are shown beside a plan and used for nothing else. Their units
// are theirs: "GB" is 1,000,000,000 bytes for weights and 2^30 for keys and values, in one sum.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/fit/quantisation.hpp"

#include <cstddef>
#include <string_view>

namespace mica::fit::rules {

/// Bytes.
inline constexpr double gib = 1024.0 * 1024 * 1024;

/// llmfit's bytes a weight, for memory; 0.58 for a quantisation that it does not know.
[[nodiscard]] constexpr double llmfit_bytes_per_weight(std::string_view quantisation) noexcept {
  constexpr detail::Named known[] = {{"F32", 4.0},     {"F16", 2.0},       {"BF16", 2.0},
                                     {"Q8_0", 1.05},   {"Q6_K", 0.80},     {"Q5_K_M", 0.68},
                                     {"Q4_K_M", 0.58}, {"Q4_0", 0.58},     {"Q3_K_M", 0.48},
                                     {"Q2_K", 0.37},   {"mlx-4bit", 0.55}, {"mlx-8bit", 1.0}};
  return detail::number_of(quantisation, known, 0.58);
}

/// llmfit's keys and values in "GB" where it knows the shape: every layer as if it saw all tokens.
[[nodiscard]] constexpr double llmfit_kv(std::size_t layers, std::size_t kv_heads, std::size_t head_dim,
                                         std::size_t tokens, double bytes_per_element) noexcept {
  return 2.0 * static_cast<double>(layers * kv_heads) * static_cast<double>(head_dim * tokens) *
         bytes_per_element / gib;
}

/// The same where it does not; billions of weights.
[[nodiscard]] constexpr double llmfit_kv_unknown(double billions, std::size_t tokens) noexcept {
  return 0.000008 * billions * static_cast<double>(tokens);
}

/// llmfit's memory in "GB": weights, keys and values, and half a GB for the engine.
[[nodiscard]] constexpr double llmfit_memory(double billions, std::string_view quantisation,
                                             double kv) noexcept {
  return billions * llmfit_bytes_per_weight(quantisation) + kv + 0.5;
}

/// llmfit's tokens a second on a card: GB a second by GB of weights that a token uses, counted with other
/// bytes a weight than memory, of which 55 % are reached.
[[nodiscard]] constexpr double llmfit_decode_on_card(double gb_per_second, double active_billions,
                                                     double bytes_per_weight,
                                                     double mode_factor = 1) noexcept {
  return gb_per_second / (active_billions * bytes_per_weight) * 0.55 * mode_factor;
}

/// Those bytes a weight; 0.5 for a quantisation that it does not know.
[[nodiscard]] constexpr double llmfit_speed_bytes_per_weight(std::string_view quantisation) noexcept {
  constexpr detail::Named known[] = {{"F16", 2.0},      {"BF16", 2.0},   {"Q8_0", 1.0},     {"Q6_K", 0.75},
                                     {"Q5_K_M", 0.625}, {"Q4_K_M", 0.5}, {"Q3_K_M", 0.375}, {"Q2_K", 0.25}};
  return detail::number_of(quantisation, known, 0.5);
}

/// llmfit's tokens a second without a card, for x86: a constant by billions of weights, whatever the memory's
/// rate is.
[[nodiscard]] constexpr double llmfit_decode_on_cpu(double billions, std::string_view quantisation,
                                                    std::size_t cores) noexcept {
  constexpr detail::Named known[] = {{"F16", 0.6},    {"BF16", 0.6},    {"Q8_0", 0.8},    {"Q6_K", 0.95},
                                     {"Q5_K_M", 1.0}, {"Q4_K_M", 1.15}, {"Q3_K_M", 1.25}, {"Q2_K", 1.35}};
  const double factor = detail::number_of(quantisation, known, 1);
  return 70 / billions * factor * (cores >= 8 ? 1.1 : 1.0) * 0.3;
}

/// The calculator's question. Bytes are decimal, MB are 1,000,000 of them.
struct Calculator {
  double file_mb = 0;        // of the GGUF file
  double billions = 0;       // of weights
  std::size_t layers = 0;    // block_count
  std::size_t width = 0;     // embedding_length
  std::size_t tokens = 0;    // of context
  double kv_pair_bytes = 4;  // of a key and a value: FP16

  /// Keys and values as if every query head had its own: too many by heads / kv_heads.
  [[nodiscard]] constexpr double kv_mb() const noexcept {
    return kv_pair_bytes * static_cast<double>(width * layers) * static_cast<double>(tokens) / 1e6;
  }
  /// Of its engine: 0.02 GB for a billion weights, and 0.15 GB.
  [[nodiscard]] constexpr double overhead_mb() const noexcept { return 20 * billions + 150; }
  /// Of file, keys and values, and engine.
  [[nodiscard]] constexpr double total_mb() const noexcept { return file_mb + kv_mb() + overhead_mb(); }
};

/// The correct bytes of keys and values, for layers that all see every token.
[[nodiscard]] constexpr double kv_mb(std::size_t layers, std::size_t kv_heads, std::size_t head_dim,
                                     std::size_t tokens, double kv_pair_bytes) noexcept {
  return kv_pair_bytes * static_cast<double>(layers * kv_heads) * static_cast<double>(head_dim * tokens) /
         1e6;
}

}  // namespace mica::fit::rules
