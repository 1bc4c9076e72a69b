// SPDX-License-Identifier: Apache-2.0
//
// A POSIX file descriptor that closes itself, and the text of an errno value. All of io/ uses these two.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
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

  /// Reads at an offset until `to` is full. Returns the bytes read; if they are fewer, errno is the reason, 0
  /// at the end of the file. Where the system ends a call early, the next one begins at a multiple of
  /// block_bytes.
  [[nodiscard]] std::size_t read_at(std::uint64_t offset, std::span<std::byte> to,
                                    std::size_t block_bytes = 1) const noexcept {
    return transfer(::pread, offset, to, block_bytes, 0);
  }
  /// Writes all bytes at an offset. Returns the bytes written; if they are fewer, errno is the reason.
  [[nodiscard]] std::size_t write_at(std::uint64_t offset, std::span<const std::byte> from,
                                     std::size_t block_bytes = 1) const noexcept {
    return transfer(::pwrite, offset, from, block_bytes, ENOSPC);
  }

  /// Closes now; what close() reports is not an error of data that fsync has already confirmed.
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  /// at_end: the errno to set when a call transfers no whole block.
  template <class Call, class Byte>
  std::size_t transfer(Call call, std::uint64_t offset, std::span<Byte> all, std::size_t block_bytes,
                       int at_end) const noexcept {
    std::size_t done = 0;
    while (done < all.size()) {
      const auto at = static_cast<::off_t>(offset + done);
      const ::ssize_t n = call(fd_, all.data() + done, all.size() - done, at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;
      std::size_t whole = done + static_cast<std::size_t>(n);
      if (whole < all.size()) whole -= whole % block_bytes;
      if (whole <= done) {
        errno = at_end;
        break;
      }
      done = whole;
    }
    return done;
  }

  int fd_ = -1;
};

/// The system's text for an errno value. Thread-safe, unlike strerror.
[[nodiscard]] inline std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace mica::io::detail
