// SPDX-License-Identifier: Apache-2.0
//
// From two neighbouring tokens to their merge: an open table at most two thirds full.
#pragma once

#include "mica/base/error.hpp"
#include "mica/base/rng.hpp"
#include "mica/text/detail/merge_queue.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/vocabulary.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mica::text::detail {

class PairIndex {
 public:
  /// Takes merges, best first; of equal pairs the first stays. Raises when the pairs were chosen to collide.
  explicit PairIndex(std::span<const Merge> merges)
      : slots_(std::bit_ceil(merges.size() + merges.size() / 2 + 2)) {
    for (std::size_t rank = 0; rank < merges.size(); ++rank)
      add(merges[rank], static_cast<std::uint32_t>(rank));
  }

  /// The merge of two tokens, in the order of its rank; empty when they have none.
  [[nodiscard]] std::optional<Candidate> find(TokenId left, TokenId right) const noexcept {
    std::size_t at = start(left, right);
    for (std::size_t probe = 0; probe < max_probes; ++probe, ++at) {
      const Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.merge.id == no_token) break;
      if (slot.left == left && slot.right == right) return slot.merge;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    TokenId left = no_token, right = no_token;
    Candidate merge = {0, no_token};
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
