// SPDX-License-Identifier: Apache-2.0
//
// The limits of a server.
#pragma once

#include "mica/base/log.hpp"
#include "mica/plan/plan.hpp"
#include "mica/runtime/memory_watch.hpp"
#include "mica_tools/serve/event.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace mica::serve {

/// An answer that has ended or failed, for a log.
struct AnswerNote {
  std::uint64_t id = 0;           // of its job
  std::string_view model;         // its name
  Ended ended;                    // of a failed answer: its numbers so far
  std::string_view failure = {};  // empty: it ended
};

/// All have values that a machine with little memory can work with.
struct SchedulerOptions {
  std::size_t parallel =
      16;  // the maximum of running answers of a model, one at least; bytes bound them as well
  std::size_t max_waiting = 256;  // jobs of the queue, one at least; more are refused as busy
  /// While answers are written, prompts are read in pieces so small that a step takes about this multiple of
  /// one without a piece. It is a target: a piece has 4 tokens at least.
  double max_stall = 2.0;
  /// Booked for the process while the scheduler lives: at least plan::any_process_bytes.
  std::uint64_t process_bytes = plan::any_process_bytes;
  /// Bytes of memory that the process has now. Those that the ledger does not have are booked for the process
  /// too, and half of plan::any_process_bytes more for what comes until the next call: requests, texts that
  /// clients have not read yet, tails of pages. Called every 5 ms, on the scheduler's thread. Empty: nothing
  /// is measured.
  std::function<std::uint64_t()> resident_bytes = {};
  /// Gives freed memory back to the system. Called on the scheduler's thread: where much is measured that the
  /// ledger does not have, at most once a second, and where memory was released for other processes.
  std::function<void()> release_memory = {};
  /// How long a model stays in memory without answers; empty: until the memory is needed.
  std::optional<std::chrono::seconds> keep_alive = {};
  /// For the states and masks of a constraint, which are booked while its answer runs; n answers of one
  /// request share them.
  std::uint64_t constraint_bytes = std::uint64_t{32} << 20;
  std::string state = {};  // a folder in which prefixes survive a restart; empty: none
  std::uint64_t max_state_bytes = std::uint64_t{8} << 30;  // of the files of a model
  std::string slots = {};  // a folder for slots that clients save; empty: slots are not saved
  /// Called on the scheduler's thread, for answers and for jobs that end in the queue. It may call members of
  /// the scheduler that do not wait for that thread: not model(), not slot(). It does not throw.
  std::function<void(const AnswerNote&)> on_ended = {};
  /// Reads the memory that others leave, and frees weights; models are opened with it too. The scheduler sets
  /// its on_short(). Empty: memory is not watched.
  std::shared_ptr<MemoryWatch> watch = {};
  std::string slots_hint = {};   // how a user sets `slots`, for refusals
  std::string memory_hint = {};  // how a user sets the memory budget, for refusals
  LogSink log = {};              // its context outlives the scheduler
};

}  // namespace mica::serve
