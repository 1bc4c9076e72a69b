// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that kernels are compiled for, by name: Highway's targets, and twice those that
// machines have with and without something that Highway has no name for (machine_options.hpp).
#pragma once

#include "mica/kernel/highway.hpp"
#include "mica/kernel/highway/machine_options.hpp"

#include <hwy/detect_targets.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace mica::kernel::highway {

/// One of them, as machines have it.
struct InstructionSet {
  std::string_view name;
  std::int64_t target = 0;   // Highway's bit
  bool byte_dots = false;    // with them, where the target leaves that open
  bool matrix_unit = false;  // with AMX
};

/// Which of the things beside a target count.
enum class Beside {
  all,   // that are compiled
  here,  // that the machine has
  used,  // that kernels use now
};

/// The instruction sets in a set of Highway's bits, the best first.
[[nodiscard]] inline std::vector<InstructionSet> instruction_sets(std::int64_t bits, Beside which) {
  const auto counts = [which](bool here, bool used) {
    return which == Beside::all || (which == Beside::here ? here : used);
  };
  const bool unit = counts(MatrixUnit::here(), MatrixUnit::used());
  bool dots = counts(ByteDots::here(), ByteDots::used());
  std::vector<InstructionSet> sets;
  for (std::int64_t rest = bits; rest != 0; rest &= rest - 1) {  // better sets have lower bits
    const std::int64_t target = rest & -rest;
    const std::string_view name = hwy::TargetName(target);
    if (unit && MatrixUnit::beside(name)) sets.push_back({MatrixUnit::name, target, false, true});
    if (dots && ByteDots::beside(name)) {
      sets.push_back({ByteDots::name, target, true, false});
      dots = false;  // of the best one
    }
    sets.push_back({name, target});
  }
  return sets;
}

/// What kernels of this program can use on this machine, the best first. Empty where they are compiled for
/// other machines: then they must not be called.
[[nodiscard]] inline std::vector<InstructionSet> instruction_sets() {
  return instruction_sets(hwy::SupportedTargets() & compiled_targets(), Beside::here);
}

/// Disables better instruction sets in all kernels, for the rest of the process. Call it before any kernel.
inline void limit_to(const InstructionSet& set) {
  ByteDots::use(set.byte_dots);
  MatrixUnit::use(set.matrix_unit);
  hwy::DisableTargets(set.target - 1);
}

}  // namespace mica::kernel::highway
