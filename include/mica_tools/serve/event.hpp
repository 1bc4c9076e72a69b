// SPDX-License-Identifier: Apache-2.0
//
// What happens to an answer, in order: it begins when its prompt was read, gets text, and ends or fails.
//
//   Begun | Text | Text | ... | Ended          or  Failed, at any place
//   Embedded | Ended                           of texts that are embedded
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/runtime/generate_options.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/serve/refusal.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mica::serve {

/// The prompt was read.
struct Begun {
  std::size_t prompt_tokens = 0;  // all of them
  std::size_t cached_tokens = 0;  // of them, not computed
};

/// A token with its text and its probability.
struct ScoredPiece {
  TokenId id = 0;
  float log_probability = 0;          // natural
  std::string bytes;                  // may end within a character
  std::vector<ScoredPiece> top = {};  // the most likely ones at its place, the best first
};

/// More of the answer: whole UTF-8 sequences. Where a client reads slowly, several texts are one event.
struct Text {
  std::string text;                      // appended to what came before
  std::vector<ScoredPiece> tokens = {};  // of Job::scores; their bytes need not end where text does
};

/// All rows of Job::embed, in the order of the texts.
struct Embedded {
  std::vector<float> numbers;  // (rows, width), all finite
  std::size_t width = 0;       // of a row
};

/// The answer is complete.
struct Ended {
  StopReason reason = StopReason::length;  // never one of an error
  std::string stop = {};                   // the text of Job::stop that ended it; empty: none did
  std::size_t prompt_tokens = 0;           // as in Begun
  std::size_t cached_tokens = 0;           // as in Begun
  std::size_t answer_tokens = 0;           // the ending one included
  Timings timings = {};                    // of prompt and answer
  double queued_seconds = 0;               // in the queue
};

/// The answer ends because the server could not go on.
struct Failed {
  std::string message;          // for a person
  Cause cause = Cause::failed;  // invalid: by the request itself, as by a constraint that reached a limit
  std::optional<std::uint64_t> retry_after = {};  // seconds, of Cause::unavailable
};

/// That of a request while other processes take the memory. retry_after: seconds.
[[nodiscard]] inline Failed short_of_memory(std::uint64_t retry_after) {
  return {
      "other processes took the memory of this server, and nothing is left to release; send the request "
      "again later",
      Cause::unavailable, retry_after};
}

/// The same as a refusal.
[[nodiscard]] inline Refusal refusal_of(const Failed& failed) {
  Refusal refusal(failed.cause, failed.message);
  refusal.retry_after = failed.retry_after;
  return refusal;
}

/// That of an error.
[[nodiscard]] inline Failed failed_by(const Error& error) {
  return {error.message(), error.code() == ErrorCode::limit ? Cause::invalid : Cause::failed};
}

/// What an answer reports, in this order: Begun, any number of Text, Ended; or Failed at any time, as the
/// last one. What texts report: Embedded, Ended; or Failed.
using Event = std::variant<Begun, Text, Embedded, Ended, Failed>;

}  // namespace mica::serve
