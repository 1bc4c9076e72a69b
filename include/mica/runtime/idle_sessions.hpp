// SPDX-License-Identifier: Apache-2.0
//
// Sessions that nobody is feeding, in the order in which they were left: who needs memory takes it from them first, from the
// one that was left longest ago. A session that lost its cache runs its tokens again with its next feed().
#pragma once

#include "mica/runtime/session.hpp"

#include <algorithm>
#include <vector>

namespace mica {

/// Refers to sessions and owns none: a session is taken out before it is fed, moved or destroyed.
template <StepModel Model>
class IdleSessions {
 public:
  void add(Session<Model>& session) {
    remove(session);
    sessions_.push_back(&session);
  }
  void remove(Session<Model>& session) noexcept { std::erase(sessions_, &session); }
  [[nodiscard]] std::size_t size() const noexcept { return sessions_.size(); }

  /// One of them gives its memory back; false when none has any.
  [[nodiscard]] bool drop_one() noexcept {
    const auto at = std::find_if(sessions_.begin(), sessions_.end(),
                                 [](const Session<Model>* session) { return session->cached() > 0; });
    if (at == sessions_.end()) return false;
    (*at)->drop();
    return true;
  }

 private:
  std::vector<Session<Model>*> sessions_;  // who was left longest ago first
};

}  // namespace mica
