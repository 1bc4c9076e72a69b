// SPDX-License-Identifier: Apache-2.0
//
// Several sequences in one step: every weight is read once for the rows of all of them, while each attends to
// its own cache.
//
//   sequences   | a: 1 token | b: 5 tokens | c: 1 token |      rows of the step   | 0 | 1 2 3 4 5 | 6 |
#pragma once

#include "mica/base/log.hpp"
#include "mica/base/token_id.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace mica::model {

/// Tokens that a step appends to one cache.
template <class Cache>
struct SequenceStep {
  Cache* cache = nullptr;           // at most once in a step
  std::span<const TokenId> tokens;  // at least one
  std::size_t drafts = 0;           // the last ones of them, which may be taken back
  bool checkpoint = true;           // whether a recurrent state is copied after several tokens without drafts
};

/// How a step ended: it is noexcept, and returns shortage of memory as a status.
enum class [[nodiscard]] StepStatus : std::uint8_t{
    ok,            ///< the cache has the tokens
    context_full,  ///< the tokens do not fit the context; nothing changed
    no_memory,     ///< the budget has no memory for more tokens, nothing changed; or the step was halted
    write_failed,  ///< older keys and values could not be written, see the log; nothing changed
    read_failed,   ///< weights could not be read; the cache is as before, or at a checkpoint
    rank_lost,     ///< another rank is gone or did not answer in time; the same
};

/// Whether the step failed for all sequences, whatever they are.
[[nodiscard]] constexpr bool ends_all(StepStatus status) noexcept {
  return status == StepStatus::read_failed || status == StepStatus::rank_lost;
}

/// As the end of a sentence, without a full stop.
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
    case StepStatus::rank_lost:
      return "another rank is gone, or did not answer in time";
  }
  return "unknown";
}

/// The same, and for which sequence.
struct [[nodiscard]] StepResult {
  StepStatus status = StepStatus::ok;  // of the whole step: it is refused for all sequences or for none
  std::size_t part = 0;                // the first sequence that was refused, else 0
};

/// The end of a step that another rank ended. The log says so, unless it did.
[[nodiscard]] inline StepResult rank_lost(LogSink log, bool& is_logged) noexcept {
  const StepStatus status = StepStatus::rank_lost;
  try {
    if (!std::exchange(is_logged, true)) log(LogLevel::error, std::string(text(status)));
  } catch (...) {  // no memory for a text
  }
  return {status, 0};
}

}  // namespace mica::model
