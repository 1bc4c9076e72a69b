// SPDX-License-Identifier: Apache-2.0
//
// expect: ignoring

#include "mica/model/sequence_step.hpp"

#pragma GCC diagnostic error "-Wunused-result"

mica::model::StepStatus step() noexcept;

mica::model::StepStatus run() {
#ifdef MICA_FAIL
  step();
#else
  if (const auto status = step(); status != mica::model::StepStatus::ok) return status;
#endif
  return step();
}
