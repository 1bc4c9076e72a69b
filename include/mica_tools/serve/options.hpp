// SPDX-License-Identifier: Apache-2.0
//
// The limits of a server.
#pragma once

#include "mica/base/log.hpp"
#include "mica_tools/serve/event.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace mica::serve {

/// An answer that has ended or failed, for a log.
struct AnswerNote {
  std::uint64_t id = 0;  // of its job
  std::string_view model;
  Ended ended;                    // of a failed answer: its numbers so far
  std::string_view failure = {};  // empty: it ended
};

struct SchedulerOptions {
  std::size_t parallel = 16;      // the maximum of running answers of a model; bytes bound them as well
  std::size_t max_waiting = 256;  // jobs in line; more are refused as busy
  /// A step with tokens of a prompt takes at most this multiple of one without, while others write.
  double max_stall = 2.0;
  /// How long a model stays in memory without answers; empty: until memory is needed.
  std::optional<std::chrono::seconds> keep_alive = {};
  std::string state = {};  // a folder in which prefixes survive a restart; empty: none
  std::uint64_t max_state_bytes = std::uint64_t{8} << 30;  // of the files of a model
  std::string slots = {};  // a folder for slots that clients save; empty: slots are not saved
  /// Called on the scheduler's thread, for answers and for jobs that end in line. Calls no member of the scheduler
  /// that waits: model(), slot().
  std::function<void(const AnswerNote&)> on_ended = {};
  std::string slots_hint = {};   // how a user sets `slots`, for refusals
  std::string memory_hint = {};  // how a user sets the memory budget, for refusals
  LogSink log = {};              // its context outlives the scheduler
};

}  // namespace mica::serve
