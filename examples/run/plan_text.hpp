// SPDX-License-Identifier: Apache-2.0
//
// A plan as text and as a drawing.
#pragma once

#include "mica/gguf/reader.hpp"
#include "mica/plan/plan.hpp"

#include <cstdint>
#include <string>

namespace mica::program {

/// A line and a bar for each account that has bytes, the total, and the budget.
[[nodiscard]] std::string plan_text(const plan::Plan& plan, std::uint64_t budget);

/// A drawing of the planned peak against the context, from 512 tokens to that of the training: a
/// line for each of F16, Q8_0 and Q4_0 of keys and values, the weights below them, the budget across. Cost:
/// some fifty plans.
[[nodiscard]] std::string plan_svg(const gguf::Document& document, const plan::Question& question,
                                   std::uint64_t budget);

}  // namespace mica::program
