// SPDX-License-Identifier: Apache-2.0
//
// Neither cpp-httplib nor the TLS library below it keeps a lost connection from ending the program.
#pragma once

#include <csignal>

namespace mica::remote::detail {

/// While it lives, writing to a connection that the other side has closed is an error and no signal of this
/// thread.
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
