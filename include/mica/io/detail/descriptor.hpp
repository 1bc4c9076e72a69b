// SPDX-License-Identifier: Apache-2.0
//
// A POSIX file descriptor that closes itself, and the text of an errno value. All of io/ uses these two.
#pragma once

#include <string>
#include <system_error>
#include <utility>
#include <unistd.h>

namespace mica::io::detail {

/// Owns a descriptor; -1 means none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

  /// Closes now; what close() reports is not an error of data that fsync has already confirmed.
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

/// The system's text for an errno value. Thread-safe, unlike strerror.
[[nodiscard]] inline std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace mica::io::detail
