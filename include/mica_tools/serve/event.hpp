// SPDX-License-Identifier: Apache-2.0
//
// What happens to an answer, in order: it begins when its prompt was read, gets text, and ends or fails.
//
//   Begun | Text | Text | ... | Ended          or  Failed, at any place
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/runtime/generate_options.hpp"
#include "mica/runtime/stats.hpp"

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace mica::serve {

/// The prompt was read. cached: those of its tokens that needed no computation.
struct Begun {
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;
};

/// A token with its text and the natural logarithm of its probability.
struct ScoredPiece {
  TokenId id = 0;
  float log_probability = 0;
  std::string bytes;                  // may end within a character
  std::vector<ScoredPiece> top = {};  // the most likely ones at its place, the best first
};

/// More of the answer: whole UTF-8 sequences. Where a client reads slowly, several texts are one event.
struct Text {
  std::string text;
  std::vector<ScoredPiece> tokens = {};  // of Job::scores; their bytes need not end where text does
};

/// The answer is complete.
struct Ended {
  StopReason reason = StopReason::length;
  std::string stop = {};  // the text of Job::stop that ended it; empty: none did
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;
  std::size_t answer_tokens = 0;  // the ending one included
  Timings timings = {};           // of prompt and answer
  double queued_seconds = 0;      // before its prompt was begun
};

/// The answer ends because the server could not go on.
struct Failed {
  std::string message;
};

using Event = std::variant<Begun, Text, Ended, Failed>;

}  // namespace mica::serve
