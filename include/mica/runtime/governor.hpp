// SPDX-License-Identifier: Apache-2.0
//
// When a running model yields memory, and when it reclaims it. A decision from readings alone: nothing here
// reads a file or changes a model (budget/pressure.hpp, runtime/governed.hpp do).
//
//   remaining   0 | urgent | pressure: yield | low | no change | high | no pressure: reclaim, after a while |
//   order       caches, chunk, cold, weights: each once, weights repeatedly; urgently all at once
//
// The faster others take memory, the higher are all three thresholds. It reclaims memory after a time without
// pressure, which doubles each time that it was too early.
#pragma once

#include "mica/budget/pressure.hpp"
#include "mica/paging/concept.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace mica {

/// What has been yielded: this, and all before it.
enum class Yield : std::uint8_t {
  nothing,  ///< memory is used as the model was opened
  caches,   ///< unused capacity of caches, entries of the prefix cache
  chunk,    ///< scratch of long steps: prompts are read in smaller ones
  cold,     ///< keys and values of idle sessions, where their storage has a file
  weights,  ///< resident weights: they are read for each step
};

/// The enumerator as text.
[[nodiscard]] constexpr std::string_view name(Yield yield) noexcept {
  constexpr std::string_view names[] = {"nothing", "caches", "chunk", "cold", "weights"};
  return names[static_cast<std::size_t>(yield)];
}

/// The thresholds of a governor. Fractions are of the nearest limit. Each threshold grows with the bytes that
/// others take within 100 ms (budget/growth.hpp): urgent by 5/4 of them, low by 3/2, high by 5/2. low and
/// high grow with the bytes that running sessions will take soon, too.
struct GovernorOptions {
  double low = budget::Pressure::reserve_part;  // less remaining is pressure
  double high = 0.04;  // more remaining is no pressure; between them the time that tasks wait decides
  std::uint64_t min_low = budget::Pressure::min_reserve;  // bytes: `low` is no less,
  std::uint64_t max_low = budget::Pressure::max_reserve;  // and no more; `high` changes with it
  double stalled = 0.1;  // of the time waited for memory, with less than `high` remaining: pressure as well
  std::size_t growth_tokens =
      64;  // what running sessions take within these counts as taken: `low` and `high`
  std::chrono::milliseconds down{200};         // from one yield to the next
  std::chrono::milliseconds up{10'000};        // without pressure before a yield is taken back
  std::chrono::milliseconds longest{300'000};  // the maximum of this wait
};

/// A change from one yield to another.
struct Decision {
  Yield from = Yield::nothing;     // the yield before it
  Yield to = Yield::nothing;       // the yield after it: more, or less
  std::uint64_t weight_bytes = 0;  // the new capacity of weights, where from or to is Yield::weights

  friend bool operator==(const Decision&, const Decision&) = default;
};

/// Decides. One thread.
class Governor {
 public:
  using Time = std::chrono::steady_clock::time_point;  // of readings, in their order

  /// capacity: of the weights as they were opened; it never grows beyond that.
  explicit Governor(const paging::WeightCapacity& capacity, GovernorOptions options = {}) noexcept
      : options_(options), ceiling_(std::min(capacity.requested, capacity.max)), wait_(options.up) {}

  /// The yield after the last decision.
  [[nodiscard]] Yield yield() const noexcept { return yield_; }
  /// The decision could not be applied: yielded memory stays yielded until there is no pressure.
  void refuse(const Decision& decision) noexcept { yield_ = std::max(decision.from, decision.to); }
  /// Empty: nothing to do. The caller applies a decision before the next reading. growth: bytes that others
  /// took within 100 ms, at most. own: bytes that running sessions will take soon.
  [[nodiscard]] std::optional<Decision> decide(const budget::Pressure& pressure,
                                               const paging::WeightCapacity& capacity, Time now,
                                               std::uint64_t growth = 0, std::uint64_t own = 0) noexcept;
  /// The bytes by which running sessions may still grow: with less than `low` remaining and nothing left to
  /// yield, those above half of `low`. Otherwise Pressure::unlimited.
  [[nodiscard]] std::uint64_t growth_left(const budget::Pressure& pressure,
                                          const paging::WeightCapacity& capacity, std::uint64_t growth,
                                          std::uint64_t own) const noexcept {
    const bool yields = capacity.resident > capacity.min || yield_ < Yield::cold;
    if (yields || pressure.left >= thresholds(options_, pressure, growth, own).low)
      return budget::Pressure::unlimited;
    return pressure.left - std::min(pressure.left, thresholds(options_, pressure, 0).urgent);
  }
  /// The last yield freed nothing: the next one does not wait.
  void hurry() noexcept { at_once_ = true; }
  /// Weights were yielded at once, because less than `urgent` remained. Returns the decision that yields what
  /// comes before weights.
  Decision note_urgent(Time now) noexcept {
    const Decision decision{yield_, Yield::weights, 0};
    yield_ = Yield::weights;
    note_pressure(now);
    return decision;
  }

  /// Thresholds in bytes: below low is pressure, above high is none, and below urgent nothing can wait for
  /// the end of a step.
  struct Thresholds {
    std::uint64_t urgent, low, high;
  };
  [[nodiscard]] static Thresholds thresholds(const GovernorOptions& options, const budget::Pressure& pressure,
                                             std::uint64_t growth, std::uint64_t own = 0) noexcept {
    const double part = options.low * static_cast<double>(pressure.limit);
    const auto low = std::clamp(static_cast<std::uint64_t>(part), options.min_low,
                                std::max(options.min_low, options.max_low));
    const double ratio = options.low > 0 ? std::max(options.high / options.low, 1.0) : 1.0;
    const auto high = static_cast<std::uint64_t>(static_cast<double>(low) * ratio);
    const std::uint64_t fast = std::min(growth, pressure.limit);
    const std::uint64_t soon = std::min(own, pressure.limit);
    return {low / 2 + fast * 5 / 4, low + soon + fast * 3 / 2, high + soon + fast * 5 / 2};
  }

 private:
  /// A wait that was too short doubles.
  void note_pressure(Time now) noexcept {
    calm_.reset();
    const bool too_early = up_ && now - *up_ < 2 * wait_;
    if (too_early && (!down_ || *down_ < *up_))
      wait_ = std::min<decltype(wait_)>(2 * wait_, options_.longest);
    down_ = now;
  }
  /// One yield after the other; where less than half of `low` remains, all of them at once. Weights yield
  /// until the middle of both thresholds is reached.
  [[nodiscard]] std::optional<Decision> yield_step(const budget::Pressure& pressure,
                                                   const paging::WeightCapacity& capacity,
                                                   Thresholds m) const noexcept {
    const bool can = capacity.resident > capacity.min;
    const Yield last = can || yield_ == Yield::weights ? Yield::weights : Yield::cold;
    if (yield_ == last && !can) return std::nullopt;
    const bool hurry = pressure.left < m.urgent || pressure.killed > 0;
    const auto next = static_cast<Yield>(static_cast<std::uint8_t>(yield_) + 1);
    Decision decision{yield_, hurry ? last : std::min(next, last), 0};
    if (decision.to != Yield::weights)
      return decision.from == decision.to ? std::nullopt : std::optional(decision);
    const std::uint64_t middle = (m.low + m.high) / 2, lacking = middle - std::min(middle, pressure.left);
    const std::uint64_t back = std::max(lacking, m.low / 2);
    decision.weight_bytes = std::max(capacity.min, capacity.resident - std::min(capacity.resident, back));
    return decision;
  }
  /// Weights first, half of the bytes above the threshold at a time; where no more weights fit, nothing else
  /// is reclaimed either.
  [[nodiscard]] std::optional<Decision> reclaim_step(const budget::Pressure& pressure,
                                                     const paging::WeightCapacity& capacity,
                                                     Thresholds m) const noexcept {
    Decision decision{yield_, yield_, 0};
    if (yield_ == Yield::weights) {
      const std::uint64_t more = (pressure.left - m.high) / 2;
      decision.weight_bytes =
          more < ceiling_ - std::min(ceiling_, capacity.resident) ? capacity.resident + more : ceiling_;
      if (decision.weight_bytes < ceiling_) return decision;
    }
    decision.to = static_cast<Yield>(static_cast<std::uint8_t>(yield_) - 1);
    return decision;
  }

  GovernorOptions options_;
  std::uint64_t ceiling_;  // bytes of weights
  Yield yield_ = Yield::nothing;
  std::chrono::steady_clock::duration wait_;  // without pressure, before a step up
  std::optional<Time> down_, up_;             // the last steps
  std::optional<Time> calm_;                  // since when it is
  bool at_once_ = false;
};

inline std::optional<Decision> Governor::decide(const budget::Pressure& pressure,
                                                const paging::WeightCapacity& capacity, Time now,
                                                std::uint64_t growth, std::uint64_t own) noexcept {
  if (pressure.limit == budget::Pressure::unlimited) return std::nullopt;
  const Thresholds m = thresholds(options_, pressure, growth, own);
  const bool waits = pressure.stalled > options_.stalled && pressure.left < m.high;
  const bool pressed = pressure.left < m.low || waits || pressure.killed > 0;
  std::optional<Decision> decision;
  if (pressed) {
    calm_.reset();
    const bool wait = !std::exchange(at_once_, false) && down_ && now - *down_ < options_.down;
    if (wait) return std::nullopt;
    if (!(decision = yield_step(pressure, capacity, m))) return std::nullopt;
    note_pressure(now);
  } else {
    const bool calm = pressure.left > m.high && pressure.stalled < options_.stalled / 10;
    if (!calm) calm_.reset();
    if (calm && !calm_) calm_ = now;
    if (!calm || yield_ == Yield::nothing || now - *calm_ < wait_) return std::nullopt;
    if (!(decision = reclaim_step(pressure, capacity, m))) return std::nullopt;
    up_ = calm_ = now;
  }
  yield_ = decision->to;
  return decision;
}

}  // namespace mica
