// SPDX-License-Identifier: Apache-2.0
//
// Several sequences in one step: every weight is read once for the rows of all of them, while each attends to
// its own cache.
//
//   sequences   | a: 1 token | b: 5 tokens | c: 1 token |      rows of the step   | 0 | 1 2 3 4 5 | 6 |
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/model/step_status.hpp"

#include <cstddef>
#include <span>

namespace mica::model {

/// Tokens that a step appends to one cache.
template <class Cache>
struct SequenceStep {
  Cache* cache = nullptr;
  std::span<const TokenId> tokens;  // at least one
};

/// How a step ended.
struct [[nodiscard]] StepResult {
  StepStatus status = StepStatus::ok;
  std::size_t part = 0;  // the first one without memory, where that is the status
};

}  // namespace mica::model
