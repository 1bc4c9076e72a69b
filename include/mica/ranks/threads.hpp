// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of one process: each has a model of its own, with its rows, and they exchange by
// copies. For tests of what is divided, and for machines whose memory is in several nodes.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/ranks/several.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

namespace mica::ranks {

/// The meeting place of a fixed number of threads. Outlives their links.
class Threads {
 public:
  /// As thread `rank` sees the others. For that thread alone.
  class Link final : public AnyLink {
   public:
    Link(Threads& threads, std::size_t rank) noexcept : threads_(&threads), rank_(rank) {
      MICA_ASSERT(rank < threads.parts_.size());
    }
    // Required by RankLink
    [[nodiscard]] std::size_t rank() const noexcept override { return rank_; }
    [[nodiscard]] std::size_t size() const noexcept override { return threads_->parts_.size(); }
    [[nodiscard]] bool exchange(std::span<std::byte> all,
                                std::span<const std::size_t> ends) noexcept override {
      return threads_->exchange(rank_, all, ends);
    }
    [[nodiscard]] bool send(std::size_t rank, std::span<const std::byte> bytes) noexcept override {
      return threads_->send(rank_, rank, bytes);
    }
    [[nodiscard]] bool receive(std::size_t rank, std::span<std::byte> bytes) noexcept override {
      return threads_->receive(rank, rank_, bytes);
    }
    void leave() noexcept override { threads_->leave(); }
    [[nodiscard]] bool lost() const noexcept override {
      const std::lock_guard lock(threads_->mutex_);
      return threads_->left_;
    }

   private:
    Threads* threads_;
    std::size_t rank_;
  };

  explicit Threads(std::size_t size) : parts_(size), posts_(size * size) {}
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// A thread is gone: exchanges of all others end, now and later. From any thread.
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    left_ = true;
    met_.notify_all();
  }
  /// Bytes that were copied from one rank to another.
  [[nodiscard]] std::size_t copied() const noexcept {
    const std::lock_guard lock(mutex_);
    return copied_;
  }

 private:
  /// What a thread has for another one.
  struct Post {
    std::span<const std::byte> bytes;
    bool there = false;
  };

  /// Until the other one has them.
  [[nodiscard]] bool send(std::size_t from, std::size_t to, std::span<const std::byte> bytes) noexcept {
    Post& post = posts_[from * parts_.size() + to];
    std::unique_lock lock(mutex_);
    if (left_) return false;
    post = {bytes, true};
    met_.notify_all();
    met_.wait(lock, [&] { return left_ || !post.there; });
    return !post.there;
  }
  [[nodiscard]] bool receive(std::size_t from, std::size_t to, std::span<std::byte> bytes) noexcept {
    Post& post = posts_[from * parts_.size() + to];
    std::unique_lock lock(mutex_);
    met_.wait(lock, [&] { return left_ || post.there; });
    if (!post.there || post.bytes.size() != bytes.size()) return false;
    std::memcpy(bytes.data(), post.bytes.data(), bytes.size());
    copied_ += bytes.size();
    post.there = false;
    met_.notify_all();
    return true;
  }
  [[nodiscard]] bool exchange(std::size_t rank, std::span<std::byte> all,
                              std::span<const std::size_t> ends) noexcept {
    parts_[rank] = all;
    if (!meet()) return false;
    std::size_t bytes = 0;
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      const std::size_t first = r == 0 ? 0 : ends[r - 1];
      if (r == rank || ends[r] == first) continue;
      std::memcpy(all.data() + first, parts_[r].data() + first, ends[r] - first);
      bytes += ends[r] - first;
    }
    const bool met = meet();  // before the next message, until all have read this one
    const std::lock_guard lock(mutex_);
    copied_ += bytes;
    return met;
  }
  /// Waits for all; false where one has left.
  [[nodiscard]] bool meet() noexcept {
    std::unique_lock lock(mutex_);
    if (left_) return false;
    const std::size_t turn = turn_;
    if (++waiting_ == parts_.size()) {
      waiting_ = 0;
      ++turn_;
      met_.notify_all();
    }
    met_.wait(lock, [&] { return left_ || turn_ != turn; });
    return turn_ != turn;
  }

  mutable std::mutex mutex_;
  std::condition_variable met_;
  std::vector<std::span<std::byte>> parts_;  // by rank
  std::vector<Post> posts_;                  // by sender, then receiver
  std::size_t waiting_ = 0;
  std::size_t turn_ = 0;
  std::size_t copied_ = 0;
  bool left_ = false;
};
static_assert(RankLink<Threads::Link>);
static_assert(Ranks<Several<Threads::Link>>);

}  // namespace mica::ranks
