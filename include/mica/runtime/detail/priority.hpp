// SPDX-License-Identifier: Apache-2.0
//
// Priorities of threads while memory is short: the thread that watches, and all threads of a process that has
// to end soon, run before those of busy neighbours. Linux alone, and where the system allows it
// (CAP_SYS_NICE, ulimit -e); elsewhere nothing happens. With autogroups (man 7 sched) Linux first divides the
// time of processors among login sessions, so the nice value of the login session matters too.
#pragma once

#include "mica/io/detail/descriptor.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__linux__)
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
#if defined(__linux__)
  std::array<char, 64> text;  // "/autogroup-360 nice 0"
  const io::detail::Descriptor file(::open("/proc/self/autogroup", O_RDONLY | O_CLOEXEC));
  const ::ssize_t size = file ? ::read(file.get(), text.data(), text.size() - 1) : 0;
  text[static_cast<std::size_t>(std::max<::ssize_t>(size, 0))] = '\0';
  if (const char* const number = std::strstr(text.data(), "nice "))
    return static_cast<int>(std::strtol(number + 5, nullptr, 10));
#endif
  return 0;
}
inline void set_session_priority([[maybe_unused]] int nice) noexcept {
#if defined(__linux__)
  const io::detail::Descriptor file(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
  std::array<char, 8> text;
  const int size = std::snprintf(text.data(), text.size(), "%d", nice);
  [[maybe_unused]] const bool written =
      file && ::write(file.get(), text.data(), static_cast<std::size_t>(size)) > 0;
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
