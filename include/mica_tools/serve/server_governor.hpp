// SPDX-License-Identifier: Apache-2.0
//
// A server that releases memory for other processes, between two steps, by the readings of a MemoryWatch:
//
//   less than `low` remains   prefixes, models without answers, then what a Governed of each model yields:
//                             scratch, weights; at last answers end where memory ends
//   all models are halted     answers fail, prefixes are saved, all models are unloaded; requests are refused
//                             until memory is back
//   and still the limit is near     the server ends
#pragma once

#include "mica/base/error.hpp"
#include "mica/budget/size.hpp"
#include "mica/runtime/governor.hpp"
#include "mica/runtime/memory_watch.hpp"
#include "mica_tools/serve/model_memory.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace mica::serve {

/// All members: the thread of the scheduler.
class ServerGovernor {
 public:
  using Clock = MemoryWatch::Clock;  // of readings

  /// Entries, memory and options outlive this object, and SchedulerOptions::watch is set. fail: ends all
  /// running and waiting answers.
  ServerGovernor(const ModelMemory::Entries& entries, ModelMemory& memory, const SchedulerOptions& options,
                 std::function<void(const Failed&)> fail)
      : entries_(entries),
        memory_(memory),
        options_(options),
        watch_(*options.watch),
        fail_(std::move(fail)) {}

  /// Between two steps. Cost: a lock; with a new reading that of Governed.
  void operator()(Clock::time_point now = Clock::now()) {
    const MemoryWatch::State state = watch_.state();
    if (!state.pressure) return;
    if (state.halted && !shed_) begin_to_shed(state, now);
    if (shed_) return shed(state, now);
    if (std::exchange(readings_, state.readings) == state.readings) return;
    if (!release(state, now)) yield_one(now);
  }

  /// While memory is short and nothing is left to release: seconds after which a request may be sent again.
  [[nodiscard]] std::optional<std::uint64_t> retry_after() const noexcept {
    if (shed_) return std::max<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(wait_).count(), 1);
    const bool limited = std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
      return entry->engine && entry->engine->limited();
    });
    return limited ? std::optional<std::uint64_t>(1) : std::nullopt;
  }
  /// Whether all models are unloaded, or are to be, because others took the memory.
  [[nodiscard]] bool sheds() const noexcept { return shed_.has_value(); }
  /// How many times all models were unloaded for this reason.
  [[nodiscard]] std::uint64_t times() const noexcept { return times_; }
  /// Whether the limit is near although nothing is left: the server has to end.
  [[nodiscard]] bool is_lost() const noexcept { return lost_; }

 private:
  static constexpr std::chrono::milliseconds min_wait{1000}, max_wait{60'000};  // of calm

  struct Shed {
    bool empty = false;                          // no model is loaded
    std::uint64_t readings = 0;                  // when it became so
    std::optional<Clock::time_point> calm = {};  // since when enough memory is left
  };

  [[nodiscard]] Governor::Thresholds thresholds(const MemoryWatch::State& state) const noexcept {
    const GovernorOptions& options = watch_.thresholds();
    std::uint64_t own = 0;
    for (const auto& entry : entries_)
      own += entry->engine ? entry->engine->growth_within(options.growth_tokens) : 0;
    return Governor::thresholds(options, *state.pressure, state.growth, own);
  }
  /// Saving takes some time, in which others may take as much as at their fastest.
  [[nodiscard]] bool has_time(std::uint64_t bytes) const {
    constexpr double window = 0.1;  // seconds
    const MemoryWatch::State state = watch_.state();
    const double seconds = std::chrono::duration<double>(save_time(bytes)).count();
    return static_cast<double>(state.pressure->left) >
           static_cast<double>(state.growth) * seconds / window + budget::Pressure::min_reserve;
  }
  void log(const MemoryWatch::State& state, const std::string& text) const {
    const budget::Pressure& pressure = *state.pressure;
    options_.log(LogLevel::warning,
                 join("governor: ", budget::size_text(pressure.left), " of ",
                      budget::size_text(pressure.limit), " left of ", pressure.authority, ": ", text));
  }
  void give_back() const {
    if (options_.release_memory) options_.release_memory();
  }

  /// Frees prefixes and models without answers; false: none, or memory is not short. A prefix cache that
  /// fills the memory up to its limit is released often, so not each time is a line of the log.
  [[nodiscard]] bool release(const MemoryWatch::State& state, Clock::time_point now) {
    constexpr std::chrono::seconds between_lines(10);
    const Governor::Thresholds m = thresholds(state);
    if (state.pressure->left >= m.low) return false;
    const std::uint64_t middle = (m.low + m.high) / 2;
    const std::uint64_t freed = memory_.release(middle - std::min(middle, state.pressure->left),
                                                [this](std::uint64_t bytes) { return has_time(bytes); });
    if (freed == 0) return false;
    give_back();
    released_ += freed;
    if (logged_ && now - *logged_ < between_lines) return true;
    logged_ = now;
    log(state,
        join(budget::size_text(std::exchange(released_, 0)), " of prefixes and idle models left memory"));
    return true;
  }
  /// One model changes with each reading, the least recently used first.
  void yield_one(Clock::time_point now) {
    std::vector<ModelEntry*> loaded;
    for (const auto& entry : entries_) {
      if (entry->engine) loaded.push_back(entry.get());
    }
    std::sort(loaded.begin(), loaded.end(),
              [](const ModelEntry* a, const ModelEntry* b) { return a->used < b->used; });
    for (ModelEntry* entry : loaded) {
      if (entry->engine->yield(now)) return;
    }
  }

  /// Waits that were too short double.
  void begin_to_shed(const MemoryWatch::State& state, Clock::time_point now) {
    wait_ = resumed_ && now - *resumed_ < 10 * wait_ ? std::min(2 * wait_, max_wait) : min_wait;
    shed_ = Shed{};
    ++times_;
    fail_(short_of_memory(*retry_after()));
    log(state,
        "nothing is left to release: answers end, models are unloaded, and requests are refused until "
        "memory is back");
  }
  void shed(const MemoryWatch::State& state, Clock::time_point now) {
    if (!shed_->empty) {
      for (const auto& entry : entries_) {
        if (entry->engine) entry->engine->shrink();
      }
      shed_->empty = memory_.release_all([this](std::uint64_t bytes) { return has_time(bytes); });
      give_back();
      shed_->readings = watch_.state().readings;
      return;
    }
    if (state.readings <= shed_->readings) return;  // from before the memory was free
    lost_ = lost_ || state.hopeless;
    const bool calm = state.pressure->left > thresholds(state).high;
    if (!calm) shed_->calm.reset();
    if (calm && !shed_->calm) shed_->calm = now;
    if (!calm || now - *shed_->calm < wait_) return;
    shed_.reset();
    resumed_ = now;
    watch_.resume();
    log(state, "requests are answered again");
  }

  const ModelMemory::Entries& entries_;
  ModelMemory& memory_;
  const SchedulerOptions& options_;
  MemoryWatch& watch_;
  std::function<void(const Failed&)> fail_;
  std::uint64_t readings_ = 0;  // of the watch, when memory was last released by it
  std::uint64_t released_ = 0;  // bytes since the last line of the log
  std::optional<Clock::time_point> logged_;
  std::optional<Shed> shed_;  // empty: requests are answered
  std::uint64_t times_ = 0;
  std::chrono::milliseconds wait_ = min_wait;  // of calm before requests are answered again
  std::optional<Clock::time_point> resumed_;   // when it last was over
  bool lost_ = false;
};

}  // namespace mica::serve
