// SPDX-License-Identifier: Apache-2.0
//
// A job in the queue, and what becomes of it when it is to be admitted.
#pragma once

#include "mica/runtime/stats.hpp"
#include "mica_tools/serve/answer.hpp"
#include "mica_tools/serve/job.hpp"
#include "mica_tools/serve/options.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace mica::serve {

/// It does not keep its model in memory.
struct Waiting {
  std::uint64_t id = 0;
  Job job;                         // without its model
  std::shared_ptr<Answer> answer;  // that its client reads
  Stopwatch since_submit = {};     // and with it the time in the queue
  bool constrained = false;        // its constraint was made, and is booked, when it was tried before
};

/// Ends a job in the queue: as failed or, without a failure, as cancelled.
inline void end_waiting(const Waiting& waiting, std::string_view model, const Failed& failure,
                        const SchedulerOptions& options) {
  Ended ended;
  ended.reason = StopReason::cancelled;
  ended.prompt_tokens = tokens_of(waiting.job);
  ended.queued_seconds = waiting.since_submit.seconds();
  if (options.on_ended) options.on_ended({waiting.id, model, ended, failure.message});
  waiting.answer->put(failure.message.empty() ? Event(ended) : Event(failure));
}

/// What became of a job that was to be admitted: to get its first step next.
enum class Admission : std::uint8_t {
  admitted,      ///< or ended as failed, by an error of its own
  all_parallel,  ///< SchedulerOptions::parallel answers are running
  no_memory,     ///< the ledger has not enough for it
};

}  // namespace mica::serve
