// SPDX-License-Identifier: Apache-2.0
//
// Penalties for repetition: logits of tokens among the last n of the text are reduced, in the three ways of
// llama.cpp.
//
//   c = how often the token is among the last n; if c > 0:
//   logit > 0: logit / repeat    logit <= 0: logit * repeat    then: logit - c * frequency - presence
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/base/error.hpp"
#include "mica/sample/concept.hpp"
#include "mica/sample/detail/range.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace mica::sample {

/// The penalties; these values change nothing.
struct PenaltyOptions {
  std::int64_t last_n = 64;  ///< tokens that count; 0: none
  float repeat = 1.0f;       ///< a factor on the logit
  float frequency = 0.0f;    ///< off the logit, per occurrence
  float presence = 0.0f;     ///< off the logit, once
};

/// Penalises candidates that are among the last n tokens accepted. Holds 8 n bytes of A, taken once.
template <Allocator A = alloc::Aligned>
class Penalties {
 public:
  static constexpr std::int64_t max_last_n = std::int64_t{1} << 20;

  /// Raises for options out of range (usage) and when A refuses (budget).
  explicit Penalties(const PenaltyOptions& options, A allocator = A{})
      : repeat_(detail::in_range("repeat-penalty", options.repeat, 1e-3f, 1e3f)),
        frequency_(detail::in_range("frequency-penalty", options.frequency, -1e3f, 1e3f)),
        presence_(detail::in_range("presence-penalty", options.presence, -1e3f, 1e3f)),
        recent_(take(allocator, options.last_n)),
        ordered_(take(allocator, options.last_n)) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (!active() || count_ == 0) return;
    const auto tokens = ordered_.span().first(count_);
    std::copy_n(recent_.data(), count_, tokens.begin());
    std::sort(tokens.begin(), tokens.end());
    const auto all = candidates.span();
    if (candidates.by_id()) {  // a visit to the tokens of the text, not to the whole vocabulary
      for (std::size_t i = 0, end = 0; i < count_; i = end) {
        while (end < count_ && tokens[end] == tokens[i]) ++end;
        if (tokens[i] < all.size()) penalise(all[tokens[i]], end - i);
      }
    } else {
      for (Candidate& candidate : all) {
        const auto [first, last] = std::equal_range(tokens.begin(), tokens.end(), candidate.id);
        if (first != last) penalise(candidate, static_cast<std::size_t>(last - first));
      }
    }
    candidates.forget_order();
  }
  void accept(TokenId token) noexcept {
    if (recent_.empty()) return;
    recent_[next_] = token;
    next_ = next_ + 1 == recent_.size() ? 0 : next_ + 1;
    count_ = std::min(count_ + 1, recent_.size());
  }

  // Specific to Penalties
  /// Whether it can change a logit at all.
  [[nodiscard]] bool active() const noexcept {
    return recent_.size() > 0 && (repeat_ != 1.0f || frequency_ != 0.0f || presence_ != 0.0f);
  }
  /// The tokens it remembers, in two runs, the older first.
  [[nodiscard]] std::pair<std::span<const TokenId>, std::span<const TokenId>> history() const noexcept {
    const auto all = std::span<const TokenId>(recent_.span()).first(count_);
    return {all.subspan(count_ < recent_.size() ? 0 : next_), all.first(count_ < recent_.size() ? 0 : next_)};
  }
  void forget() noexcept { next_ = count_ = 0; }

 private:
  [[nodiscard]] static alloc::Buffer<TokenId, A> take(A allocator, std::int64_t n) {
    if (n < 0 || n > max_last_n) {
      raise(ErrorCode::usage, "repeat-last-n: found ", n, ", allowed 0 (none) to ", max_last_n);
    }
    auto buffer = alloc::Buffer<TokenId, A>::make(allocator, static_cast<std::size_t>(n));
    if (!buffer) {
      raise(ErrorCode::budget, "repeat-last-n: no memory for ", n, " tokens (", n * 4,
            " bytes, twice); use fewer");
    }
    return std::move(*buffer);
  }
  void penalise(Candidate& candidate, std::size_t occurrences) const noexcept {
    if (std::isinf(candidate.logit)) return;  // ruled out already
    float logit = candidate.logit;
    logit = logit > 0.0f ? logit / repeat_ : logit * repeat_;
    logit -= static_cast<float>(occurrences) * frequency_ + presence_;
    // A penalty makes a token unlikely, never impossible, and no candidate infinite.
    constexpr float max_value = std::numeric_limits<float>::max();
    candidate.logit = std::clamp(logit, -max_value, max_value);
  }

  float repeat_;
  float frequency_;
  float presence_;
  alloc::Buffer<TokenId, A> recent_;   // (last_n), a ring
  alloc::Buffer<TokenId, A> ordered_;  // (last_n), scratch: the same tokens by id
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

static_assert(SamplerStage<Penalties<>>);

}  // namespace mica::sample
