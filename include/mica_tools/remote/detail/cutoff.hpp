// SPDX-License-Identifier: Apache-2.0
//
// An end for an answer that drips. The HTTP library bounds the wait for the next byte and not the whole
// answer, so a thread waits beside each request and hangs up when its time is over. It touches no data, and
// is gone when the request is.
#pragma once

#include "mica/io/detail/descriptor.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <sys/socket.h>
#include <unistd.h>

namespace mica::remote::detail {

/// A connection that can be cut by another thread than the one that reads it. Keeps a second descriptor of
/// the socket, so that the number cannot become somebody else's meanwhile.
class Line {
 public:
  /// Another answer is awaited.
  void begin() {
    const std::lock_guard lock(mutex_);
    cut_ = false;
  }
  /// The socket of a new connection. Cuts it at once when the time was over before it stood.
  void set(int socket) {
    const std::lock_guard lock(mutex_);
    socket_ = io::detail::Descriptor(::dup(socket));
    if (cut_) ::shutdown(socket, SHUT_RDWR);
  }
  void cut() {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
  }
  [[nodiscard]] bool was_cut() const {
    const std::lock_guard lock(mutex_);
    return cut_;
  }

 private:
  mutable std::mutex mutex_;
  io::detail::Descriptor socket_;
  bool cut_ = false;
};

/// Cuts a line after a time, unless it goes before.
class Cutoff {
 public:
  Cutoff(Line& line, std::chrono::milliseconds after) {
    thread_ = std::thread([this, &line, after] {
      std::unique_lock lock(mutex_);
      if (!over_.wait_for(lock, after, [this] { return done_; })) line.cut();
    });
  }
  Cutoff(const Cutoff&) = delete;
  Cutoff& operator=(const Cutoff&) = delete;
  ~Cutoff() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    over_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace mica::remote::detail
