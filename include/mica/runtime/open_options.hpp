// SPDX-License-Identifier: Apache-2.0
//
// What open() is told besides the file.
#pragma once

#include "mica/base/log.hpp"
#include "mica/exec/pacer.hpp"
#include "mica/model/choice.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace mica {

struct OpenOptions {
  std::size_t n_ctx = 0;                // tokens; 0: what the model was trained for
  std::size_t chunk = 512;              // tokens of one step at most
  std::size_t logits_rows = 1;          // rows of logits computed at a time
  std::size_t threads = 0;              // 0: what affinity and the CPU quota allow
  std::uint64_t memory_bytes = 0;       // the budget; 0: what limits of the process and the machine allow
  model::Choice choice = {};            // KV storage and elements, weights: by name
  std::optional<exec::Pace> pace = {};  // a temperature, a power or a part of the time to keep
  LogSink log = {};
};

}  // namespace mica
