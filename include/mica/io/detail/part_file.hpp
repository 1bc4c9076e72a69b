// SPDX-License-Identifier: Apache-2.0
//
// Unfinished files: ".NAME.PID-N.part" beside NAME, where PID is the writer's. The writer holds an advisory
// lock on its part file until its process ends, so a part file that can be locked has no writer. Processes of
// other machines and containers, whose numbers have no meaning here, are recognised by the lock.
#pragma once

#include "mica/base/error.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica/io/detail/path.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace mica::io::detail {

/// The beginning of a name that leaves room for the rest: systems have names of 255 bytes.
[[nodiscard]] inline std::string_view part_stem(std::string_view file) noexcept {
  constexpr std::size_t max_bytes = 225;
  if (file.size() <= max_bytes) return file;
  std::size_t n = max_bytes;
  while (n > 0 && (static_cast<unsigned char>(file[n]) & 0xC0) == 0x80) --n;  // no half of a character
  return file.substr(0, n);
}
[[nodiscard]] inline std::string part_name(std::string_view file, ::pid_t writer, int attempt) {
  return join(".", part_stem(file), ".", writer, "-", attempt, ".part");
}

/// The process that a part of this file belongs to; empty for every other name.
[[nodiscard]] inline std::optional<::pid_t> writer_of(std::string_view part, std::string_view file) {
  const std::size_t at = part_stem(file).size() + 2;
  if (part.size() <= at) return std::nullopt;
  ::pid_t writer = 0;
  int attempt = 0;
  const char* const end = part.data() + part.size();
  const auto pid = std::from_chars(part.data() + at, end, writer);
  if (pid.ec != std::errc() || pid.ptr == end || *pid.ptr != '-') return std::nullopt;
  const auto number = std::from_chars(pid.ptr + 1, end, attempt);
  const bool same = number.ec == std::errc() && writer > 0 && part == part_name(file, writer, attempt);
  return same ? std::optional(writer) : std::nullopt;
}

/// Takes the lock of a new part. False when another process has it, or has removed the part as one without a
/// writer. File systems without locks give none, and parts there are not removed.
[[nodiscard]] inline bool lock_part(const Descriptor& part) noexcept {
  if (::flock(part.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct ::stat status {};
  return ::fstat(part.get(), &status) == 0 && status.st_nlink > 0;
}

/// Removes a regular file of this user that no process has locked.
inline void remove_unlocked(int folder, const char* part) noexcept {
  const Descriptor fd(::openat(folder, part, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct ::stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlinkat(folder, part, 0);
}

/// Removes the parts of a file whose writers have died. What cannot be examined stays.
inline void remove_dead_parts(std::string_view file) noexcept try {
  for_each_beside(file, [name = name_part(file)](int folder, const char* entry) {
    const auto writer = writer_of(entry, name);
    const bool lives = writer && *writer != ::getpid() && (::kill(*writer, 0) == 0 || errno != ESRCH);
    if (writer && !lives) remove_unlocked(folder, entry);
    return true;
  });
} catch (...) {  // no memory for names
}

}  // namespace mica::io::detail
