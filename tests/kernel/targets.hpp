// SPDX-License-Identifier: Apache-2.0
//
// Runs a check on every instruction set that was compiled and that this machine has.

#pragma once

#include "mica/kernel/highway/byte_dots.hpp"

#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <string>

namespace mica::test {

/// Calls f once per target, the name of which is shown when a check fails; where a target is compiled with and without
/// dots of four bytes, once for each that the machine has.
template <class F>
void for_each_target(F&& f) {
  using kernel::highway::ByteDots;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (const bool dots : {false, true}) {
      if (dots && !(ByteDots::beside(hwy::TargetName(target)) && ByteDots::here())) continue;
      ByteDots::use(dots);
      INFO("target " << (dots ? std::string(ByteDots::name) : hwy::TargetName(target)));
      f();
    }
  }
  ByteDots::use(ByteDots::here());
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace mica::test
