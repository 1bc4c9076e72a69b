// SPDX-License-Identifier: Apache-2.0
//
// Drafts from the text itself (prompt lookup decoding, Saxena 2023): the tokens that followed the previous
// occurrence of the last tokens. No model, no memory; one scan of the text for each draft.
//
//   before   a b c d e a b     last   c          the longest match of 2 to n tokens that end in last: a b c
//   drafts             d e a b c d e ...         what follows it, then the drafts themselves
#pragma once

#include "mica/base/assert.hpp"
#include "mica/runtime/drafter.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace mica {

/// The options of an Ngram.
struct NgramOptions {
  std::size_t n = 3;       // the maximum length of a match, 1 to 64; the minimum is 2, or 1 where n is 1
  std::size_t drafts = 8;  // the maximum of drafts, up to draft_limit; 0: never drafts
};

/// Drafts by matching the last tokens in the text before them. The longest match counts, of several the
/// latest. One thread at a time.
class Ngram {
 public:
  static constexpr std::size_t max_n = 64;  // of NgramOptions::n

  /// Raises ErrorCode::usage for options out of range.
  explicit Ngram(const NgramOptions& options = {}) : options_(options) {
    MICA_CHECK(options.n >= 1 && options.n <= max_n, usage, "ngram: found matches of ", options.n,
               " tokens, allowed 1 to ", max_n);
    MICA_CHECK(options.drafts <= draft_limit, usage, "ngram: found ", options.drafts,
               " drafts, allowed 0 to ", draft_limit);
  }

  // Required by Drafter
  [[nodiscard]] std::size_t max_drafts() const noexcept { return options_.drafts; }
  [[nodiscard]] std::size_t draft(std::span<const TokenId> before, TokenId last,
                                  std::span<TokenId> drafts) noexcept {
    const std::size_t next = after_match(before, last);
    if (next == 0) return 0;
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      const std::size_t at = next + i;
      drafts[i] = at < before.size()    ? before[at]
                  : at == before.size() ? last
                                        : drafts[at - before.size() - 1];
    }
    return drafts.size();
  }

 private:
  /// The position after the best match; 0 without one.
  [[nodiscard]] std::size_t after_match(std::span<const TokenId> before, TokenId last) const noexcept {
    std::size_t best = std::min<std::size_t>(options_.n, 2) - 1, next = 0;
    for (std::size_t p = before.size(); p-- > best;) {  // the latest first
      if (before[p] != last) continue;
      const std::size_t max = std::min(options_.n - 1, p);
      std::size_t length = 1;
      while (length <= max && before[p - length] == before[before.size() - length]) ++length;
      if (length <= best) continue;
      best = length;
      next = p + 1;
      if (best == options_.n) break;
    }
    return next;
  }

  NgramOptions options_;
};
static_assert(Drafter<Ngram>);

}  // namespace mica
