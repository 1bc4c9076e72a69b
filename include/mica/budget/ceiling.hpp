// SPDX-License-Identifier: Apache-2.0
//
// The ceiling of memory: the requested budget, or what the limits leave if that is less. Limits are
// read once, at the start of a program or when a model is opened; plans, ledgers and messages take the number
// from there. If they were read again later, bytes of the budget itself would count as used.
#pragma once

#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::budget {

/// A budget and where it comes from.
struct Ceiling {
  std::uint64_t bytes = MemoryLimits::unlimited;        ///< the ceiling
  std::optional<std::uint64_t> asked = {};              ///< empty: the limits alone give the number
  std::string_view authority = "the machine's memory";  ///< sets the limit

  /// Whether the ceiling is below the requested budget.
  [[nodiscard]] bool lowered() const noexcept { return asked && *asked > bytes; }
};

/// The smaller one of the requested budget and what the limits leave.
[[nodiscard]] inline Ceiling ceiling_of(std::optional<std::uint64_t> asked,
                                        const MemoryLimits& limits) noexcept {
  return {std::min(asked.value_or(MemoryLimits::unlimited), limits.usable()), asked, limits.authority()};
}

/// "400.0 MiB is more than the control group leaves; 293.0 MiB count": for a lowered one.
[[nodiscard]] inline std::string text(const Ceiling& ceiling) {
  return join(size_text(ceiling.asked.value_or(ceiling.bytes)), " is more than ", ceiling.authority,
              " leaves; ", size_text(ceiling.bytes), " count");
}

}  // namespace mica::budget
