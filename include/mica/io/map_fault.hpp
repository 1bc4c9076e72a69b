// SPDX-License-Identifier: Apache-2.0
//
// Names the file of a SIGBUS: a page of a mapped file cannot be read, because the file was truncated or its
// disk failed. The library installs no handler, because signals belong to the program. A program that wants
// an error text installs one:
//
//   void on_sigbus(int number, siginfo_t* info, void*) {
//     char text[mica::io::fault_text_bytes];
//     const std::size_t n = mica::io::fault_text(info->si_addr, text);
//     if (n != 0) {
//       ::write(STDERR_FILENO, text, n);
//       ::_exit(1);
//     }
//     ::signal(number, SIG_DFL);  // no mapped file: the fault repeats and ends the process
//   }
//
// Limit: the handler can do nothing else. The faulting instruction cannot continue, and code that saves a
// file is not async-signal-safe.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::io {

/// No text of fault_text() is longer.
inline constexpr std::size_t fault_text_bytes = 4608;

namespace detail {

/// A text in memory of the caller; what exceeds its capacity is left out. Async-signal-safe.
class FixedText {
 public:
  explicit FixedText(std::span<char> to) noexcept : to_(to) {}

  void add(std::string_view text) noexcept {
    const std::size_t n = std::min(text.size(), to_.size() - size_);
    std::memcpy(to_.data() + size_, text.data(), n);
    size_ += n;
  }
  void add(std::uint64_t number) noexcept {
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    add(std::string_view(digits + at, sizeof digits - at));
  }
  /// A name of unknown origin: control bytes become question marks.
  void add_name(std::string_view name) noexcept {
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      const char shown = byte < 0x20 || byte == 0x7F ? '?' : c;
      add(std::string_view(&shown, 1));
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::span<char> to_;
  std::size_t size_ = 0;
};

/// A line of /proc/self/maps: "begin-end rights offset device inode   path".
struct MapLine {
  std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
  std::string_view path;

  explicit MapLine(std::string_view line) noexcept : rest_(line) {
    begin = number(16, '-');
    end = number(16, ' ');
    skip_word();
    offset = number(16, ' ');
    skip_word();
    inode = number(10, ' ');
    path = rest_.substr(std::min(rest_.find_first_not_of(' '), rest_.size()));
  }

 private:
  std::uint64_t number(unsigned base, char end_of_it) noexcept {
    std::uint64_t value = 0;
    std::size_t n = 0;
    for (; n < rest_.size() && rest_[n] != end_of_it; ++n) {
      const char c = rest_[n];
      value = value * base + static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    rest_.remove_prefix(std::min(n + 1, rest_.size()));
    return value;
  }
  void skip_word() noexcept { rest_.remove_prefix(std::min(rest_.find(' '), rest_.size() - 1) + 1); }

  std::string_view rest_;
};

/// Lines of a file, one at a time, a zero byte after each; cut to the line's buffer. Async-signal-safe.
class SignalSafeLines {
 public:
  explicit SignalSafeLines(const char* path) noexcept : fd_(::open(path, O_RDONLY | O_CLOEXEC)) {}
  SignalSafeLines(const SignalSafeLines&) = delete;
  SignalSafeLines& operator=(const SignalSafeLines&) = delete;
  ~SignalSafeLines() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] bool next(std::string_view& line) noexcept {
    std::size_t n = 0;
    for (char c = 0; read(c);) {
      if (c == '\n') {
        line_[n] = '\0';
        line = {line_, n};
        return true;
      }
      if (n + 1 < sizeof line_) line_[n++] = c;
    }
    return false;
  }

 private:
  bool read(char& c) noexcept {
    if (at_ == filled_) {
      ::ssize_t got = -1;
      do got = ::read(fd_, buffer_, sizeof buffer_);
      while (got < 0 && errno == EINTR);
      if (got <= 0) return false;
      at_ = 0;
      filled_ = static_cast<std::size_t>(got);
    }
    c = buffer_[at_++];
    return true;
  }

  int fd_;
  char buffer_[1024];
  char line_[4352];
  std::size_t at_ = 0, filled_ = 0;
};

}  // namespace detail

/// Writes one line that says which mapped file the address lies in and why it may not be readable; answers
/// its bytes, 0 where the address lies in no mapped file or the system does not say (it does on Linux).
/// Async-signal-safe; needs 8 KiB of stack.
[[nodiscard]] inline std::size_t fault_text(const void* address, std::span<char> to) noexcept {
  const auto at = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  detail::SignalSafeLines lines("/proc/self/maps");
  for (std::string_view line; lines.next(line);) {
    const detail::MapLine map(line);
    if (at < map.begin || at >= map.end) continue;
    if (map.path.empty() || map.path.front() != '/') return 0;
    struct ::stat now {};
    const std::uint64_t wanted = map.offset + (at - map.begin);
    const bool same =
        ::stat(map.path.data(), &now) == 0 && static_cast<std::uint64_t>(now.st_ino) == map.inode;
    const auto size = static_cast<std::uint64_t>(now.st_size);
    detail::FixedText text(to);
    text.add_name(map.path);
    if (same && size <= wanted) {
      text.add(": became shorter while it was mapped: ");
      text.add(size);
      text.add(" bytes now, byte ");
      text.add(wanted);
      text.add(" is needed; a model must not be written to while it runs\n");
    } else {
      text.add(": byte ");
      text.add(wanted);
      text.add(" of the mapped file cannot be read: the disk failed, or the file became shorter\n");
    }
    return text.size();
  }
  return 0;
}

}  // namespace mica::io
