// SPDX-License-Identifier: Apache-2.0
//
// Threads for connections, and the connections that may be ended for others.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#include <httplib.h>
#include <sys/socket.h>

namespace mica::serve::detail {

/// Set while a connection is to be sent away.
inline thread_local bool too_many = false;

/// Connections between two requests.
class IdleConnections {
 public:
  void add(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
  }
  /// False: it was closed meanwhile.
  [[nodiscard]] bool remove(int socket) {
    const std::lock_guard lock(mutex_);
    return std::erase(sockets_, socket) != 0;
  }
  /// Ends the one that has been idle longest, for another connection; false: there is none.
  bool end_one() {
    const std::lock_guard lock(mutex_);
    if (sockets_.empty()) return false;
    ::shutdown(sockets_.front(), SHUT_RDWR);
    sockets_.erase(sockets_.begin());
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<int> sockets_;  // the longest idle first
};

/// Threads for connections, made as they are needed. A connection beyond their number takes the place of an idle one,
/// or is sent away at once.
class Threads final : public httplib::TaskQueue {
 public:
  Threads(std::size_t max, IdleConnections& idle_connections)
      : max_(max), idle_connections_(idle_connections) {}

  void take(std::function<void()> connection) {
    std::unique_lock lock(mutex_);
    if (idle_ <= jobs_.size() && threads_.size() == max_ && !idle_connections_.end_one()) {
      lock.unlock();
      too_many = true;
      connection();
      too_many = false;
      return;
    }
    jobs_.push_back(std::move(connection));
    if (idle_ < jobs_.size() && threads_.size() < max_) threads_.emplace_back([this] { work(); });
    lock.unlock();
    filled_.notify_one();
  }
  // Required by httplib::TaskQueue; void in older versions, bool in newer ones
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));
  Enqueued enqueue(std::function<void()> connection) override {
    take(std::move(connection));
    return Enqueued(true);
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    filled_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      filled_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
      --idle_;
      if (jobs_.empty()) return;
      const auto connection = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      connection();
      lock.lock();
    }
  }

  std::size_t max_;
  IdleConnections& idle_connections_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ends_ = false;
};

}  // namespace mica::serve::detail
