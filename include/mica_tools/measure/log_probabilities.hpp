// SPDX-License-Identifier: Apache-2.0
//
// A row of logits as logarithms of probabilities: log softmax, in double, computed on demand; and such a row
// in two bytes per token, as in files of base logits (base_logits.hpp):
//
//   f32 scale | f32 low | u16 code, one a token | one u16 more when their number is odd
//
// The logarithm of a token's probability is low + scale * code. The range reaches from the likeliest token
// down by 16, or to the least likely one; what lies below has code 0.
#pragma once

#include "mica/base/assert.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace mica {

/// A view of a row of logits that knows its normalization. Cost: one pass over the row, an exp for each
/// token. A row with a NaN or an infinity has no finite log_sum().
class LogProbabilities {
 public:
  /// Requires a row that is not empty and outlives this.
  explicit LogProbabilities(std::span<const float> logits) noexcept : logits_(logits) {
    MICA_ASSERT(!logits.empty());
    for (std::size_t i = 1; i < logits.size(); ++i) {
      if (logits[i] > logits[top_]) top_ = i;
    }
    const double max = static_cast<double>(logits[top_]);
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x) - max);
    log_sum_ = max + std::log(sum);
  }

  /// The row itself.
  [[nodiscard]] std::span<const float> logits() const noexcept { return logits_; }
  /// The logarithm of the sum of all e to the power of a logit.
  [[nodiscard]] double log_sum() const noexcept { return log_sum_; }
  /// The most likely token; of several the first.
  [[nodiscard]] std::size_t top() const noexcept { return top_; }
  /// The logarithm of the probability of a token. Requires token < logits().size().
  [[nodiscard]] double operator[](std::size_t token) const noexcept {
    return static_cast<double>(logits_[token]) - log_sum_;
  }

 private:
  std::span<const float> logits_;
  std::size_t top_ = 0;
  double log_sum_ = 0;
};

/// One quantised row. Owns its codes, so that a loop over rows allocates once.
class QuantizedRow {
 public:
  /// The range below the likeliest token: e to the power of -16 is 1e-7.
  static constexpr float reach = 16.0F;

  /// Bytes of a row in a file.
  [[nodiscard]] static constexpr std::size_t bytes_for(std::size_t n_vocab) noexcept {
    return 2 * sizeof(float) + sizeof(std::uint16_t) * (n_vocab + n_vocab % 2);
  }

  /// A row of zeros.
  explicit QuantizedRow(std::size_t n_vocab) : bytes_(bytes_for(n_vocab)), n_vocab_(n_vocab) {}

  /// Takes over a row of logits. Requires finite logits, n_vocab of them.
  void encode(const LogProbabilities& row) noexcept {
    const std::span<const float> logits = row.logits();
    MICA_ASSERT(logits.size() == n_vocab_);
    const float max = logits[row.top()];
    const float min = std::max(*std::min_element(logits.begin(), logits.end()), max - reach);
    const float scale = (max - min) / 65535.0F;
    const float low = static_cast<float>(static_cast<double>(min) - row.log_sum());
    std::memcpy(bytes_.data(), &scale, sizeof scale);
    std::memcpy(bytes_.data() + sizeof scale, &low, sizeof low);
    std::byte* to = bytes_.data() + 2 * sizeof(float);
    const float steps = scale > 0 ? 1.0F / scale : 0.0F;
    for (const float x : logits) {
      const float step = x > min ? std::nearbyint(steps * (x - min)) : 0.0F;
      const auto code = static_cast<std::uint16_t>(std::min(step, 65535.0F));
      std::memcpy(to, &code, sizeof code);
      to += sizeof code;
    }
  }

  /// The row as it stands in a file; reading a row is filling this.
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return bytes_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  [[nodiscard]] std::size_t size() const noexcept { return n_vocab_; }  // tokens
  /// The numbers of the row, as in the drawing above. Requires token < size().
  [[nodiscard]] float scale() const noexcept { return load_float(0); }
  [[nodiscard]] float low() const noexcept { return load_float(sizeof(float)); }
  [[nodiscard]] std::uint16_t code(std::size_t token) const noexcept {
    MICA_ASSERT(token < n_vocab_);
    std::uint16_t code = 0;
    std::memcpy(&code, bytes_.data() + 2 * sizeof(float) + token * sizeof code, sizeof code);
    return code;
  }
  /// The logarithm of a token's probability.
  [[nodiscard]] double operator[](std::size_t token) const noexcept {
    return static_cast<double>(low()) + static_cast<double>(scale()) * code(token);
  }
  /// Whether a row that came from a file can be one: a range that is finite and not upside down.
  [[nodiscard]] bool valid() const noexcept {
    return std::isfinite(scale()) && scale() >= 0 && std::isfinite(low());
  }

 private:
  [[nodiscard]] float load_float(std::size_t at) const noexcept {
    float x = 0;
    std::memcpy(&x, bytes_.data() + at, sizeof x);
    return x;
  }

  std::vector<std::byte> bytes_;
  std::size_t n_vocab_;
};

}  // namespace mica
