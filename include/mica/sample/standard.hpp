// SPDX-License-Identifier: Apache-2.0
//
// The standard sampler: the common stages in the common order, set by options at run time.
//
//   penalties -> top-k -> top-p -> min-p -> temperature -> draw        temperature <= 0: penalties -> greedy
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/account.hpp"
#include "mica/sample/penalties.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica/sample/stages.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace mica::sample {

/// Chooses tokens as SamplerOptions say. Takes its memory from A once, booked under logits: 12 bytes for each
/// token of the vocabulary, or only for the best k when there are no penalties. Same options, logits and
/// state: same token.
template <Allocator A = alloc::Aligned>
class Standard {
 public:
  /// vocab > 0. Raises for options out of range (usage) and when A refuses (budget).
  explicit Standard(const SamplerOptions& options, std::size_t vocab, A allocator = A{})
      : options_(options),
        penalties_({options.repeat_last_n, options.repeat_penalty, options.frequency_penalty,
                    options.presence_penalty},
                   allocator.book_as(budget::Account::logits)),
        top_k_(options.top_k),
        top_p_(options.top_p),
        min_p_(options.min_p),
        temperature_(options.temperature <= 0.0f ? 1.0f : options.temperature),
        dist_(options.seed),
        storage_(take(allocator.book_as(budget::Account::logits), vocab)) {}

  // Required by Sampler
  /// The next token; the caller accepts it if it becomes part of the text.
  /// Empty when a logit is NaN or +infinity or all are -infinity. logits.size() <= vocab; allocates nothing.
  [[nodiscard]] std::optional<TokenId> sample(std::span<const float> logits) noexcept {
    MICA_ASSERT(storage_.span().size() == storage_.size());
    Candidates candidates(storage_.span());
    if (!fill(candidates, logits)) return std::nullopt;
    penalties_.apply(candidates);
    if (greedy()) {
      best_.apply(candidates);
    } else {
      top_k_.apply(candidates);
      top_p_.apply(candidates);
      min_p_.apply(candidates);
      temperature_.apply(candidates);
      dist_.apply(candidates);
    }
    return candidates[0].id;
  }

  /// Records a token of the text for the penalties.
  void accept(TokenId token) noexcept { penalties_.accept(token); }

  // Specific to Standard
  [[nodiscard]] const SamplerOptions& options() const noexcept { return options_; }

  [[nodiscard]] SamplerState save() const {
    SamplerState state{dist_.rng().seed(), dist_.rng().counter(), {}};
    const auto [older, newer] = penalties_.history();
    state.history.assign(older.begin(), older.end());
    state.history.insert(state.history.end(), newer.begin(), newer.end());
    return state;
  }
  /// Continues from a state; of a history longer than repeat_last_n the newest tokens count.
  void restore(const SamplerState& state) noexcept {
    dist_ = Dist(CounterRng(state.seed, state.counter));
    penalties_.forget();
    for (const TokenId token : state.history) penalties_.accept(token);
  }

 private:
  [[nodiscard]] bool greedy() const noexcept { return !(options_.temperature > 0.0f); }
  /// Without penalties the best of the raw logits are the best, and the others need no candidate.
  [[nodiscard]] std::size_t wanted(std::size_t vocab) const noexcept {
    if (penalties_.active()) return vocab;
    if (greedy()) return 1;
    return top_k_.k() == 0 ? vocab : std::min(top_k_.k(), vocab);
  }
  [[nodiscard]] alloc::Buffer<Candidate, A> take(A allocator, std::size_t vocab) const {
    const std::size_t n = wanted(vocab);
    auto buffer = alloc::Buffer<Candidate, A>::make(allocator, n);
    MICA_CHECK(buffer.has_value(), budget, "sampler: no memory for ", n, " candidates (",
               n * sizeof(Candidate), " bytes); a smaller top-k without penalties needs less");
    return std::move(*buffer);
  }
  [[nodiscard]] bool fill(Candidates& candidates, std::span<const float> logits) noexcept {
    const std::size_t n = wanted(logits.size());
    return n < logits.size() ? candidates.fill_best(logits, n) : candidates.fill(logits);
  }

  SamplerOptions options_;
  Penalties<A> penalties_;
  TopK top_k_;
  TopP top_p_;
  MinP min_p_;
  Temperature temperature_;
  Greedy best_;
  Dist dist_;
  alloc::Buffer<Candidate, A> storage_;  // (wanted(vocab))
};

static_assert(Sampler<Standard<>>);

}  // namespace mica::sample
