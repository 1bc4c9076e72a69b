// SPDX-License-Identifier: Apache-2.0
//
// Options and results of a generation.
#pragma once

#include "mica/model/sequence_step.hpp"
#include "mica/runtime/stats.hpp"
#include "mica/runtime/token_scores.hpp"
#include "mica/text/token_id.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mica {

/// The action when the context is full.
enum class OnFull : std::uint8_t {
  stop,   ///< the answer ends
  shift,  ///< Session::shift removes tokens, and the answer continues
};

/// The end and the form of an answer. Functions are called on the thread that calls generate(), Batch or
/// Chat; cancel may be set from any thread or a signal.
struct GenerateOptions {
  std::size_t max_tokens = 0;          // 0: no maximum
  bool stop_at_end = true;             // at a token that ends a text or a turn; always with a constraint
  bool show_special = false;           // control tokens appear as text
  std::vector<TokenId> shown = {};     // these do in any case, such as marks of tool calls; ascending
  std::vector<std::string> stop = {};  // texts that end the answer and do not appear in it
  OnFull on_full = OnFull::stop;       // what happens when the context is full
  std::size_t keep_first = 0;          // first tokens of the sequence that a shift keeps
  std::size_t min_drafts = 0;          // the minimum in each step; 0: chosen by DraftPace
  const std::atomic<bool>* cancel = nullptr;  // read before each step: of a prompt, up to `chunk` tokens
  std::function<void()> between_steps = {};   // called before each step: a place for runtime/governed.hpp
  /// Called with each token of the answer, before its text is given; the ending one included.
  std::function<void(const TokenScores&)> on_token = {};
  std::size_t top_tokens = 0;  // the number of most likely tokens that on_token gets
};

/// The reason of the end.
enum class StopReason : std::uint8_t {
  end_of_text,   ///< a token that ends a text or a turn
  length,        ///< max_tokens
  stop_text,     ///< one of GenerateOptions::stop
  cancelled,     ///< by the flag, by on_text, or by Batch::remove
  context_full,  ///< and OnFull::stop, or no token that may be removed
  no_memory,     ///< the budget has no memory for more tokens, or a MemoryWatch halted the step
  write_failed,  ///< older keys and values could not be written to their file
  read_failed,   ///< weights could not be read
  rank_lost      ///< another rank is gone, or did not answer in time
};

/// The enumerator as text.
[[nodiscard]] constexpr std::string_view name(StopReason reason) noexcept {
  constexpr std::string_view names[] = {"end_of_text",  "length",       "stop_text",
                                        "cancelled",    "context_full", "no_memory",
                                        "write_failed", "read_failed",  "rank_lost"};
  return names[static_cast<std::size_t>(reason)];
}

/// An answer.
struct GenerateResult {
  StopReason reason = StopReason::length;  // why it ended
  std::vector<text::TokenId> tokens;       // sampled or forced, the ending one included
  std::size_t forced = 0;                  // of these: forced by a constraint
  std::size_t unfed = 0;                   // of these, the last ones: tokens that the session does not have
  Timings timings;                         // of prompt and answer, in seconds
  DraftCounts drafts;                      // how many were made and accepted
  std::size_t shifted = 0;                 // tokens that context shifts removed from the session
  std::size_t stop = 0;                    // the place in GenerateOptions::stop of the text that ended it
};

namespace detail {

[[nodiscard]] constexpr StopReason reason_of(model::StepStatus status) noexcept {
  switch (status) {
    case model::StepStatus::context_full:
      return StopReason::context_full;
    case model::StepStatus::no_memory:
      return StopReason::no_memory;
    case model::StepStatus::write_failed:
      return StopReason::write_failed;
    case model::StepStatus::rank_lost:
      return StopReason::rank_lost;
    default:
      return StopReason::read_failed;
  }
}

[[nodiscard]] inline bool is_set(const std::atomic<bool>* cancel) noexcept {
  return cancel != nullptr && cancel->load(std::memory_order_relaxed);
}

}  // namespace detail
}  // namespace mica
