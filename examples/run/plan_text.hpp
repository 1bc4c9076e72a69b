// SPDX-License-Identifier: Apache-2.0
//
// A plan as people read it.
#pragma once

#include "mica/plan/plan.hpp"

#include <cstdint>
#include <string>

namespace mica::program {

/// A line and a bar for each account that has bytes, the total, and the budget.
[[nodiscard]] std::string plan_text(const plan::Plan& plan, std::uint64_t budget);

}  // namespace mica::program
