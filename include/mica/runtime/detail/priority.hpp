// SPDX-License-Identifier: Apache-2.0
//
// Priorities of threads while memory is short: the thread that watches, and all threads of a process that has
// to end soon, run before those of busy neighbours. Linux alone, and where the system allows it
// (CAP_SYS_NICE, ulimit -e); elsewhere nothing happens. With autogroups (man 7 sched) Linux first divides the
// time of processors among login sessions, so the nice value of the login session matters too.
#pragma once

#include <cstddef>
#include <cstdlib>

#if defined(__linux__)
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mica::detail {

inline constexpr int hurried = -10;  // a nice value: a lower one is a higher priority

/// The number of this thread.
[[nodiscard]] inline int thread_number() noexcept {
#if defined(__linux__)
  return static_cast<int>(::syscall(SYS_gettid));
#else
  return 0;
#endif
}

/// The nice value of a thread; 0: of this one.
[[nodiscard]] inline int priority_of([[maybe_unused]] int thread) noexcept {
#if defined(__linux__)
  return ::getpriority(PRIO_PROCESS, static_cast<::id_t>(thread));
#else
  return 0;
#endif
}
inline void set_priority([[maybe_unused]] int thread, [[maybe_unused]] int nice) noexcept {
#if defined(__linux__)
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<::id_t>(thread), nice));
#endif
}

/// The nice value of the login session of this process; 0 without autogroups.
[[nodiscard]] inline int session_priority() noexcept {
  int nice = 0;
#if defined(__linux__)
  char text[64] = {};  // "/autogroup-360 nice 0"
  const int file = ::open("/proc/self/autogroup", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const bool some = ::read(file, text, sizeof text - 1) > 0;
  ::close(file);
  const char* const number = some ? std::strstr(text, "nice ") : nullptr;
  if (number != nullptr) nice = static_cast<int>(std::strtol(number + 5, nullptr, 10));
#endif
  return nice;
}
inline void set_session_priority([[maybe_unused]] int nice) noexcept {
#if defined(__linux__)
  const int file = ::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[8] = {};
  const int size = std::snprintf(text, sizeof text, "%d", nice);
  if (::write(file, text, static_cast<std::size_t>(size)) < 0) errno = 0;
  ::close(file);
#endif
}

/// Sets the nice value of all threads of the process but `thread`. Cost: some microseconds for each.
inline void set_priorities_but_of([[maybe_unused]] int thread, [[maybe_unused]] int nice) noexcept {
#if defined(__linux__)
  ::DIR* const tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const ::dirent* const task = ::readdir(tasks)) {
    const int number = static_cast<int>(std::strtol(task->d_name, nullptr, 10));
    if (number > 0 && number != thread) set_priority(number, nice);
  }
  ::closedir(tasks);
#endif
}

}  // namespace mica::detail
