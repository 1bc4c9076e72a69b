// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets by name.
#pragma once

#include "mica/kernel/highway/instruction_sets.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::program {

/// The name of the CPU; "unknown" if the system does not have it.
[[nodiscard]] std::string cpu_name();

/// Names of the instruction sets in a set of Highway's bits, the newest first.
[[nodiscard]] std::vector<std::string> target_names(std::int64_t bits, kernel::highway::Beside which);

/// The one that kernels use; "none" where they are compiled for another machine.
[[nodiscard]] std::string chosen_target();

/// Raises ErrorCode::unsupported where the kernels are compiled for another machine.
void check_machine();

/// Disables the instruction sets that are newer than this one in all kernels, for the rest of the process.
/// Call before the first kernel. Raises ErrorCode::usage for a name that is not compiled or that the machine
/// does not have.
void limit_targets(const std::string& best);

}  // namespace mica::program
