// SPDX-License-Identifier: Apache-2.0
//
// The result of a step. A step is noexcept, and returns shortage of memory as a status.
#pragma once

#include <cstdint>
#include <string_view>

namespace mica::model {

enum class [[nodiscard]] StepStatus : std::uint8_t{
    ok,
    context_full,  ///< the cache has n_ctx tokens; nothing changed
    no_memory,     ///< the cache may not grow within the budget; nothing changed
    write_failed,  ///< older keys and values could not be written, see the log; nothing changed
    read_failed,   ///< weights could not be read; the cache is as before, or at a checkpoint
};

[[nodiscard]] constexpr std::string_view text(StepStatus status) noexcept {
  switch (status) {
    case StepStatus::ok:
      return "ok";
    case StepStatus::context_full:
      return "the context is full";
    case StepStatus::no_memory:
      return "no memory is left for the KV cache within the budget";
    case StepStatus::write_failed:
      return "keys and values could not be written to their file";
    case StepStatus::read_failed:
      return "weights could not be read";
  }
  return "unknown";
}

}  // namespace mica::model
