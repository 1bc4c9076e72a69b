// SPDX-License-Identifier: Apache-2.0
//
// The recurrent state of a sequence: a fixed number of floats for any length. It cannot be rewound, so there
// are copies at earlier positions:
//
//   | state after all tokens | copy after 512 | copy after 1,024 | ...      position 0: zeros, not stored
//
// One more place is for drafts: the blocks copy their state there in the middle of a step, before the tokens
// that may be taken back.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/account.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace mica::kv {

/// All layers' state of one sequence. The model defines its layout. One thread at a time.
template <Allocator A>
class RecurrentState {
 public:
  /// checkpoints: the maximum of copies; none of an empty state. drafts: one more place, for drafts. All
  /// memory is allocated here, as state and as checkpoints. Raises ErrorCode::budget when the allocator
  /// refuses.
  RecurrentState(A allocator, std::size_t floats, std::size_t checkpoints, bool drafts = false)
      : state_(take(allocator, budget::Account::state, floats, 1)),
        memory_(take(allocator, budget::Account::checkpoints, floats, checkpoints + (drafts ? 1 : 0))),
        copies_(floats == 0 ? 0 : checkpoints + (drafts ? 1 : 0)),
        drafts_(drafts && floats != 0) {
    clear();
  }

  [[nodiscard]] std::size_t size() const noexcept { return state_.size(); }
  [[nodiscard]] float* data() noexcept { return state_.data(); }
  [[nodiscard]] std::span<float> span() noexcept { return state_.span(); }

  /// The maximum of copies, without the place for drafts.
  [[nodiscard]] std::size_t checkpoints() const noexcept { return copies_.size() - (drafts_ ? 1 : 0); }
  /// The positions of these copies, ascending.
  [[nodiscard]] std::vector<std::size_t> copies() const {
    std::vector<std::size_t> tokens;
    for (std::size_t i = 0; i < checkpoints(); ++i) {
      if (copies_[i].filled) tokens.push_back(copies_[i].tokens);
    }
    std::sort(tokens.begin(), tokens.end());
    return tokens;
  }
  /// The copy after `tokens` tokens, which must exist.
  [[nodiscard]] std::span<const float> copy(std::size_t tokens) const noexcept {
    return {address(*latest(tokens)), size()};
  }

  /// Stores a checkpoint after `tokens` tokens; if all places are used, it replaces the earliest checkpoint.
  void save(std::size_t tokens) noexcept {
    const std::span<float> place = make_copy(tokens);
    if (!place.empty()) std::copy_n(state_.data(), state_.span().size(), place.data());
  }
  /// The same for a copy that the caller fills; empty where there are no places.
  [[nodiscard]] std::span<float> make_copy(std::size_t tokens) noexcept {
    if (checkpoints() == 0) return {};
    const auto end = copies_.begin() + static_cast<std::ptrdiff_t>(checkpoints());
    const auto place = std::min_element(copies_.begin(), end, [](const Copy& a, const Copy& b) {
      return a.filled != b.filled ? b.filled : a.tokens < b.tokens;
    });
    *place = {tokens, true};
    return {address(*place), size()};
  }

  /// The place for drafts; null: there is none.
  [[nodiscard]] float* draft_copy() noexcept { return drafts_ ? address(copies_.back()) : nullptr; }
  /// It is about to be written, and has no copy until set_draft_copy().
  void drop_draft_copy() noexcept {
    if (drafts_) copies_.back().filled = false;
  }
  /// It has the state after `tokens` tokens now.
  void set_draft_copy(std::size_t tokens) noexcept {
    if (drafts_) copies_.back() = {tokens, true};
  }

  /// Restores the latest state that is not after `tokens`; returns its position. Drops later copies.
  std::size_t restore(std::size_t tokens) noexcept {
    for (Copy& copy : copies_) copy.filled = copy.filled && copy.tokens <= tokens;
    const Copy* const best = latest(tokens);
    if (best == nullptr) {
      clear();
      return 0;
    }
    copy_from(address(*best));
    return best->tokens;
  }

  /// Becomes the state of another sequence, which has `resident` tokens, as that after `tokens` or fewer, and
  /// keeps a copy of it; returns its position. Both are of one model.
  std::size_t adopt(const RecurrentState& other, std::size_t resident, std::size_t tokens) noexcept {
    if (size() == 0) return tokens;
    if (resident == tokens) {
      copy_from(other.state_.data());
    } else {
      const Copy* const best = other.latest(tokens);
      if (best == nullptr) return 0;
      copy_from(other.address(*best));
      tokens = best->tokens;
    }
    save(tokens);
    return tokens;
  }

 private:
  struct Copy {
    std::size_t tokens = 0;
    bool filled = false;
  };

  [[nodiscard]] static alloc::Buffer<float, A> take(A allocator, budget::Account account, std::size_t floats,
                                                    std::size_t copies) {
    const auto all = checked_mul(floats, copies);
    auto memory =
        all ? alloc::Buffer<float, A>::make(allocator.book_as(account), static_cast<std::size_t>(*all))
            : std::nullopt;
    MICA_CHECK(memory, budget, budget::name(account), ": ", copies, " x ", floats,
               " numbers of a recurrent state ",
               alloc::refused(allocator, all.value_or(floats) * sizeof(float)), "; use fewer checkpoints");
    return std::move(*memory);
  }
  [[nodiscard]] float* address(const Copy& copy) noexcept { return memory_.data() + offset(copy); }
  [[nodiscard]] const float* address(const Copy& copy) const noexcept {
    return memory_.data() + offset(copy);
  }
  [[nodiscard]] std::size_t offset(const Copy& copy) const noexcept {
    return static_cast<std::size_t>(&copy - copies_.data()) * size();
  }
  /// The copy of the most tokens that is not after `tokens`; null: none.
  [[nodiscard]] const Copy* latest(std::size_t tokens) const noexcept {
    const Copy* best = nullptr;
    for (const Copy& copy : copies_) {
      if (!copy.filled || copy.tokens > tokens) continue;
      if (best == nullptr || copy.tokens > best->tokens) best = &copy;
    }
    return best;
  }
  void copy_from(const float* from) noexcept { std::copy_n(from, state_.span().size(), state_.data()); }
  void clear() noexcept { std::fill_n(state_.data(), state_.span().size(), 0.0f); }

  alloc::Buffer<float, A> state_;
  alloc::Buffer<float, A> memory_;  // (checkpoints, floats), and one for drafts
  std::vector<Copy> copies_;        // by place in memory_; the one for drafts is the last
  bool drafts_;                     // whether it is there
};

}  // namespace mica::kv
