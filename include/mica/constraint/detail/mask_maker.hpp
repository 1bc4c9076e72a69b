// SPDX-License-Identifier: Apache-2.0
//
// The masks and the forced tokens of the states of a language, kept for the next time.
#pragma once

#include "mica/alloc/booking.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/account.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/constraint/detail/far_counts.hpp"
#include "mica/constraint/recognizer.hpp"
#include "mica/constraint/token_mask.hpp"
#include "mica/constraint/token_trie.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mica::constraint::detail {

/// Masks of a language over a vocabulary. Functions raise what Recognizer::step() raises. One thread at a
/// time.
class MaskMaker {
 public:
  static constexpr std::size_t kept_masks = 32;
  static constexpr std::size_t max_searched = 80;  // states, for one mask

  MaskMaker(std::shared_ptr<const TokenTrie> tokens, Language language, const Limits& limits,
            budget::Ledger* ledger)
      : tokens_(std::move(tokens)),
        limits_(limits),
        booked_(booked(ledger, limits.max_bytes)),
        language_(std::move(language)),
        recognizer_(language_, limits),
        far_(*language_.expressions) {}

  [[nodiscard]] Recognizer& recognizer() noexcept { return recognizer_; }
  [[nodiscard]] const TokenTrie& tokens() const noexcept { return *tokens_; }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  void fail(const char* why) noexcept {
    try {
      failure_ = why;
    } catch (...) {
      failure_ = "no memory";  // short enough to need none
    }
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return recognizer_.bytes() + masks_.size() * (tokens_->n_vocab() / 8) + uniform_.size() * 24;
  }

  /// Tokens after this state; valid until the next call.
  [[nodiscard]] const TokenMask& mask(StateId state);
  /// The state after these bytes.
  [[nodiscard]] StateId after(StateId state, std::string_view bytes) {
    for (const char c : bytes) {
      if (state == StateId::dead) break;
      state = recognizer_.step(state, static_cast<std::uint8_t>(c));
    }
    return state;
  }
  /// Tokens that follow with certainty.
  [[nodiscard]] std::vector<TokenId> forced(StateId state);

 private:
  [[nodiscard]] static alloc::Booking booked(budget::Ledger* ledger, std::size_t bytes) {
    auto booking = alloc::Booking::make(ledger, budget::Account::logits, bytes);
    MICA_CHECK(booking, budget, "a grammar needs ", bytes, " bytes for its states, the budget has ",
               ledger->left(), ": give it more, or the grammar a smaller limit");
    return *std::move(booking);
  }

  /// Texts of a slice's characters that can follow, whichever they are: those of Slice::some_characters, or all.
  enum class Taken : std::uint8_t { few, some, all };

  void fill(StateId state, TokenMask& mask);
  [[nodiscard]] bool fill_by_likeness(StateId state, TokenMask& mask);
  void correct(StateId state, StateId like, TokenMask& mask);
  [[nodiscard]] bool fill_by_slice(StateId state, std::size_t slice, TokenMask& mask);
  void walk(const Trie& trie, StateId state, TokenMask& mask);
  [[nodiscard]] StateId uniform(StateId state, std::size_t slice);
  [[nodiscard]] StateId find_uniform(StateId state, const Slice& slice);
  [[nodiscard]] bool no_character(StateId state, const Slice& slice);
  template <class F>
  [[nodiscard]] bool for_each_next(StateId state, const Slice& slice, F&& f);
  [[nodiscard]] Taken takes(StateId state, const Slice& slice);
  [[nodiscard]] bool continues(std::string_view text, StateId state);
  [[nodiscard]] std::vector<TokenId> tokens_of(std::string_view text);

  std::shared_ptr<const TokenTrie> tokens_;
  Limits limits_;
  alloc::Booking booked_;  // of the limit
  Language language_;
  Recognizer recognizer_;
  FarCounts far_;
  std::string failure_;
  std::vector<std::pair<StateId, TokenMask>> masks_;  // kept_masks at most, the oldest is replaced
  std::size_t next_mask_ = 0;
  std::unordered_set<StateId> takes_all_;
  std::unordered_map<std::uint64_t, StateId> uniform_;             // by state and slice
  std::array<StateId, Trie::max_bytes + 1> path_{}, like_path_{};  // of a walk, by depth
};

inline const TokenMask& MaskMaker::mask(StateId state) {
  for (const auto& [of, mask] : masks_) {
    if (of == state) return mask;
  }
  TokenMask made(tokens_->n_vocab());
  fill(state, made);
  if (masks_.size() < kept_masks) {
    masks_.emplace_back(state, std::move(made));
    next_mask_ = masks_.size() - 1;
  } else {
    next_mask_ = (next_mask_ + 1) % kept_masks;
    masks_[next_mask_] = {state, std::move(made)};
  }
  return masks_[next_mask_].second;
}

inline void MaskMaker::fill(StateId state, TokenMask& mask) {
  if (recognizer_.accepts(state)) {
    for (const TokenId end : tokens_->ends()) mask.insert(end);
  }
  if (!recognizer_.can_continue(state)) return;
  if (fill_by_slice(state, 0, mask) || fill_by_likeness(state, mask)) return;
  // Short tokens of a place whose counts end far away are those of all such places.
  const StateId near =
      recognizer_.mapped(state, [&](ExprId e) { return far_.without(e, TokenTrie::short_bytes); });
  if (near != state) {
    mask |= this->mask(near);
    mask &= tokens_->short_tokens();
    walk(tokens_->long_tokens(), state, mask);
    return;
  }
  const Slice& text = tokens_->slices()[0];
  const Taken taken = takes(state, text);
  if (taken == Taken::few) {
    if (!fill_by_slice(state, 1, mask)) walk(tokens_->all(), state, mask);
    return;
  }
  mask |= text.up_to(taken == Taken::all ? Slice::max_characters : Slice::some_characters);
  walk(text.others(), state, mask);
  if (taken == Taken::some) walk(text.longer(), state, mask);
}

/// A place where most characters lead to one state that is for free text: the first character of a name of
/// which some are listed. The mask of that state is corrected where the two differ. False where there is
/// none.
inline bool MaskMaker::fill_by_likeness(StateId state, TokenMask& mask) {
  constexpr std::string_view samples = "xQ7-";  // of which the most frequent next state is the free one
  for (const char sample : samples) {
    const StateId free = recognizer_.step(state, static_cast<std::uint8_t>(sample));
    if (free == StateId::dead || free == state || uniform(free, 0) != free) continue;
    TokenMask like = this->mask(free);
    for (const TokenId end : tokens_->ends()) like.erase(end);
    correct(state, free, like);
    mask |= like;
    return true;
  }
  return false;
}

/// Changes the mask of `like` to that of `state`, by a walk over the tokens for which their states differ.
inline void MaskMaker::correct(StateId state, StateId like, TokenMask& mask) {
  const auto nodes = tokens_->all().nodes();
  path_[0] = state;
  like_path_[0] = like;
  for (std::size_t i = 0; i < nodes.size();) {
    const Trie::Node& node = nodes[i];
    const StateId next = recognizer_.step(path_[node.depth - 1], node.byte);
    const StateId other = like_path_[node.depth - 1] == StateId::dead
                              ? StateId::dead
                              : recognizer_.step(like_path_[node.depth - 1], node.byte);
    if (next == other) {
      i = node.next;
      continue;
    }
    if (next == StateId::dead) {
      for (; i < node.next; ++i) {
        if (nodes[i].token != text::no_token) mask.erase(nodes[i].token);
      }
      continue;
    }
    path_[node.depth] = next;
    like_path_[node.depth] = other;
    if (node.token != text::no_token) mask.insert(node.token);
    ++i;
  }
}

/// False where characters of the slice are not alike in this state.
inline bool MaskMaker::fill_by_slice(StateId state, std::size_t slice, TokenMask& mask) {
  const Slice& tokens = tokens_->slices()[slice];
  std::array<StateId, Slice::max_characters + 1> after;  // n characters
  after[0] = state;
  std::size_t n = 0;
  for (; n < Slice::max_characters; ++n) {
    after[n + 1] = uniform(after[n], slice);
    if (after[n + 1] == StateId::dead) break;
    if (after[n + 1] == after[n]) {
      std::fill(after.begin() + static_cast<std::ptrdiff_t>(n) + 1, after.end(), after[n]);
      mask |= tokens.up_to(Slice::max_characters);
      for (std::size_t i = 0; i <= Slice::max_characters; ++i) walk(tokens.after(i), after[i], mask);
      return true;
    }
  }
  if (n == 0) return false;
  if (n < Slice::max_characters && !no_character(after[n], tokens)) return false;
  const std::size_t most = std::min(n, Slice::max_characters - 1);
  mask |= tokens.up_to(most);
  for (std::size_t i = 0; i <= most; ++i) walk(tokens.after(i), after[i], mask);
  if (n == Slice::max_characters) walk(tokens.long_tokens(), state, mask);
  return true;
}

inline void MaskMaker::walk(const Trie& trie, StateId state, TokenMask& mask) {
  const auto nodes = trie.nodes();
  const std::size_t before = recognizer_.size();
  path_[0] = state;
  for (std::size_t i = 0; i < nodes.size();) {
    const Trie::Node& node = nodes[i];
    const StateId next = recognizer_.step(path_[node.depth - 1], node.byte);
    if (next == StateId::dead) {
      i = node.next;
      continue;
    }
    path_[node.depth] = next;
    if (node.token != text::no_token) mask.insert(node.token);
    ++i;
    MICA_CHECK(recognizer_.size() - before <= limits_.max_new_states, limit, "a mask needs more than ",
               limits_.max_new_states,
               " states of the grammar: its repetitions or its ambiguity are too large");
  }
}

/// The state after any one character of the slice, if it is the same for all; else dead.
inline StateId MaskMaker::uniform(StateId state, std::size_t slice) {
  const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(state)} * 4 + slice;
  const auto known = uniform_.find(key);
  if (known != uniform_.end()) return known->second;
  const StateId found = find_uniform(state, tokens_->slices()[slice]);
  uniform_.emplace(key, found);
  return found;
}

inline StateId MaskMaker::find_uniform(StateId state, const Slice& slice) {
  StateId target = StateId::dead;
  const bool alike = for_each_next(state, slice, [&](StateId next) {
    if (target == StateId::dead) target = next;
    return next == target;
  });
  return alike ? target : StateId::dead;
}

/// Calls f(state) for the states after one character of the slice, until f() is false; also false where a
/// character cannot follow.
template <class F>
bool MaskMaker::for_each_next(StateId state, const Slice& slice, F&& f) {
  StateId before = StateId::dead;
  for (unsigned byte = slice.ascii().at_least(0); byte < 256;
       byte = slice.ascii().at_least(recognizer_.next_edge(state, byte))) {
    const StateId next = recognizer_.step(state, static_cast<std::uint8_t>(byte));
    if (next == StateId::dead || (next != before && !f(next))) return false;
    before = next;
  }
  if (!slice.has_more_than_ascii()) return true;
  // The well-formed sequences of Unicode 15, table 3-7, without U+2028 and U+2029: ranges of each byte.
  struct Sequence {
    std::array<std::uint8_t, 4> first, last;
    std::size_t size;
  };
  static constexpr Sequence sequences[] = {{{0xC2, 0x80}, {0xDF, 0xBF}, 2},
                                           {{0xE0, 0xA0, 0x80}, {0xE0, 0xBF, 0xBF}, 3},
                                           {{0xE1, 0x80, 0x80}, {0xE1, 0xBF, 0xBF}, 3},
                                           {{0xE2, 0x80, 0x80}, {0xE2, 0x80, 0xA7}, 3},
                                           {{0xE2, 0x80, 0xAA}, {0xE2, 0x80, 0xBF}, 3},
                                           {{0xE2, 0x81, 0x80}, {0xE2, 0xBF, 0xBF}, 3},
                                           {{0xE3, 0x80, 0x80}, {0xEC, 0xBF, 0xBF}, 3},
                                           {{0xED, 0x80, 0x80}, {0xED, 0x9F, 0xBF}, 3},
                                           {{0xEE, 0x80, 0x80}, {0xEF, 0xBF, 0xBF}, 3},
                                           {{0xF0, 0x90, 0x80, 0x80}, {0xF0, 0xBF, 0xBF, 0xBF}, 4},
                                           {{0xF1, 0x80, 0x80, 0x80}, {0xF3, 0xBF, 0xBF, 0xBF}, 4},
                                           {{0xF4, 0x80, 0x80, 0x80}, {0xF4, 0x8F, 0xBF, 0xBF}, 4}};
  std::vector<StateId> at, next;
  for (const Sequence& s : sequences) {
    at.assign(1, state);
    for (std::size_t i = 0; i < s.size; ++i) {
      next.clear();
      for (const StateId each : at) {
        for (unsigned byte = s.first[i]; byte <= s.last[i]; byte = recognizer_.next_edge(each, byte)) {
          const StateId after = recognizer_.step(each, static_cast<std::uint8_t>(byte));
          if (after == StateId::dead) return false;
          if (std::find(next.begin(), next.end(), after) == next.end()) next.push_back(after);
        }
      }
      std::swap(at, next);
    }
    for (const StateId each : at) {
      if (each != before && !f(each)) return false;
    }
  }
  return true;
}

/// Which texts of the slice's characters can follow, whichever they are. A search over the states after them,
/// by one more character each round. It gives up where it would make many states.
inline MaskMaker::Taken MaskMaker::takes(StateId state, const Slice& slice) {
  if (takes_all_.contains(state)) return Taken::all;
  const std::size_t before = recognizer_.size();
  std::vector<StateId> found = {state};
  const auto follow = [&](StateId next) {
    if (!takes_all_.contains(next) && std::find(found.begin(), found.end(), next) == found.end())
      found.push_back(next);
    return found.size() <= max_searched && recognizer_.size() - before <= max_searched;
  };
  std::size_t at = 0;
  for (std::size_t n = 0; n < Slice::some_characters && at < found.size(); ++n) {
    for (const std::size_t end = found.size(); at < end; ++at) {
      if (!for_each_next(found[at], slice, follow)) return Taken::few;
    }
  }
  if (at < found.size()) return Taken::some;
  takes_all_.insert(found.begin(), found.end());
  return Taken::all;
}

/// Whether no character of the slice can follow.
inline bool MaskMaker::no_character(StateId state, const Slice& slice) {
  const auto can = [&](unsigned byte) {
    return recognizer_.step(state, static_cast<std::uint8_t>(byte)) != StateId::dead;
  };
  for (unsigned byte = slice.ascii().at_least(0); byte < 256; byte = slice.ascii().at_least(byte + 1)) {
    if (can(byte)) return false;
  }
  for (unsigned byte = 0xC2; byte <= 0xF4 && slice.has_more_than_ascii(); ++byte) {
    if (can(byte)) return false;
  }
  return true;
}

/// Whether a token begins with this text, and goes on with a byte that can follow.
inline bool MaskMaker::continues(std::string_view text, StateId state) {
  const auto nodes = tokens_->all().nodes();
  std::size_t depth = 0, i = 0, end = nodes.size();
  while (i < end && depth < text.size()) {
    if (nodes[i].byte != static_cast<std::uint8_t>(text[depth]) || tokens_->all().has_equal(i, end)) {
      i = nodes[i].next;
      continue;
    }
    ++depth;
    end = nodes[i].next;
    ++i;
  }
  if (depth < text.size()) return false;
  for (; i < end; i = nodes[i].next) {
    if (recognizer_.step(state, nodes[i].byte) != StateId::dead) return true;
  }
  return false;
}

/// The tokens of a text that may name control tokens.
inline std::vector<TokenId> MaskMaker::tokens_of(std::string_view text) {
  std::vector<TokenId> out;
  while (!text.empty()) {
    const std::size_t mark = text.find('\xFF');
    if (mark != 0) {
      for (const TokenId id : tokens_->tokens_of(text.substr(0, mark))) out.push_back(id);
      text.remove_prefix(std::min(mark, text.size()));
      continue;
    }
    const std::size_t end = text.find(';');
    if (end == std::string_view::npos) break;
    TokenId id = 0;
    for (const char digit : text.substr(1, end - 1)) id = id * 10 + static_cast<TokenId>(digit - '0');
    out.push_back(id);
    text.remove_prefix(end + 1);
  }
  return out;
}

inline std::vector<TokenId> MaskMaker::forced(StateId state) {
  static constexpr std::size_t max_text = 4096;  // bytes at once; the rest is forced after them
  std::string text;
  while (text.size() < max_text && !recognizer_.accepts(state)) {
    const Recognizer::OneByte next = recognizer_.only_byte(state);
    if (!next.found) break;
    text.push_back(static_cast<char>(next.byte));
    state = recognizer_.step(state, next.byte);
  }
  std::vector<TokenId> out;
  const bool ends = recognizer_.accepts(state) && !recognizer_.can_continue(state);
  std::string_view left = text;
  for (const TokenId id : tokens_of(text)) {
    // A token may be the beginning of one that reaches beyond the forced text: the model chooses.
    if (!ends && continues(left, state)) break;
    const std::string_view bytes = tokens_->bytes_of(id);
    if (!left.starts_with(bytes)) break;
    left.remove_prefix(bytes.size());
    out.push_back(id);
  }
  if (ends && left.empty() && tokens_->end()) out.push_back(*tokens_->end());
  return out;
}

}  // namespace mica::constraint::detail
