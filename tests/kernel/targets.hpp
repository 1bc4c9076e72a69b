// SPDX-License-Identifier: Apache-2.0
//
// Runs a check on every instruction set that was compiled and that this machine has.

#pragma once

#include <doctest/doctest.h>
#include <hwy/targets.h>

namespace mica::test {

/// Calls f once per target, the name of which is shown when a check fails.
template <class F>
void for_each_target(F&& f) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    INFO("target " << hwy::TargetName(target));
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace mica::test
