// SPDX-License-Identifier: Apache-2.0
//
// The loop that SPM and BPE share: of all neighbouring symbols that may become one, join the best pair, the
// leftmost among equals, until none is left. A linked list of symbols and a heap of pairs: n log n for any
// text. Long texts are swept order by order instead, which walks through memory where a large heap would
// jump; the result is the same.
#pragma once

#include "mica/base/error.hpp"
#include "mica/base/rng.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace mica::text::detail {

/// A stretch of a text; `size` 0 marks one that its left neighbour has absorbed.
struct Symbol {
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
  std::uint32_t previous = 0;
  std::uint32_t next = 0;
  TokenId id = no_token;
};

/// What two neighbours would become, `no_token` where they stay apart; smaller orders join first.
struct Candidate {
  std::uint32_t order = 0;
  TokenId id = no_token;
};

class MergeQueue {
 public:
  static constexpr std::uint32_t none = 0xFFFF'FFFFU;

  /// Links the symbols and joins them; `candidate(left, right)` answers with a Candidate.
  /// The survivors are those of size above 0. Symbols must be neighbours in the text, fewer than 2^32 - 1.
  template <class F>
  void run(std::vector<Symbol>& symbols, F&& candidate) {
    const auto n = static_cast<std::uint32_t>(symbols.size());
    current_ = n < many ? none : 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      symbols[i].previous = i == 0 ? none : i - 1;
      symbols[i].next = i + 1 == n ? none : i + 1;
    }
    for (std::uint32_t i = 0; i + 1 < n; ++i) consider(symbols, i, candidate);
    for (Pair best; pop(best);) join(symbols, best, candidate);
  }

 private:
  // Below this number of symbols everything goes through the heap, which stays in the first cache.
  static constexpr std::uint32_t many = 4096;

  struct Pair {
    std::uint64_t key;   // order, then left index
    std::uint32_t size;  // bytes of both; symbols only grow, so another size means that the pair is gone
    TokenId id;

    friend bool operator>(const Pair& a, const Pair& b) noexcept { return a.key > b.key; }
    friend bool operator<(const Pair& a, const Pair& b) noexcept { return a.key < b.key; }
  };

  template <class F>
  void consider(const std::vector<Symbol>& symbols, std::uint32_t left, F& candidate) {
    const Symbol& a = symbols[left];
    const Symbol& b = symbols[a.next];
    const Candidate found = candidate(a, b);
    if (found.id == no_token) return;
    const Pair pair = {std::uint64_t{found.order} << 32 | left, a.size + b.size, found.id};
    if (found.order > current_) return later_[found.order].push_back(pair);
    heap_.push_back(pair);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  /// Takes the best pair; false when none is left.
  bool pop(Pair& best) {
    if (heap_.empty() && at_ == sweep_.size() && !next_sweep()) return false;
    if (at_ < sweep_.size() && (heap_.empty() || sweep_[at_] < heap_.front())) {
      best = sweep_[at_++];
      return true;
    }
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    best = heap_.back();
    heap_.pop_back();
    return true;
  }

  bool next_sweep() {
    sweep_.clear();
    at_ = 0;
    if (later_.empty()) return false;
    const auto first = later_.begin();
    current_ = first->first;
    sweep_ = std::move(first->second);
    later_.erase(first);
    if (!std::is_sorted(sweep_.begin(), sweep_.end())) std::sort(sweep_.begin(), sweep_.end());
    return true;
  }

  template <class F>
  void join(std::vector<Symbol>& symbols, const Pair& pair, F& candidate) {
    const auto left = static_cast<std::uint32_t>(pair.key);
    Symbol& a = symbols[left];
    if (a.size == 0 || a.next == none) return;
    Symbol& b = symbols[a.next];
    if (a.size + b.size != pair.size) return;
    a.size = pair.size;
    a.id = pair.id;
    a.next = b.next;
    b.size = 0;
    if (a.next != none) symbols[a.next].previous = left;
    if (a.previous != none) consider(symbols, a.previous, candidate);
    if (a.next != none) consider(symbols, left, candidate);
  }

  std::uint32_t current_ = none;                      // order of the sweep; what comes later waits in later_
  std::vector<Pair> heap_;                            // pairs up to that order that the sweep does not have
  std::vector<Pair> sweep_;                           // pairs of that order, from left to right
  std::size_t at_ = 0;                                // next of the sweep
  std::map<std::uint32_t, std::vector<Pair>> later_;  // pairs of each higher order
};

/// From two neighbouring tokens to their merge: an open table at most two thirds full.
class PairIndex {
 public:
  /// Takes merges, best first; of equal pairs the first stays. Raises when the pairs were chosen to collide.
  explicit PairIndex(const std::vector<Merge>& merges)
      : slots_(std::bit_ceil(merges.size() + merges.size() / 2 + 2)) {
    for (std::size_t rank = 0; rank < merges.size(); ++rank)
      add(merges[rank], static_cast<std::uint32_t>(rank));
  }

  /// The merge of two tokens, in the order of its rank; `no_token` when they have none.
  [[nodiscard]] Candidate find(TokenId left, TokenId right) const noexcept {
    std::size_t at = start(left, right);
    for (std::size_t probe = 0; probe < max_probes; ++probe, ++at) {
      const Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.merge.id == no_token) break;
      if (slot.left == left && slot.right == right) return slot.merge;
    }
    return {};
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    TokenId left = no_token, right = no_token;
    Candidate merge;
  };
  static constexpr std::size_t max_probes = 512;

  static std::size_t start(TokenId left, TokenId right) noexcept {
    return mix64(std::uint64_t{left} << 32 | right);
  }

  void add(const Merge& merge, std::uint32_t rank) {
    std::size_t at = start(merge.left, merge.right);
    for (std::size_t probe = 0; probe < max_probes; ++probe, ++at) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.merge.id == no_token) slot = {merge.left, merge.right, {rank, merge.result}};
      if (slot.left == merge.left && slot.right == merge.right) return;
    }
    raise(ErrorCode::file, "tokenizer.ggml.merges: merge ", rank, " collides with more than ", max_probes,
          " others; no honest vocabulary does");
  }

  std::vector<Slot> slots_;
};

}  // namespace mica::text::detail
