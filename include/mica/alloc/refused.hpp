// SPDX-License-Identifier: Apache-2.0
//
// Why an allocator refused bytes, for error texts: the budget, with its number, the system below it, or an
// allocator without a budget.
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/base/assert.hpp"

#include <cstdint>
#include <string>

namespace mica::alloc {

/// "do not fit the memory budget of 6400000 bytes, of which 120 are left"; "were refused by the system" where
/// the budget has room; "were refused by the allocator" where there is no budget. Call it right after the
/// refusal, before any bytes are released.
template <Allocator A>
[[nodiscard]] std::string refused(const A& allocator, std::uint64_t bytes) {
  const budget::Ledger* const ledger = allocator.ledger();
  if (ledger == nullptr) return "were refused by the allocator";
  if (bytes <= ledger->left()) return "were refused by the system";
  return join("do not fit the memory budget of ", ledger->limit(), " bytes, of which ", ledger->left(),
              " are left");
}

}  // namespace mica::alloc
