// SPDX-License-Identifier: Apache-2.0
//
// A thread that watches memory while models are loaded and while their steps run, for a Governed. A step may
// take seconds, and others may take the memory that is left in a tenth of one: where that is near, the thread
// frees weights at once, which the step then reads for itself. No token changes.
//
//   left      | urgent: weights leave at once | low: a Governed yields between two steps |
//   pauses    8 ms near the thresholds, 100 ms far from them; the kernel's events end a pause
//
// Where nothing is left to yield and others still take memory, all models are halted: their steps end soon,
// so that a session can be saved before the process is killed. A program that frees more then, as a server
// does, may resume().
#pragma once

#include "mica/budget/detail/pressure_events.hpp"
#include "mica/budget/growth.hpp"
#include "mica/budget/pressure.hpp"
#include "mica/paging/concept.hpp"
#include "mica/paging/load_progress.hpp"
#include "mica/runtime/concept.hpp"
#include "mica/runtime/detail/priority.hpp"
#include "mica/runtime/governor.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace mica {

/// The thresholds, and where the files are.
struct MemoryWatchOptions {
  GovernorOptions governor = {};  // its thresholds
  std::string root = {};          // stands before /proc and /sys, for tests
  /// Called once for each halt, by the thread: to wake a program that waits for input. It calls
  /// no function of the watch.
  std::function<void()> on_halt = {};
  bool thread = true;  // false: the owner calls look()
};

/// The time that a file of a session takes, by the bytes of its keys, values and state, on a slow disk.
[[nodiscard]] constexpr std::chrono::microseconds save_time(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t bytes_per_microsecond = 100;
  return std::chrono::milliseconds(50) +
         std::chrono::microseconds(static_cast<std::int64_t>(bytes / bytes_per_microsecond));
}

/// Watches any number of models. Public functions may be called from any thread. Cost: a reading in each
/// pause, some tens of microseconds.
class MemoryWatch {
 public:
  using Clock = std::chrono::steady_clock;  // of readings

  /// What was read last, and what was done.
  struct State {
    std::optional<budget::Pressure> pressure;  // empty: there is nothing to read
    std::uint64_t growth = 0;    // bytes that others took within 100 ms, the maximum, which fades
    std::uint64_t yielded = 0;   // bytes of weights of a model that were freed since its last take()
    bool loaded_short = false;   // its loading was told that memory is short, since its last take()
    std::uint64_t readings = 0;  // so far
    bool others_came = false;    // others use more than at their minimum
    bool hopeless = false;       // nothing was left to free, and the limit is near
    bool halted = false;         // as halted() says
  };

  explicit MemoryWatch(MemoryWatchOptions options = {})
      : options_(std::move(options)),
        reader_(options_.root, Clock::duration::zero()),
        events_(options_.root) {
    if (!options_.thread) return;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      raise(ErrorCode::failed, "the system has no thread that observes the memory");
    }
  }
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
  ~MemoryWatch() {
    stopped_.store(true, std::memory_order_relaxed);
    events_.stop();
    if (thread_.joinable()) thread_.join();
  }

  /// MemoryWatchOptions::governor.
  [[nodiscard]] const GovernorOptions& thresholds() const noexcept { return options_.governor; }
  /// Frees weights of this model from now on, until detach(). The model outlives that. Of several models the
  /// one that was attached or touched longest ago yields first.
  template <ResizableModel Model>
  void attach(Model& model) {
    const std::lock_guard hold(lock_);
    models_.push_back({
        &model,
        [](void* m, std::uint64_t bytes) noexcept { return static_cast<Model*>(m)->yield_weights(bytes); },
        [](void* m, bool halted) noexcept { static_cast<Model*>(m)->halt(halted); },
        [](void* m) noexcept { return static_cast<Model*>(m)->layer_time(); },
        0,
        told_.exchange(false, std::memory_order_relaxed),
    });
    if (state_.halted) model.halt(true);
  }
  template <ResizableModel Model>
  void detach(Model& model) noexcept {
    const std::lock_guard hold(lock_);
    std::erase_if(models_, [&](const Watched& watched) { return watched.model == &model; });
  }
  /// The model was used last: it yields after all others.
  template <ResizableModel Model>
  void touch(Model& model) noexcept {
    const std::lock_guard hold(lock_);
    const auto at = find(&model);
    if (at != models_.end()) std::rotate(at, at + 1, models_.end());
  }
  /// The state, without what was yielded.
  [[nodiscard]] State state() const noexcept {
    const std::lock_guard hold(lock_);
    return state_;
  }
  /// The state, with what the model yielded, which is counted anew.
  template <ResizableModel Model>
  [[nodiscard]] State take(Model& model) noexcept {
    const std::lock_guard hold(lock_);
    State out = state_;
    const auto at = find(&model);
    if (at == models_.end()) return out;
    out.yielded = std::exchange(at->yielded, 0);
    out.loaded_short = std::exchange(at->loaded_short, false);
    return out;
  }
  /// Calls f with each reading below `low`, from the thread: to wake a program that frees memory of its own.
  /// f calls no function of the watch, and is not called after it was replaced. Empty: nothing is called.
  void on_short(std::function<void()> f) {
    const std::lock_guard hold(lock_);
    on_short_ = std::move(f);
  }
  /// Whether models were halted: nothing is left to yield, and the limit is near.
  [[nodiscard]] bool halted() const noexcept {
    const std::lock_guard hold(lock_);
    return state_.halted;
  }
  /// Steps run again.
  void resume() noexcept {
    const std::lock_guard hold(lock_);
    if (std::exchange(state_.halted, false)) set_priorities(usual_priority_, usual_session_);
    state_.hopeless = false;
    for (const Watched& watched : models_) watched.halt(watched.model, false);
  }
  /// What the program does after a halted step, before its memory is free: halts come early enough for it.
  /// time: how long that takes; bytes: memory that it takes, such as page cache of a file. From any thread.
  void set_ending(std::chrono::microseconds time, std::uint64_t bytes) noexcept {
    ending_us_.store(time.count(), std::memory_order_relaxed);
    ending_bytes_.store(bytes, std::memory_order_relaxed);
  }
  /// While a model is loaded: the bytes that its weights should leave to others.
  [[nodiscard]] std::uint64_t lacking() const noexcept { return lacking_.load(std::memory_order_relaxed); }
  /// `progress` with lacking(), which is asked after each part of a model that is read. The watch outlives
  /// the loading.
  struct Loading {
    LoadProgress progress;
    MemoryWatch* watch;
    [[nodiscard]] LoadProgress with_watch() noexcept {
      return {[](void* self, std::uint64_t done, std::uint64_t total) noexcept {
                const LoadProgress& p = static_cast<Loading*>(self)->progress;
                if (p.report != nullptr) p.report(p.context, done, total);
              },
              this,
              [](void* self) noexcept {
                MemoryWatch& asked = *static_cast<Loading*>(self)->watch;
                const std::uint64_t bytes = asked.lacking();
                if (bytes > 0) asked.told_.store(true, std::memory_order_relaxed);
                return bytes;
              },
              [](void* self) noexcept {
                const LoadProgress& p = static_cast<Loading*>(self)->progress;
                return p.stopped != nullptr && p.stopped(p.context);
              }};
    }
  };

  /// Reads, and yields where that is urgent; returns the pause until the next reading. The thread calls it.
  std::chrono::milliseconds look(Clock::time_point now = Clock::now()) noexcept {
    const std::lock_guard hold(lock_);
    const auto pressure = reader_.poll(now);
    if (!pressure) return max_pause;
    if (!state_.pressure || state_.pressure->authority != pressure->authority) {
      growth_.restart();
      least_others_ = pressure->others;
    }
    least_others_ = std::min(least_others_, pressure->others);
    growth_.add(now, pressure->others);
    state_.pressure = pressure;
    state_.growth = growth_.peak();
    ++state_.readings;
    const auto m = Governor::thresholds(options_.governor, *pressure, growth_.peak());
    state_.others_came = pressure->others > least_others_ + some_bytes;
    state_.hopeless = false;
    if (pressure->left < m.low && on_short_) on_short_();
    // Weights go before a program with an ending would have to end.
    const std::uint64_t end = bytes_to_end(), urgent = has_ending() ? std::max(m.urgent, end) : m.urgent;
    if (pressure->left >= urgent || !state_.others_came) {
      lacking_.store(0, std::memory_order_relaxed);
      return pause_for(pressure->left - std::min(pressure->left, m.low));
    }
    const std::uint64_t lacking = std::max((m.low + m.high) / 2, urgent) - pressure->left;
    lacking_.store(lacking, std::memory_order_relaxed);
    if (yield(lacking) == 0 && pressure->left < std::max(end, least_bytes)) {
      state_.hopeless = true;
      for (const Watched& watched : models_) watched.halt(watched.model, true);
      if (!models_.empty() && !std::exchange(state_.halted, true)) {
        set_priorities(detail::hurried, detail::hurried);
        if (options_.on_halt) options_.on_halt();
      }
    }
    return min_pause;
  }

 private:
  static constexpr std::chrono::milliseconds min_pause{8}, max_pause{100};
  static constexpr std::uint64_t fastest = 4'000'000;  // bytes that others may take in a millisecond
  static constexpr std::chrono::microseconds min_ending{150'000}, unknown_layer{200'000};
  static constexpr std::uint64_t noise_bytes = 1u << 20;  // no growth yet
  static constexpr std::uint64_t some_bytes = 4u << 20;   // others always change a little
  static constexpr std::uint64_t least_bytes = 4u << 20;  // less is left: the next large page may be too much

  struct Watched {
    void* model = nullptr;
    std::uint64_t (*yield)(void*, std::uint64_t) noexcept = nullptr;
    void (*halt)(void*, bool) noexcept = nullptr;
    std::chrono::microseconds (*layer_time)(void*) noexcept = nullptr;
    std::uint64_t yielded = 0;  // since it was taken
    bool loaded_short = false;
  };

  [[nodiscard]] std::vector<Watched>::iterator find(const void* model) noexcept {
    return std::find_if(models_.begin(), models_.end(),
                        [&](const Watched& watched) { return watched.model == model; });
  }
  /// Frees weights of one model after the other; returns the bytes.
  std::uint64_t yield(std::uint64_t bytes) noexcept {
    std::uint64_t freed = 0;
    for (Watched& watched : models_) {
      if (freed >= bytes) break;
      const std::uint64_t of_this = watched.yield(watched.model, bytes - freed);
      watched.yielded += of_this;
      freed += of_this;
    }
    return freed;
  }
  /// The longest layer of all models; 0 without one.
  [[nodiscard]] std::chrono::microseconds layer_time() const noexcept {
    std::chrono::microseconds longest{0};
    for (const Watched& watched : models_) {
      const auto layer = watched.layer_time(watched.model);
      longest = std::max(longest, layer.count() == 0 ? unknown_layer : layer);
    }
    return longest;
  }

  [[nodiscard]] static std::chrono::milliseconds pause_for(std::uint64_t bytes) noexcept {
    return std::clamp(std::chrono::milliseconds(bytes / fastest), min_pause, max_pause);
  }
  [[nodiscard]] bool has_ending() const noexcept { return ending_us_.load(std::memory_order_relaxed) > 0; }
  /// Bytes that have to be left when a model is halted: what is taken until the program has ended, if others
  /// go on as in the last window. 0: they take nothing.
  [[nodiscard]] std::uint64_t bytes_to_end() const noexcept {
    if (growth_.recent() < noise_bytes) return 0;
    const auto time = layer_time() * 3 / 2 + min_ending +
                      std::chrono::microseconds(ending_us_.load(std::memory_order_relaxed));
    const double windows = std::chrono::duration<double>(time) / growth_.window();
    const double taken = static_cast<double>(growth_.recent()) * windows;
    return static_cast<std::uint64_t>(taken) + least_bytes + ending_bytes_.load(std::memory_order_relaxed);
  }
  /// Of all threads but that of the watch, so that the program ends soon on busy cores, or as they were.
  void set_priorities(int nice, int session) noexcept {
    if (!options_.thread) return;
    detail::set_priorities_but_of(number_.load(std::memory_order_relaxed), nice);
    detail::set_session_priority(session);
  }
  void run() noexcept {
    sigset_t all;  // the program's own threads handle signals
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    number_.store(detail::thread_number(), std::memory_order_relaxed);
    detail::set_priority(0, detail::hurried);
    while (!stopped_.load(std::memory_order_relaxed)) events_.wait(look());
  }

  MemoryWatchOptions options_;
  mutable std::mutex lock_;
  budget::PressureReader reader_;
  budget::Growth growth_;
  std::uint64_t least_others_ = 0;
  State state_;
  std::vector<Watched> models_;  // in the order in which they yield
  std::function<void()> on_short_;
  std::atomic<std::uint64_t> lacking_{0};
  std::atomic<std::int64_t> ending_us_{0};
  std::atomic<std::uint64_t> ending_bytes_{0};
  std::atomic<bool> stopped_{false}, told_{false};
  std::atomic<int> number_{0};                         // of the thread
  const int usual_priority_ = detail::priority_of(0);  // of the program
  const int usual_session_ = detail::session_priority();
  budget::detail::PressureEvents events_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace mica
