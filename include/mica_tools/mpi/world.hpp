// SPDX-License-Identifier: Apache-2.0
//
// Ranks that mpirun started, one process each. Parts of a message go from each rank to each other one, and a
// rank that is not heard of for a while counts as gone: its process died, was stopped, or its machine is off.
//
//   mpirun -n 4 program        World world;  ranks::Several<ranks::AnyLink> ranks(world);
//
// Needs an MPI library (MPI-3). The others go on when a process dies where mpirun lets them: that of Open MPI
// with --enable-recovery; that of MPICH 4.0 ends them.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/ranks/several.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <thread>
#include <vector>
#include <mpi.h>

namespace mica::mpi {

struct WorldOptions {
  std::chrono::milliseconds deadline{1500};  // a rank of which nothing is heard for so long is gone
  /// MPI waits for all ranks when it starts and when it ends, for ever where one has died then, and cannot be
  /// interrupted. After the time `meeting` this is called, by a thread of its own, to end the process. Null:
  /// the rank waits.
  void (*on_stuck)() noexcept = nullptr;
  std::chrono::milliseconds meeting{30'000};
};

namespace detail {

/// Calls WorldOptions::on_stuck, if it lives for too long.
class MeetingWatch {
 public:
  explicit MeetingWatch(const WorldOptions& options) {
    if (options.on_stuck == nullptr) return;
    thread_ = std::thread([this, options] {
      std::unique_lock lock(mutex_);
      if (!met_.wait_for(lock, options.meeting, [this] { return over_; })) options.on_stuck();
    });
  }
  MeetingWatch(const MeetingWatch&) = delete;
  MeetingWatch& operator=(const MeetingWatch&) = delete;
  ~MeetingWatch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    met_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable met_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace detail

/// All processes of an MPI program. One object in a process, made before other threads use MPI and destroyed
/// after them. It has one thread of its own, which tells the others a few times a second that this one lives;
/// a rank may compute for as long as it likes. Threads: exchange() of one thread at a time.
class World final : public ranks::AnyLink {
 public:
  /// Starts MPI, if that was not done. Raises ErrorCode::failed where the library cannot be used by two
  /// threads in turn.
  explicit World(WorldOptions options = {}) : options_(options) {
    const detail::MeetingWatch watch(options_);
    int there = 0, level = 0;
    MPI_Initialized(&there);
    starts_ = there == 0;
    if (starts_) {
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    } else {
      MPI_Query_thread(&level);
    }
    MICA_CHECK(level >= MPI_THREAD_SERIALIZED, failed,
               "MPI: this library gives its functions to one thread alone; two in turn are needed "
               "(MPI_THREAD_SERIALIZED)");
    MPI_Comm_dup(MPI_COMM_WORLD, &world_);
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    int rank = 0, size = 1;
    MPI_Comm_rank(world_, &rank);
    MPI_Comm_size(world_, &size);
    rank_ = static_cast<std::size_t>(rank);
    peers_ = std::vector<Peer>(static_cast<std::size_t>(size));
    requests_.reserve(4 * peers_.size());
    parts_.reserve(4 * peers_.size());
    statuses_.resize(4 * peers_.size());
    if (peers_.size() == 1) return;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      peers_[r].heard = Clock::now() + std::chrono::seconds(10);  // it may start later
      if (r != rank_) expect(r);
    }
    thread_ = std::thread([this] { tell(); });
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  /// Waits until all are here, and ends MPI if this started it. After a rank was lost MPI is left as it is: a
  /// process that ends by std::_Exit() ends at once, one that returns from main() as its library sees fit.
  ~World() override {
    std::vector<std::byte> all(size());
    std::vector<std::size_t> ends(size());
    for (std::size_t r = 0; r < size(); ++r) ends[r] = r + 1;
    const bool together = exchange(all, ends);
    if (thread_.joinable()) {
      ending_.store(true, std::memory_order_relaxed);
      thread_.join();
    }
    if (!together) return;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (r == rank_ || peers_.size() == 1) continue;
      MPI_Cancel(&peers_[r].hears);
      MPI_Request_free(&peers_[r].hears);
    }
    const detail::MeetingWatch watch(options_);
    MPI_Comm_free(&world_);
    if (starts_) MPI_Finalize();
  }

  // Required by RankLink
  [[nodiscard]] std::size_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept override { return peers_.size(); }
  [[nodiscard]] bool exchange(std::span<std::byte> all, std::span<const std::size_t> ends) noexcept override {
    if (lost()) return false;
    if (peers_.size() == 1) return true;
    const std::lock_guard lock(mutex_);
    return settle(start(all, ends));
  }
  [[nodiscard]] bool send(std::size_t rank, std::span<const std::byte> bytes) noexcept override {
    if (lost()) return false;
    const std::lock_guard lock(mutex_);
    MICA_ASSERT(requests_.empty());  // begin() comes before exchange()
    return settle(post_send(rank, bytes, pass_tag));
  }
  [[nodiscard]] bool receive(std::size_t rank, std::span<std::byte> bytes) noexcept override {
    if (lost()) return false;
    const std::lock_guard lock(mutex_);
    MICA_ASSERT(requests_.empty());  // begin() comes before exchange()
    return settle(post_receive(rank, bytes, pass_tag));
  }
  /// Once before an exchange().
  [[nodiscard]] bool begin(std::span<std::byte> all, std::span<const std::size_t> ends) noexcept override {
    if (lost()) return false;
    if (peers_.size() == 1) return true;
    const std::lock_guard lock(mutex_);
    const bool started = start(all, ends);
    if (!started) lost_.store(true, std::memory_order_relaxed);
    return started;
  }
  void leave() noexcept override { lost_.store(true, std::memory_order_relaxed); }

  [[nodiscard]] bool lost() const noexcept override { return lost_.load(std::memory_order_relaxed); }
  /// Without signs of life.
  [[nodiscard]] ranks::LinkCosts costs() const noexcept override { return costs_; }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr int life_tag = 1, pass_tag = 2, first_tag = 3,
                       tags = 30'000;                 // MPI allows 32,767 everywhere
  static constexpr std::size_t first_polls = 16'384;  // of an exchange, with few looks at the clock

  struct Peer {
    Clock::time_point heard;  // of it; before the first time, until when that may last
    MPI_Request hears = MPI_REQUEST_NULL, tells = MPI_REQUEST_NULL;
    char heard_byte = 0, told_byte = 0;
  };

  [[nodiscard]] bool post_send(std::size_t r, std::span<const std::byte> bytes, int tag) noexcept {
    costs_.sent_bytes += bytes.size();
    ++costs_.sent_messages;
    parts_.push_back({r, bytes.size(), false});
    return MPI_Isend(bytes.data(), count_of(bytes), MPI_BYTE, static_cast<int>(r), tag, world_,
                     &requests_.emplace_back(MPI_REQUEST_NULL)) == MPI_SUCCESS;
  }
  [[nodiscard]] bool post_receive(std::size_t r, std::span<std::byte> bytes, int tag) noexcept {
    parts_.push_back({r, bytes.size(), true});
    return MPI_Irecv(bytes.data(), count_of(bytes), MPI_BYTE, static_cast<int>(r), tag, world_,
                     &requests_.emplace_back(MPI_REQUEST_NULL)) == MPI_SUCCESS;
  }
  [[nodiscard]] static int count_of(std::span<const std::byte> bytes) noexcept {
    MICA_ASSERT(bytes.size() <= std::numeric_limits<int>::max());
    return static_cast<int>(bytes.size());
  }
  /// Posts all parts, those of others first.
  [[nodiscard]] bool start(std::span<std::byte> all, std::span<const std::size_t> ends) noexcept {
    const int tag = first_tag + static_cast<int>(turn_++ % tags);
    const auto part = [&](std::size_t r) {
      const std::size_t first = r == 0 ? 0 : ends[r - 1];
      return all.subspan(first, ends[r] - first);
    };
    const auto own = part(rank_);
    for (const bool comes : {true, false}) {
      for (std::size_t i = 1; i < peers_.size(); ++i) {
        const std::size_t r = (rank_ + i) % peers_.size();
        const auto bytes = comes ? part(r) : own;
        if (!bytes.empty() && !(comes ? post_receive(r, bytes, tag) : post_send(r, bytes, tag))) return false;
      }
    }
    return true;
  }
  /// Waits for what is on its way.
  [[nodiscard]] bool settle(bool posted) noexcept {
    const bool met = posted && wait();
    requests_.clear();
    parts_.clear();
    if (!met) lost_.store(true, std::memory_order_relaxed);
    return met;
  }
  /// Until all have arrived, or a rank is gone.
  [[nodiscard]] bool wait() noexcept {
    const Clock::time_point begin = Clock::now();
    Clock::time_point next = begin + pause();
    for (std::size_t polls = 1;; ++polls) {
      int done = 0;
      if (MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses_.data()) !=
          MPI_SUCCESS)
        return false;
      if (done != 0) break;
      if (polls % 256 != 0 && polls < first_polls) continue;
      std::this_thread::yield();
      const Clock::time_point now = Clock::now();
      rest(now - begin);
      if (now < next) continue;
      next = now + pause();
      if (!live(now)) return false;
    }
    const Clock::time_point end = Clock::now();
    costs_.waited += end - begin;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].comes) continue;
      int bytes = 0;
      MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
      if (static_cast<std::size_t>(bytes) != parts_[i].bytes)
        return false;  // another program, or another model
      peers_[parts_[i].rank].heard = end;
    }
    return true;
  }

  /// Who waits for long, as for a user, leaves its core to others, and is late by a fiftieth of the time.
  static void rest(Clock::duration waited) noexcept {
    constexpr Clock::duration busy = std::chrono::milliseconds(5), longest = std::chrono::milliseconds(2);
    if (waited > busy) std::this_thread::sleep_for(std::min(waited / 50, longest));
  }
  [[nodiscard]] Clock::duration pause() const noexcept { return options_.deadline / 8; }
  void expect(std::size_t r) noexcept {
    MPI_Irecv(&peers_[r].heard_byte, 1, MPI_BYTE, static_cast<int>(r), life_tag, world_, &peers_[r].hears);
  }
  /// Tells the others, and hears them. False: one is gone.
  [[nodiscard]] bool live(Clock::time_point now) noexcept {
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      Peer& peer = peers_[r];
      if (r == rank_) continue;
      int done = 0;
      if (MPI_Test(&peer.tells, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (done != 0) {
        MPI_Isend(&peer.told_byte, 1, MPI_BYTE, static_cast<int>(r), life_tag, world_, &peer.tells);
      }
      for (done = 1; done != 0;) {
        if (MPI_Test(&peer.hears, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
        if (done == 0) break;
        peer.heard = now;
        expect(r);
      }
      if (now - peer.heard > options_.deadline) return false;
    }
    return true;
  }
  /// While exchange() waits, it does the same.
  void tell() {
    while (!ending_.load(std::memory_order_relaxed)) {
      if (const std::unique_lock lock(mutex_, std::try_to_lock); lock.owns_lock() && !lost()) {
        if (!live(Clock::now())) lost_.store(true, std::memory_order_relaxed);
      }
      std::this_thread::sleep_for(pause());
    }
  }

  struct Part {
    std::size_t rank, bytes;  // of the other one
    bool comes;               // from it
  };

  WorldOptions options_;
  bool starts_ = true;
  MPI_Comm world_ = MPI_COMM_NULL;
  std::size_t rank_ = 0;
  std::vector<Peer> peers_;            // by rank
  std::mutex mutex_;                   // of the thread that calls MPI
  std::vector<MPI_Request> requests_;  // on their way
  std::vector<Part> parts_;            // of each
  std::vector<MPI_Status> statuses_;
  std::uint64_t turn_ = 0;
  ranks::LinkCosts costs_;
  std::atomic<bool> lost_ = false;
  std::atomic<bool> ending_ = false;  // this object
  std::thread thread_;
};

}  // namespace mica::mpi
