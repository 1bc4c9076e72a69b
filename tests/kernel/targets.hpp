// SPDX-License-Identifier: Apache-2.0
//
// Runs a check on every instruction set that was compiled and that this machine has.

#pragma once

#include "mica/kernel/highway/instruction_sets.hpp"

#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <string>

namespace mica::test {

/// Calls f once for each, the name of which is shown when a check fails.
template <class F>
void for_each_target(F&& f) {
  using namespace kernel::highway;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    for (const InstructionSet& set : instruction_sets(target, Beside::here)) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(target);
      ByteDots::use(set.byte_dots);
      MatrixUnit::use(set.matrix_unit);
      INFO("target " << std::string(set.name));
      f();
    }
  }
  ByteDots::use(ByteDots::here());
  MatrixUnit::use(MatrixUnit::here());
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace mica::test
