// SPDX-License-Identifier: Apache-2.0
//
// The two things that a service manager and its services say to each other (sd_notify(3), sd_listen_fds(3)): here is
// your socket, and I am ready. Both are a few bytes, so no library is needed. Elsewhere nothing happens.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace mica::program {

/// The first socket that a service manager has handed over; -1: none.
[[nodiscard]] inline int inherited_socket() {
  constexpr int first = 3;
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  const bool ours =
      pid != nullptr && count != nullptr && std::to_string(::getpid()) == pid && std::atoi(count) > 0;
  return ours ? first : -1;
}

/// Tells the service manager, if there is one: "READY=1", "STOPPING=1".
inline void notify_manager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un to{};
  if (path == nullptr || path[0] == '\0' || std::strlen(path) >= sizeof to.sun_path) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path, std::strlen(path));
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';  // an abstract name
  const int from = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  if (from < 0) return;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  static_cast<void>(::sendto(from, state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&to), bytes));
  ::close(from);
}

}  // namespace mica::program
