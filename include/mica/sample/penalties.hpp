// SPDX-License-Identifier: Apache-2.0
//
// Penalties for repetition: logits of tokens among the last n of the text are reduced, in the three ways of
// llama.cpp.
//
//   c = how often the token is among the last n; if c > 0:
//   logit > 0: logit / repeat    logit <= 0: logit * repeat    then: logit - c * frequency - presence
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/sample/concept.hpp"
#include "mica/sample/detail/range.hpp"
#include "mica/sample/detail/recent_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::sample {

/// The penalties; these values change nothing.
struct PenaltyOptions {
  std::int64_t last_n = 64;  ///< tokens that count; 0: none
  float repeat = 1.0f;       ///< divides a positive logit, multiplies others
  float frequency = 0.0f;    ///< subtracted from the logit for each occurrence
  float presence = 0.0f;     ///< subtracted from the logit once
};

/// Penalises candidates that are among the last n accepted tokens. Allocates 8 n bytes from A once. One
/// thread at a time.
template <Allocator A = alloc::Aligned>
class Penalties {
 public:
  /// Raises for options out of range (usage) and when A refuses (budget).
  explicit Penalties(const PenaltyOptions& options, A allocator = A{})
      : repeat_(detail::in_range("repeat-penalty", options.repeat, 1e-3f, 1e3f)),
        frequency_(detail::in_range("frequency-penalty", options.frequency, -1e3f, 1e3f)),
        presence_(detail::in_range("presence-penalty", options.presence, -1e3f, 1e3f)),
        recent_(allocator, "repeat-last-n", options.last_n),
        ordered_(detail::take_tokens<TokenId>(allocator, "repeat-last-n", options.last_n)) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (!active() || recent_.size() == 0) return;
    const auto tokens = ordered_.span().first(recent_.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = recent_[i];
    std::sort(tokens.begin(), tokens.end());
    for (std::size_t i = 0, end = 0; i < tokens.size(); i = end) {
      while (end < tokens.size() && tokens[end] == tokens[i]) ++end;
      if (Candidate* const candidate = candidates.find(tokens[i])) penalise(*candidate, end - i);
    }
    candidates.forget_order();
  }
  void accept(TokenId token) noexcept { recent_.accept(token); }

  // Specific to Penalties
  /// Whether these options can change a logit at all.
  [[nodiscard]] bool active() const noexcept {
    return !ordered_.empty() && (repeat_ != 1.0f || frequency_ != 0.0f || presence_ != 0.0f);
  }
  /// The accepted tokens that it remembers.
  [[nodiscard]] const detail::RecentTokens<A>& recent() const noexcept { return recent_; }
  /// Forgets them, as before the first accept().
  void forget() noexcept { recent_.forget(); }

 private:
  void penalise(Candidate& candidate, std::size_t occurrences) const noexcept {
    if (std::isinf(candidate.logit)) return;  // forbidden already
    float logit = candidate.logit;
    logit = logit > 0.0f ? logit / repeat_ : logit * repeat_;
    logit -= static_cast<float>(occurrences) * frequency_ + presence_;
    candidate.logit = detail::clamp_finite(static_cast<double>(logit));
  }

  float repeat_;
  float frequency_;
  float presence_;
  detail::RecentTokens<A> recent_;
  alloc::Buffer<TokenId, A> ordered_;  // (last_n), scratch: the same tokens by id
};

static_assert(SamplerStage<Penalties<>>);

}  // namespace mica::sample
