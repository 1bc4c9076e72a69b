// SPDX-License-Identifier: Apache-2.0
//
// The loop that SPM and BPE share: of all neighbouring symbols that may become one, join the best pair, the leftmost
// among equals, until none is left. A heap of pairs over a linked list of symbols: n log n for any text.
#pragma once

#include "mica/text/token_id.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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

/// What two neighbours would become; smaller orders join first.
struct Candidate {
  std::uint32_t order;
  TokenId id;
};

class MergeQueue {
 public:
  static constexpr std::uint32_t none = 0xFFFF'FFFFU;

  /// Links the symbols and joins them; `candidate(left, right)` answers with an optional Candidate.
  /// The survivors are those of size above 0. Symbols must be neighbours in the text, fewer than 2^32 - 1.
  template <class F>
  void run(std::vector<Symbol>& symbols, F&& candidate) {
    const auto n = static_cast<std::uint32_t>(symbols.size());
    heap_.clear();
    for (std::uint32_t i = 0; i < n; ++i) {
      symbols[i].previous = i == 0 ? none : i - 1;
      symbols[i].next = i + 1 == n ? none : i + 1;
    }
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
      if (const auto pair = make(symbols, i, candidate)) heap_.push_back(*pair);
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const Pair best = heap_.back();
      heap_.pop_back();
      join(symbols, best, candidate);
    }
  }

 private:
  struct Pair {
    std::uint64_t key;   // order, then left index
    std::uint32_t size;  // bytes of both; symbols only grow, so another size means that the pair is gone
    TokenId id;

    friend bool operator>(const Pair& a, const Pair& b) noexcept { return a.key > b.key; }
  };

  template <class F>
  static std::optional<Pair> make(const std::vector<Symbol>& symbols, std::uint32_t left, F& candidate) {
    const Symbol& a = symbols[left];
    const Symbol& b = symbols[a.next];
    const std::optional<Candidate> found = candidate(a, b);
    if (!found) return std::nullopt;
    return Pair{std::uint64_t{found->order} << 32 | left, a.size + b.size, found->id};
  }

  template <class F>
  void push(const std::vector<Symbol>& symbols, std::uint32_t left, F& candidate) {
    if (const auto pair = make(symbols, left, candidate)) {
      heap_.push_back(*pair);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
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
    if (a.previous != none) push(symbols, a.previous, candidate);
    if (a.next != none) push(symbols, left, candidate);
  }

  std::vector<Pair> heap_;
};

}  // namespace mica::text::detail
