// SPDX-License-Identifier: Apache-2.0
//
// Idle sessions, in the order of their last use: memory is taken from them first, the least recently used
// first. With its next feed() a session reads its cache from a file, or runs its tokens again.
#pragma once

#include "mica/runtime/session.hpp"

#include <algorithm>
#include <vector>

namespace mica {

/// Refers to sessions and owns none: remove a session before it is fed, moved or destroyed. One thread at a
/// time.
template <StepModel Model>
class IdleSessions {
 public:
  /// The session was used last: it becomes the last to lose its memory.
  void add(Session<Model>& session) {
    remove(session);
    sessions_.push_back({&session, false});
  }
  /// Does nothing where the session is not there.
  void remove(Session<Model>& session) noexcept {
    std::erase_if(sessions_, [&](const Idle& idle) { return idle.session == &session; });
  }
  [[nodiscard]] std::size_t size() const noexcept { return sessions_.size(); }  // parked ones too

  /// Frees the memory of one of them; it is written to a file where its storage has one. False when none has
  /// any.
  [[nodiscard]] bool drop_one() noexcept {
    const auto at = std::find_if(sessions_.begin(), sessions_.end(),
                                 [](const Idle& idle) { return !idle.parked && idle.session->cached() > 0; });
    if (at == sessions_.end()) return false;
    at->parked = at->session->park();
    if (!at->parked) at->session->drop();
    return true;
  }

 private:
  struct Idle {
    Session<Model>* session;
    bool parked;  // of its last use
  };

  std::vector<Idle> sessions_;  // the least recently used first
};

}  // namespace mica
