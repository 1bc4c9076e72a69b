// SPDX-License-Identifier: Apache-2.0
//
// The minimal Constraint: it allows no token twice in a row.

#pragma once

#include "mica/constraint/concept.hpp"

#include <span>
#include <string>
#include <vector>

namespace mica::archetype {

class Constraint {
 public:
  // Required by Constraint
  static constexpr bool constrains = true;
  [[nodiscard]] bool active() const noexcept { return true; }
  [[nodiscard]] bool allowed(mica::constraint::TokenMask& mask) noexcept {
    for (mica::TokenId id = 0; id < mask.size(); ++id)
      if (allows(id)) mask.insert(id);
    return true;
  }
  [[nodiscard]] bool advance(mica::TokenId token) noexcept {
    if (!allows(token)) return false;
    text_.push_back(token);
    return true;
  }
  void rewind(std::size_t n) noexcept { text_.resize(text_.size() - n); }
  [[nodiscard]] std::size_t forced(std::span<mica::TokenId> /*tokens*/) noexcept { return 0; }
  [[nodiscard]] std::string why() const { return {}; }

 private:
  [[nodiscard]] bool allows(mica::TokenId id) const noexcept { return text_.empty() || text_.back() != id; }

  std::vector<mica::TokenId> text_;
};
static_assert(mica::Constraint<Constraint>);

}  // namespace mica::archetype
