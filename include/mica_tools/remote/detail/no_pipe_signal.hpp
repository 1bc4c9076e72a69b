// SPDX-License-Identifier: Apache-2.0
//
// Without it a lost connection ends the program: cpp-httplib and its TLS library do not block SIGPIPE.
#pragma once

#include <csignal>

namespace mica::remote::detail {

/// During its lifetime a write to a closed connection is an error and sends no signal to this thread.
class NoPipeSignal {
 public:
  NoPipeSignal() noexcept {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    had_ = is_pending();
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() {
    int number = 0;
    if (!had_ && is_pending()) ::sigwait(&pipe_, &number);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  [[nodiscard]] static bool is_pending() noexcept {
    ::sigset_t all;
    return ::sigpending(&all) == 0 && ::sigismember(&all, SIGPIPE) == 1;
  }

  ::sigset_t pipe_, before_;
  bool had_ = false;
};

}  // namespace mica::remote::detail
