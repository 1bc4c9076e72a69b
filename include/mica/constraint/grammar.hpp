// SPDX-License-Identifier: Apache-2.0
//
// The constraint of a language: tokens are allowed while their bytes keep the text within it. A mask is found
// by a walk over the vocabulary, in which each node of the trie has a state of the recognizer; tokens for
// free text are allowed as a whole where every character leads to the same state (token_trie.hpp).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/constraint/concept.hpp"
#include "mica/constraint/detail/mask_maker.hpp"
#include "mica/constraint/recognizer.hpp"
#include "mica/constraint/token_trie.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::constraint {

/// How a grammar is used.
struct GrammarOptions {
  Limits limits = {};
  bool force = true;                 // forced() gives tokens; false: each one is sampled
  budget::Ledger* ledger = nullptr;  // where limits.max_bytes are booked, while the grammar or a copy lives
};

/// A text of a language. Copies share the states that were found so far.
class Grammar {
 public:
  // Required by Constraint
  static constexpr bool constrains = true;

  /// Raises ErrorCode::limit, and ErrorCode::budget where the ledger has no memory for the limit.
  Grammar(std::shared_ptr<const TokenTrie> tokens, Language language, const GrammarOptions& options = {})
      : maker_(std::make_shared<detail::MaskMaker>(std::move(tokens), std::move(language), options.limits,
                                                   options.ledger)),
        force_(options.force) {
    states_.push_back(maker_->recognizer().start());
  }

  [[nodiscard]] constexpr bool active() const noexcept { return true; }
  [[nodiscard]] bool allowed(TokenMask& mask) noexcept {
    return guarded([&] { mask = maker_->mask(states_.back()); });
  }
  [[nodiscard]] bool advance(TokenId token) noexcept {
    StateId next = StateId::dead;
    const TokenTrie& tokens = maker_->tokens();
    if (token >= tokens.n_vocab()) return false;
    if (tokens.is_end(token)) {
      if (!accepts()) return false;
      states_.push_back(StateId::dead);  // nothing follows
      return true;
    }
    const std::string_view bytes = tokens.bytes_of(token);
    if (bytes.empty() || bytes.size() > Trie::max_bytes) return false;  // in no mask
    const bool known = guarded([&] {
      next = maker_->after(states_.back(), bytes);
      if (next != StateId::dead) states_.push_back(next);
    });
    return known && next != StateId::dead;
  }
  void rewind(std::size_t n) noexcept {
    MICA_ASSERT(n < states_.size());
    states_.resize(states_.size() - n);
  }
  [[nodiscard]] std::size_t forced(std::span<TokenId> tokens) noexcept {
    std::size_t n = 0;
    if (!force_ || tokens.empty()) return 0;
    static_cast<void>(guarded([&] {
      const std::vector<TokenId> found = maker_->forced(states_.back());
      n = std::min(found.size(), tokens.size());
      std::copy_n(found.begin(), n, tokens.begin());
    }));
    return n;
  }
  [[nodiscard]] std::string why() const { return maker_->failure(); }

  // Specific to Grammar
  /// Whether the text may end here.
  [[nodiscard]] bool accepts() const noexcept { return maker_->recognizer().accepts(states_.back()); }
  /// Advances by bytes that are no token's; false, and nothing changed, where they are not allowed. They
  /// count as one token for rewind().
  [[nodiscard]] bool advance(std::string_view bytes) noexcept {
    StateId next = StateId::dead;
    const bool known = guarded([&] {
      next = maker_->after(states_.back(), bytes);
      if (next != StateId::dead) states_.push_back(next);
    });
    return known && next != StateId::dead;
  }
  [[nodiscard]] const TokenTrie& tokens() const noexcept { return maker_->tokens(); }
  /// Bytes of the states and masks that were found so far, of all copies together.
  [[nodiscard]] std::size_t bytes() const noexcept { return maker_->bytes(); }

 private:
  /// Whether f() did not raise; if it did, why() says the reason.
  template <class F>
  [[nodiscard]] bool guarded(F&& f) noexcept {
    if (!maker_->failure().empty()) return false;
    try {
      f();
      return true;
    } catch (const std::exception& error) {
      maker_->fail(error.what());
      return false;
    }
  }

  std::shared_ptr<detail::MaskMaker> maker_;
  std::vector<StateId> states_;  // after each token, the first before all
  bool force_;
};
static_assert(Constraint<Grammar>);

}  // namespace mica::constraint
