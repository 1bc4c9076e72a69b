// SPDX-License-Identifier: Apache-2.0
//
// DRY, "don't repeat yourself" (p-e-w, pull request 5677 of text-generation-webui): a token that would extend
// a repetition of the text becomes less likely, exponentially in the length of the repetition.
//
//   ... a b c X ... a b c |      X extends a repetition of 3: logit - multiplier * base^(3 - allowed_length)
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/base/assert.hpp"
#include "mica/sample/concept.hpp"
#include "mica/sample/detail/range.hpp"
#include "mica/sample/detail/recent_tokens.hpp"
#include "mica/sample/sampler_options.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mica::sample {

/// Penalises candidates that would extend a repetition among the last n accepted tokens. Breakers of one
/// token are never penalised. Allocates once from A: 12 n bytes, 12 for each breaker, and 4 for each token of
/// a breaker after its first. Time of a token: O(n log n), and for each token of the text the time to compare
/// the breakers that begin with it.
template <Allocator A = alloc::Aligned>
class Dry {
 public:
  /// Raises for options out of range (usage) and when A refuses (budget).
  explicit Dry(const DryOptions& options, A allocator = A{})
      : multiplier_(detail::in_range("dry-multiplier", options.multiplier, 0.0f, 1e3f)),
        base_(detail::in_range("dry-base", options.base, 1.0f, 1e3f)),
        allowed_(static_cast<std::size_t>(options.allowed_length)),
        recent_(allocator, "dry-penalty-last-n", multiplier_ > 0.0f ? options.last_n : 0),
        matches_(detail::take_tokens<Match>(allocator, "dry-penalty-last-n",
                                            multiplier_ > 0.0f ? options.last_n : 0)),
        breakers_(allocator),
        tails_(allocator) {
    MICA_CHECK(options.allowed_length >= 1, usage, "dry-allowed-length: found ", options.allowed_length,
               ", allowed 1 or more");
    if (active()) take_breakers(options.breakers, allocator);
  }

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    const std::size_t limit = since_breaker();
    if (!active() || limit < allowed_) return;
    measure();
    const auto found = keep_longest(limit);
    for (const Match& match : found) {
      Candidate* const candidate = candidates.find(match.token);
      if (candidate == nullptr || std::isinf(candidate->logit) || is_breaker(match.token)) continue;
      const double penalty =
          static_cast<double>(multiplier_) *
          std::pow(static_cast<double>(base_), static_cast<double>(match.length - allowed_));
      candidate->logit = detail::clamp_finite(static_cast<double>(candidate->logit) - penalty);
    }
    if (!found.empty()) candidates.forget_order();
  }
  void accept(TokenId token) noexcept { recent_.accept(token); }

  // Specific to Dry
  /// Whether these options can change a logit at all.
  [[nodiscard]] bool active() const noexcept { return !matches_.empty(); }
  /// The accepted tokens that it remembers.
  [[nodiscard]] const detail::RecentTokens<A>& recent() const noexcept { return recent_; }
  /// Forgets them, as before the first accept().
  void forget() noexcept { recent_.forget(); }

 private:
  /// A repetition: the last `length` tokens of the text also stand before an earlier `token`.
  struct Match {
    TokenId token;
    std::uint32_t length;
  };
  /// A first token, and `size` more from tails_[tail] on.
  struct Breaker {
    TokenId first;
    std::uint32_t tail, size;
  };

  void take_breakers(const std::vector<std::vector<TokenId>>& breakers, A allocator) {
    std::size_t tokens = 0;
    for (const auto& each : breakers) tokens += std::max<std::size_t>(each.size(), 1) - 1;
    breakers_ =
        detail::take_tokens<Breaker>(allocator, breaker_name, static_cast<std::int64_t>(breakers.size()));
    tails_ = detail::take_tokens<TokenId>(allocator, breaker_name, static_cast<std::int64_t>(tokens));
    const auto all = breakers_.span();  // empty in a dry run
    std::size_t end = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::vector<TokenId>& each = breakers[i];
      MICA_CHECK(!each.empty(), usage, breaker_name, ": found a breaker without a token");
      all[i] = {each[0], static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(each.size() - 1)};
      for (std::size_t k = 1; k < each.size(); ++k) tails_[end++] = each[k];
      longest_ = std::max(longest_, each.size());
    }
    std::sort(all.begin(), all.end(), before);
  }
  [[nodiscard]] static bool before(const Breaker& a, const Breaker& b) noexcept {
    return a.first < b.first || (a.first == b.first && a.size < b.size);
  }
  /// The breakers that begin with a token, the shortest first.
  [[nodiscard]] std::span<const Breaker> beginning_with(TokenId token) const noexcept {
    const auto all = breakers_.span();
    const auto first = std::lower_bound(all.begin(), all.end(), Breaker{token, 0, 0}, before);
    return {first, std::find_if(first, all.end(), [&](const Breaker& each) { return each.first != token; })};
  }
  [[nodiscard]] bool is_breaker(TokenId token) const noexcept {
    const auto these = beginning_with(token);
    return !these.empty() && these.front().size == 0;
  }
  /// The number of tokens after the last breaker.
  [[nodiscard]] std::size_t since_breaker() const noexcept {
    std::size_t after = recent_.size();
    for (std::size_t i = 0; i < std::min(after + longest_, recent_.size()); ++i) {
      for (const Breaker& each : beginning_with(recent_[i])) {
        std::size_t k = 0;
        while (k < each.size && k < i && tails_[each.tail + k] == recent_[i - 1 - k]) ++k;
        if (k == each.size) after = std::min(after, i - k);
      }
    }
    return after;
  }
  /// Sets matches_[i].length to the length of the common ending of two texts: the whole text, and the text
  /// without its last i tokens. The Z algorithm (Gusfield, 1997), backwards.
  void measure() noexcept {
    for (std::size_t i = 1, left = 0, right = 0; i < recent_.size(); ++i) {
      std::size_t n = i < right ? std::min<std::size_t>(right - i, matches_[i - left].length) : 0;
      while (i + n < recent_.size() && recent_[n] == recent_[i + n]) ++n;
      if (i + n > right) left = i, right = i + n;
      matches_[i].length = static_cast<std::uint32_t>(n);
    }
  }
  /// The longest match of each token, if it is long enough.
  [[nodiscard]] std::span<const Match> keep_longest(std::size_t limit) noexcept {
    std::size_t n = 0;
    for (std::size_t i = 1; i < recent_.size(); ++i) {
      const std::size_t length = std::min<std::size_t>(matches_[i].length, limit);
      if (length >= allowed_) matches_[n++] = {recent_[i - 1], static_cast<std::uint32_t>(length)};
    }
    const auto all = matches_.span().first(n);
    std::sort(all.begin(), all.end(), [](const Match& a, const Match& b) {
      return a.token < b.token || (a.token == b.token && a.length > b.length);
    });
    const auto end = std::unique(all.begin(), all.end(), [](auto& a, auto& b) { return a.token == b.token; });
    return {all.begin(), end};
  }

  static constexpr std::string_view breaker_name = "dry-sequence-breaker";

  float multiplier_;
  float base_;
  std::size_t allowed_;
  detail::RecentTokens<A> recent_;
  alloc::Buffer<Match, A> matches_;     // (last_n), scratch
  alloc::Buffer<Breaker, A> breakers_;  // by first token, then by size
  alloc::Buffer<TokenId, A> tails_;
  std::size_t longest_ = 0;  // tokens of the longest breaker
};

static_assert(SamplerStage<Dry<>>);

}  // namespace mica::sample
