// SPDX-License-Identifier: Apache-2.0
//
// Waits until the kernel says that memory becomes short, or until a time is over. What the kernel does not
// offer or does not allow is left out: then the time alone decides.
//
//   control group, v1   an eventfd for each of some thresholds of memory.usage_in_bytes (cgroup.event_control)
//   control group, v2   a change of memory.events: high, max, oom
//   both, machine       a trigger of pressure (Documentation/accounting/psi.rst): a task waited for memory for
//                       50 ms of 2 s, the smallest window that needs no privileges
#pragma once

#include "mica/budget/detail/cgroup.hpp"
#include "mica/io/detail/descriptor.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

namespace mica::budget::detail {

class PressureEvents {
 public:
  /// root: stands before /proc and /sys. Files that cannot be opened are left out.
  explicit PressureEvents(const std::string& root) {
#if defined(__linux__)
    add(io::detail::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), POLLIN);
    for (const std::string& folder : cgroup_folders(root, "memory")) add_thresholds(folder);
    for (const std::string& folder : cgroup_folders(root, "")) {
      add(io::detail::Descriptor(::open((folder + "/memory.events").c_str(), O_RDONLY | O_CLOEXEC)), POLLPRI);
      add_trigger(folder + "/memory.pressure");
    }
    add_trigger(root + "/proc/pressure/memory");
#else
    static_cast<void>(root);
    add({}, 0);
#endif
  }

  /// Returns after an event, stop(), or the time.
  void wait(std::chrono::milliseconds time) noexcept {
    if (::poll(waits_.data(), static_cast<::nfds_t>(waits_.size()), static_cast<int>(time.count())) <= 0)
      return;
    std::array<char, 4096> text;
    for (::pollfd& each : waits_) {
      if (each.revents == 0) continue;
      // Reading an eventfd resets it, and reading memory.events arms it again.
      [[maybe_unused]] const ::ssize_t got = (each.events & POLLIN) != 0
                                                 ? ::read(each.fd, text.data(), text.size())
                                                 : ::pread(each.fd, text.data(), text.size(), 0);
      if ((each.revents & (POLLERR | POLLNVAL)) != 0 && (each.events & POLLPRI) == 0) each.fd = -1;
    }
  }
  /// Ends a wait(). From any thread.
  void stop() noexcept {
    constexpr std::uint64_t one = 1;
    static_cast<void>(::write(waits_[0].fd, &one, sizeof one) == sizeof one);
  }

 private:
  void add(io::detail::Descriptor file, int events) {
    if (!file && !files_.empty()) return;
    waits_.push_back({file.get(), static_cast<short>(events), 0});
    files_.push_back(std::move(file));
  }
  void add_trigger(const std::string& path) {
    io::detail::Descriptor file(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    constexpr std::string_view trigger("some 50000 2000000", 19);  // with its terminating zero
    if (!file || ::write(file.get(), trigger.data(), trigger.size()) < 0) return;
    add(std::move(file), POLLPRI);
  }
#if defined(__linux__)
  void add_thresholds(const std::string& folder) {
    const auto limit = read_number(folder + "/memory.limit_in_bytes");
    if (!limit || *limit > std::uint64_t{1} << 60) return;
    for (const std::uint64_t part : {8, 16, 32, 64}) {  // of the limit that is left
      io::detail::Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      io::detail::Descriptor use(::open((folder + "/memory.usage_in_bytes").c_str(), O_RDONLY | O_CLOEXEC));
      io::detail::Descriptor control(
          ::open((folder + "/cgroup.event_control").c_str(), O_WRONLY | O_CLOEXEC));
      if (!event || !use || !control) return;
      std::array<char, 64> line;
      const int n = std::snprintf(line.data(), line.size(), "%d %d %llu", event.get(), use.get(),
                                  static_cast<unsigned long long>(*limit - *limit / part));
      if (::write(control.get(), line.data(), static_cast<std::size_t>(n)) != n) return;
      add(std::move(event), POLLIN);
    }
  }
#endif

  std::vector<io::detail::Descriptor> files_;
  std::vector<::pollfd> waits_;  // the first one is stop()'s
};

}  // namespace mica::budget::detail
