// SPDX-License-Identifier: Apache-2.0
//
// Keeps asynchronous signals (Ctrl-C, window size, timers) away from threads that do arithmetic.
#pragma once

#include <csignal>
#include <initializer_list>
#include <pthread.h>

namespace mica::exec::detail {

/// Blocks the calling thread's asynchronous signals until the scope ends. Signals of faulting instructions
/// are not blocked: the process would end without a call of its handler.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, signal);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace mica::exec::detail
