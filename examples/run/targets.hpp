// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets by name.
#pragma once

#include "mica/kernel/highway/instruction_sets.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::program {

/// The name of the CPU, where the system tells; "unknown" elsewhere.
[[nodiscard]] std::string cpu_name();

/// Names of the instruction sets in a set of Highway's bits, the best first.
[[nodiscard]] std::vector<std::string> target_names(std::int64_t bits, kernel::highway::Beside which);

/// The one that kernels use.
[[nodiscard]] std::string chosen_target();

/// Takes the instruction sets that are better than this one away from all kernels, for the rest of the
/// process. Call before the first kernel. Raises ErrorCode::usage for a name that is not compiled or that the
/// machine does not have.
void limit_targets(const std::string& best);

}  // namespace mica::program
