// SPDX-License-Identifier: Apache-2.0
//
// Constraints of a test's own, over the ids of byte_tokenizer().

#pragma once

#include "mica/constraint/concept.hpp"
#include "runtime/scripted_model.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test {

/// The ids of a text.
inline std::vector<TokenId> ids_of(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(first_byte + static_cast<unsigned char>(c));
  return ids;
}

/// Even ids, and the end.
class Even : public constraint::Unforced {
 public:
  // Required by Constraint
  [[nodiscard]] bool allowed(constraint::TokenMask& mask) noexcept {
    for (TokenId id = 0; id < mask.size(); ++id)
      if (allows(id)) mask.insert(id);
    return true;
  }
  [[nodiscard]] bool advance(TokenId id) noexcept { return allows(id); }
  void rewind(std::size_t /*n*/) noexcept {}

  [[nodiscard]] static bool allows(TokenId id) noexcept { return id % 2 == 0 || id == scripted_eos; }
};
static_assert(Constraint<Even>);

/// One of some texts, and its end. Bytes that all of them have next are forced, if `forces`.
class OneOf {
 public:
  explicit OneOf(const std::vector<std::string>& texts, bool forces = true) : forces_(forces) {
    for (const std::string& text : texts) {
      texts_.push_back(ids_of(text));
      texts_.back().push_back(scripted_eos);
    }
  }

  // Required by Constraint
  static constexpr bool constrains = true;
  [[nodiscard]] bool active() const noexcept { return true; }
  [[nodiscard]] bool allowed(constraint::TokenMask& mask) noexcept {
    ++masks;
    for_each_next(so_far_, [&](TokenId id) { mask.insert(id); });
    return masks <= max_masks;
  }
  [[nodiscard]] bool advance(TokenId token) noexcept {
    bool found = false;
    for_each_next(so_far_, [&](TokenId id) { found = found || id == token; });
    if (found) so_far_.push_back(token);
    return found;
  }
  void rewind(std::size_t n) noexcept { so_far_.resize(so_far_.size() - n); }
  [[nodiscard]] std::size_t forced(std::span<TokenId> tokens) noexcept {
    std::vector<TokenId> text = so_far_;
    while (forces_ && text.size() < so_far_.size() + tokens.size()) {
      std::vector<TokenId> next;
      for_each_next(text, [&](TokenId id) { next.push_back(id); });
      if (next.empty() || std::count(next.begin(), next.end(), next[0]) != std::ssize(next)) break;
      tokens[text.size() - so_far_.size()] = next[0];
      text.push_back(next[0]);
    }
    return text.size() - so_far_.size();
  }
  [[nodiscard]] std::string why() const { return masks > max_masks ? "no more masks" : ""; }

  [[nodiscard]] std::span<const TokenId> so_far() const noexcept { return so_far_; }

  std::size_t masks = 0;                                      // that were made
  std::size_t max_masks = static_cast<std::size_t>(1) << 20;  // more are a failure

 private:
  template <class F>
  void for_each_next(const std::vector<TokenId>& begin, F&& f) const {
    for (const auto& text : texts_) {
      if (text.size() > begin.size() && std::equal(begin.begin(), begin.end(), text.begin()))
        f(text[begin.size()]);
    }
  }

  std::vector<std::vector<TokenId>> texts_;
  std::vector<TokenId> so_far_;
  bool forces_;
};
static_assert(Constraint<OneOf>);

}  // namespace mica::test
