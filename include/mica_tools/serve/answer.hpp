// SPDX-License-Identifier: Apache-2.0
//
// The events of one answer on their way from the scheduler's thread to that of a connection, and the client's
// wish to stop on its way back.
#pragma once

#include "mica_tools/serve/event.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

namespace mica::serve {

/// A queue of events with one writer and one reader. A reader that is slow costs nothing but the memory of
/// the text: texts that wait are joined.
class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  /// The next event, after at most this time; empty: there is none yet. Nothing follows Ended and Failed.
  [[nodiscard]] std::optional<Event> next(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!filled_.wait_for(lock, patience, [this] { return !events_.empty(); })) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  /// The client has disconnected: the answer ends before the next step, as cancelled. Any thread.
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  /// For GenerateOptions::cancel.
  [[nodiscard]] const std::atomic<bool>& cancelled() const noexcept { return cancelled_; }

  /// Adds an event. The thread of the scheduler.
  void put(Event event) {
    {
      const std::lock_guard lock(mutex_);
      Text* const more = std::get_if<Text>(&event);
      Text* const last = events_.empty() ? nullptr : std::get_if<Text>(&events_.back());
      if (more != nullptr && last != nullptr) {
        last->text += more->text;
        last->tokens.insert(last->tokens.end(), std::make_move_iterator(more->tokens.begin()),
                            std::make_move_iterator(more->tokens.end()));
      } else {
        events_.push_back(std::move(event));
      }
    }
    filled_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Event> events_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace mica::serve
