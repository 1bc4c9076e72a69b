// SPDX-License-Identifier: Apache-2.0
//
// The minimal Drafter: it expects every token twice.

#pragma once

#include "mica/runtime/drafter.hpp"

namespace mica::archetype {

class Drafter {
 public:
  Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  // Required by Drafter
  [[nodiscard]] std::size_t max_drafts() const noexcept { return 1; }
  [[nodiscard]] std::size_t draft(std::span<const mica::TokenId> /*before*/, mica::TokenId last,
                                  std::span<mica::TokenId> drafts) noexcept {
    if (drafts.empty()) return 0;
    drafts[0] = last;
    return 1;
  }
};
static_assert(mica::Drafter<Drafter>);

}  // namespace mica::archetype
