// SPDX-License-Identifier: Apache-2.0
//
// One connection as the bytes that cpp-httplib reads and writes, with a time and a number of bytes for each request,
// and not for each read.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

namespace mica::serve::detail {

using Clock = std::chrono::steady_clock;

/// What is known of the body of a request before it is read.
struct RequestBody {
  std::size_t bytes = 0;
  bool counted = false;                 // among those of all requests
  httplib::Request* request = nullptr;  // that it is read into
  int status = 0;                       // of a refusal; 0: it is read
  std::string_view why = {};            // it is refused

  void refuse(int with, std::string_view reason) noexcept {
    status = with;
    why = reason;
  }
};

/// The bytes of one connection. The functions of all supported versions of the library; one that a version does
/// not have overrides nothing.
class SocketStream final : public httplib::Stream {
 public:
  /// Once `ending`, what is not read yet has `end_time`.
  SocketStream(int socket, std::chrono::seconds write_time, const std::atomic<bool>& ending,
               std::chrono::seconds end_time)
      : socket_(socket), write_time_(write_time), ending_(ending), end_time_(end_time) {}

  /// Bytes that come later, or are more than these, are not read.
  void allow(Clock::time_point deadline, std::size_t bytes) noexcept {
    deadline_ = deadline;
    bytes_ = bytes;
  }
  /// Nothing more is written: the client has disconnected.
  void abandon() noexcept { abandoned_ = spoilt_ = true; }
  /// The rest of the connection cannot be read as requests.
  void spoil() noexcept { spoilt_ = true; }
  [[nodiscard]] bool spoilt() const noexcept { return spoilt_; }
  /// Waits for the first byte of a request; false: none came, or the client has disconnected.
  [[nodiscard]] bool wait(Clock::time_point deadline) const {
    while (begin_ == end_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0 || ending_) return false;
      pollfd waits{socket_, POLLIN, 0};
      const int ready = ::poll(&waits, 1, static_cast<int>(std::min(left.count(), ending_is_noticed_ms)));
      if (ready > 0) return (waits.revents & (POLLERR | POLLNVAL)) == 0 && readable();
      if (ready < 0 && errno != EINTR) return false;
    }
    return true;
  }
  /// Whether the client is still there: it has neither closed nor half closed the connection.
  [[nodiscard]] bool alive() const noexcept {
#ifdef POLLRDHUP  // seen behind bytes that were not read yet
    pollfd ends{socket_, POLLRDHUP, 0};
    if (::poll(&ends, 1, 0) > 0) return false;
#endif
    return readable();
  }

  RequestBody body = {};  // of the request that is read

  // Required by httplib::Stream
  bool is_readable() const { return begin_ != end_ || readable(); }
  bool is_writable() const { return readable(); }
  bool wait_readable() const { return true; }
  bool wait_writable() const { return readable(); }
  ssize_t read(char* to, std::size_t size) {
    if (begin_ == end_ && !fill()) return -1;
    const std::size_t n = std::min(size, end_ - begin_);
    std::copy_n(buffer_ + begin_, n, to);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* bytes, std::size_t size) {
    if (abandoned_) return -1;
    std::size_t done = 0;
    auto deadline = Clock::now() + write_time_;
    while (done < size) {
      const ssize_t n = ::send(socket_, bytes + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        done += static_cast<std::size_t>(n);
        deadline = Clock::now() + write_time_;  // it reads
      } else if (!retry(POLLOUT, [&] { return deadline; })) {
        return -1;
      }
    }
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}
  socket_t socket() const { return socket_; }
  time_t duration() const { return 0; }

 private:
  static constexpr std::int64_t ending_is_noticed_ms = 200;

  /// Whether there are bytes to read, or may be some later.
  [[nodiscard]] bool readable() const noexcept {
    char byte = 0;
    const ssize_t n = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
  }
  [[nodiscard]] bool fill() {
    const auto deadline = [this] { return read_deadline(); };
    while (bytes_ > 0 && Clock::now() < deadline()) {
      const ssize_t n = ::recv(socket_, buffer_, std::min(bytes_, sizeof buffer_), MSG_DONTWAIT);
      if (n > 0) {
        bytes_ -= static_cast<std::size_t>(n);
        begin_ = 0;
        end_ = static_cast<std::size_t>(n);
        return true;
      }
      if (n == 0 || !retry(POLLIN, deadline)) break;
    }
    spoilt_ = true;
    return false;
  }
  [[nodiscard]] Clock::time_point read_deadline() noexcept {
    if (ending_ && last_ == Clock::time_point::max()) last_ = Clock::now() + end_time_;
    return std::min(deadline_, last_);
  }
  /// After a call that did nothing: whether it may do something now.
  template <class Deadline>
  [[nodiscard]] bool retry(short events, Deadline&& deadline) const {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return false;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline() - Clock::now());
      if (left.count() <= 0) return false;
      pollfd waits{socket_, events, 0};
      const int ready = ::poll(&waits, 1, static_cast<int>(std::min(left.count(), ending_is_noticed_ms)));
      if (ready > 0) return (waits.revents & POLLNVAL) == 0;
      if (ready < 0 && errno != EINTR) return false;
    }
  }

  int socket_;
  std::chrono::seconds write_time_;
  const std::atomic<bool>& ending_;
  std::chrono::seconds end_time_;
  Clock::time_point deadline_ = {}, last_ = Clock::time_point::max();  // of reading; of an ending server
  std::size_t bytes_ = 0;                                              // that may still be read
  char buffer_[4096];
  std::size_t begin_ = 0, end_ = 0;
  bool spoilt_ = false, abandoned_ = false;
};

/// The connection of this thread.
inline thread_local SocketStream* current_stream = nullptr;

}  // namespace mica::serve::detail
