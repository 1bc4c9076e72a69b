// SPDX-License-Identifier: Apache-2.0
//
// The tokens that can still be chosen, with their logits, in storage of the caller.
//
//   | best | 2nd | ... |  rest, in any order  |          candidate(0) .. candidate(size() - 1)
//   0             sorted()                  size()
//
// "Better" is a total order: the larger logit, and of equal ones the lower id. So the answer never depends on
// how a sort treats ties.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/finite.hpp"
#include "mica/base/token_id.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace mica::sample {

using mica::TokenId;

/// A token that can still be chosen.
struct Candidate {
  TokenId id;   // each token is a candidate once at most
  float logit;  // that of the model, as stages have changed it
  float p;      // set by softmax(), stale afterwards if a logit or the set changes
};

/// Whether a is better than b, and so comes before it.
[[nodiscard]] constexpr bool better(const Candidate& a, const Candidate& b) noexcept {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// A set of candidates in the caller's storage. After a fill no logit is NaN or +infinity and at least one is
/// finite. One thread at a time.
class Candidates {
 public:
  /// storage: as many elements as the vocabulary has tokens; outlives this object.
  explicit Candidates(std::span<Candidate> storage) noexcept : storage_(storage) {}

  /// Makes every token a candidate, in the order of ids; false when a logit is NaN or +infinity or all are
  /// -infinity. logits.size() <= the storage's.
  [[nodiscard]] bool fill(std::span<const float> logits) noexcept {
    MICA_ASSERT(logits.size() <= storage_.size());
    bool all_usable = true;
    float max = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      storage_[i] = {static_cast<TokenId>(i), logits[i], 0.0f};
      all_usable = all_usable && usable(logits[i]);
      max = std::max(max, logits[i]);
    }
    size_ = logits.size();
    sorted_ = 0;
    by_id_ = true;
    return all_usable && max > -std::numeric_limits<float>::infinity();
  }

  /// fill() and keep_best(k) in one pass that touches only k candidates; 0 < k <= the storage's size.
  [[nodiscard]] bool fill_best(std::span<const float> logits, std::size_t k) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<Candidate> span() noexcept { return storage_.first(size_); }
  [[nodiscard]] std::span<const Candidate> span() const noexcept { return storage_.first(size_); }
  /// Candidate i, below size(); the first sorted() are the best.
  [[nodiscard]] const Candidate& operator[](std::size_t i) const noexcept {
    MICA_ASSERT(i < size_);
    return storage_[i];
  }

  /// How many candidates at the front are the best ones, in order.
  [[nodiscard]] std::size_t sorted() const noexcept { return sorted_; }
  /// Whether candidate i is token i, as after fill().
  [[nodiscard]] bool by_id() const noexcept { return by_id_; }

  /// The candidate of a token, or null; a search where by_id() is false.
  [[nodiscard]] Candidate* find(TokenId id) noexcept {
    if (by_id_) return id < size_ ? &storage_[id] : nullptr;
    const auto found = std::find_if(span().begin(), span().end(), [id](auto& each) { return each.id == id; });
    return found == span().end() ? nullptr : &*found;
  }

  /// Moves the best n to the front, in order; n <= size(). Costs a pass over the rest; never sorts more than
  /// n.
  void sort_best(std::size_t n) noexcept {
    MICA_ASSERT(n <= size_);
    if (n <= sorted_) return;
    Candidate* const first = storage_.data() + sorted_;  // the sorted ones are the best already
    Candidate* const middle = storage_.data() + n;
    Candidate* const last = storage_.data() + size_;
    if (n < size_ &&
        (n - sorted_) * 8 > size_ - sorted_) {  // a heap of many costs more than a split and a sort
      std::nth_element(first, middle, last, better);
      std::sort(first, middle, better);
    } else {
      std::partial_sort(first, middle, last, better);
    }
    sorted_ = n;
    by_id_ = false;
  }

  /// Keeps the best n, in order; 0 < n. Does nothing but sort when there are no more.
  void keep_best(std::size_t n) noexcept {
    sort_best(std::min(n, size_));
    keep_front(std::min(n, size_));
  }

  /// Keeps the first n as they stand; 0 < n <= size().
  void keep_front(std::size_t n) noexcept {
    MICA_ASSERT(n > 0 && n <= size_);
    if (n != size_) by_id_ = false;
    size_ = n;
    sorted_ = std::min(sorted_, n);
  }

  /// Keeps those for which `keep(candidate)` holds, in their order; at least one must.
  template <class Keep>
  void keep_if(Keep&& keep) noexcept {
    std::size_t n = 0;
    std::size_t sorted = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (!keep(std::as_const(storage_[i]))) continue;
      if (i < sorted_) ++sorted;
      storage_[n++] = storage_[i];
    }
    MICA_ASSERT(n > 0);
    if (n != size_) by_id_ = false;
    size_ = n;
    sorted_ = sorted;
  }

  /// Removes all candidates but candidate i.
  void choose(std::size_t i) noexcept {
    MICA_ASSERT(i < size_);
    storage_[0] = storage_[i];
    size_ = 1;
    sorted_ = 1;
    by_id_ = false;
  }

  /// The token of the first candidate; empty if it is forbidden, as when all are.
  [[nodiscard]] std::optional<TokenId> chosen() const noexcept {
    return storage_[0].logit > -std::numeric_limits<float>::infinity() ? std::optional(storage_[0].id)
                                                                       : std::nullopt;
  }

  /// Records that a change of logits may have changed their order.
  void forget_order() noexcept { sorted_ = 0; }

  /// The best candidate, without moving any; its index.
  [[nodiscard]] std::size_t best() const noexcept {
    if (sorted_ > 0) return 0;
    std::size_t found = 0;
    for (std::size_t i = 1; i < size_; ++i) {
      if (better(storage_[i], storage_[found])) found = i;
    }
    return found;
  }

  /// Sets every p to its probability among the remaining candidates. Computed in double, in their order.
  void softmax() noexcept {
    const auto max = static_cast<double>(storage_[best()].logit);
    double sum = 0.0;
    for (Candidate& candidate : span()) {
      const double weight = std::exp(static_cast<double>(candidate.logit) - max);
      candidate.p = static_cast<float>(weight);
      sum += weight;
    }
    for (Candidate& candidate : span())
      candidate.p = static_cast<float>(static_cast<double>(candidate.p) / sum);
  }

 private:
  [[nodiscard]] static bool usable(float logit) noexcept {
    return logit < std::numeric_limits<float>::infinity();
  }

  std::span<Candidate> storage_;
  std::size_t size_ = 0;
  std::size_t sorted_ = 0;
  bool by_id_ = false;
};

inline bool Candidates::fill_best(std::span<const float> logits, std::size_t k) noexcept {
  MICA_ASSERT(k > 0 && k <= storage_.size());
  k = std::min(k, logits.size());
  size_ = k;
  sorted_ = k;
  by_id_ = false;
  Candidate* const kept = storage_.data();
  for (std::size_t i = 0; i < k; ++i) {
    kept[i] = {static_cast<TokenId>(i), logits[i], 0.0f};
    if (!usable(logits[i])) return false;
  }
  if (k == 0) return false;
  std::make_heap(kept, kept + k, better);  // the worst of the kept on top
  for (std::size_t i = k; i < logits.size();) {
    i = skip_below(logits, i, kept[0].logit);
    for (const std::size_t end = std::min(i + finite_run, logits.size()); i < end; ++i) {
      if (logits[i] <= kept[0].logit) continue;  // an equal one has the higher id: worse
      if (!usable(logits[i])) return false;      // NaN among them
      std::pop_heap(kept, kept + k, better);
      kept[k - 1] = {static_cast<TokenId>(i), logits[i], 0.0f};
      std::push_heap(kept, kept + k, better);
    }
  }
  std::sort_heap(kept, kept + k, better);
  return kept[0].logit > -std::numeric_limits<float>::infinity();
}

}  // namespace mica::sample
