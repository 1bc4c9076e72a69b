// SPDX-License-Identifier: Apache-2.0
//
// Threads for connections, and the connections that may be ended for others.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <httplib.h>
#include <sys/socket.h>

namespace mica::serve::detail {

/// Set while a connection is to be sent away.
inline thread_local bool too_many = false;

/// Connections without a whole request: idle ones, and those that have sent a part. They may be ended for others.
class OpenConnections {
 public:
  /// max_incomplete_time: as in ListenOptions.
  explicit OpenConnections(std::chrono::milliseconds max_incomplete_time)
      : max_incomplete_time_(max_incomplete_time) {}

  void add(int socket) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(socket);
  }
  /// A request begins. False: the connection was ended meanwhile.
  [[nodiscard]] bool begin(int socket) {
    const std::lock_guard lock(mutex_);
    if (std::erase(idle_, socket) == 0) return false;
    reading_.push_back({socket, Clock::now()});
    return true;
  }
  /// The request is whole, or there is none.
  void remove(int socket) {
    const std::lock_guard lock(mutex_);
    std::erase(idle_, socket);
    std::erase_if(reading_, [socket](const Reading& each) { return each.socket == socket; });
  }
  /// Ends the one that has been idle longest, or where none is idle the one that has been sending its request
  /// longest, for another connection. False: there is none.
  bool end_one() {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      ::shutdown(idle_.front(), SHUT_RDWR);
      idle_.erase(idle_.begin());
      return true;
    }
    return end_reading();
  }
  /// Ends the one that has been sending its request longest, so that its body makes room for others.
  void end_slow_one() {
    const std::lock_guard lock(mutex_);
    static_cast<void>(end_reading());
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Reading {
    int socket;
    Clock::time_point since;
  };

  [[nodiscard]] bool end_reading() {
    if (reading_.empty() || Clock::now() - reading_.front().since < max_incomplete_time_) return false;
    ::shutdown(reading_.front().socket, SHUT_RDWR);
    reading_.erase(reading_.begin());
    return true;
  }

  std::chrono::milliseconds max_incomplete_time_;
  std::mutex mutex_;
  std::vector<int> idle_;         // the longest idle first
  std::vector<Reading> reading_;  // the first one to begin first
};

/// Threads for connections, made as they are needed. A connection beyond their number takes the place of one without
/// a whole request, or is sent away at once.
class Threads final : public httplib::TaskQueue {
 public:
  Threads(std::size_t max, OpenConnections& open_connections)
      : max_(max), open_connections_(open_connections) {}

  void take(std::function<void()> connection) {
    std::unique_lock lock(mutex_);
    if (idle_ <= jobs_.size() && threads_.size() == max_ && !open_connections_.end_one()) {
      lock.unlock();
      too_many = true;
      connection();
      too_many = false;
      return;
    }
    jobs_.push_back(std::move(connection));
    if (idle_ < jobs_.size() && threads_.size() < max_) add_thread();
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
  /// Where the system has no thread for it, a connection waits for another one to end.
  void add_thread() {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
    }
  }
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
  OpenConnections& open_connections_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ends_ = false;
};

}  // namespace mica::serve::detail
