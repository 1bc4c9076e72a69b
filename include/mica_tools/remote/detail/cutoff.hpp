// SPDX-License-Identifier: Apache-2.0
//
// A time limit for a whole answer. The HTTP library limits the wait for the next byte only, so a thread waits
// beside each request and closes the connection when its time is over. It touches no data, and ends with the
// request.
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
/// the socket, so that the number cannot be reused meanwhile.
class Line {
 public:
  /// Another answer is awaited.
  void begin() {
    const std::lock_guard lock(mutex_);
    cut_ = false;
  }
  /// The socket of a new connection. Closes it at once when the time was over before it was established.
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

/// Closes a connection after a time, unless the object is destroyed first.
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
