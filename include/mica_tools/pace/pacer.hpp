// SPDX-License-Identifier: Apache-2.0
//
// How long to sleep after work, so that a temperature, a power or a part of the time stays below a limit.
// Rests are sleeps between two runs of an executor (exec/observed.hpp), so that they fall between layers and
// within them.
//
//   85C   the hottest zone of the processor (sensors.hpp)           PI on the temperature, twice a second
//   15W   the packages' counters of energy (sensors.hpp)            integral on the power, without inertia
//   50%   the duty cycle
#pragma once

#include "mica/base/assert.hpp"
#include "mica/exec/observed.hpp"
#include "mica_tools/pace/sensors.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace mica::pace {

/// How a controller answers. The defaults are for temperatures, in kelvins: a third of the duty for each ten
/// that it rises.
struct DutyGains {
  double scale = 10;           // of the measured value
  double proportional = 0.33;  // duty for one of the scale
  double integral = 0.05;      // the same for each second
  double min = 0.05;           // duty
};

/// The duty cycle that keeps a measured value below a limit. A PI controller in velocity form,
///
///   error = (limit - measured) / scale
///   duty += proportional * (error - error before) + integral * error * seconds
///
/// kept between `min` and 1, which is all the anti-windup it needs (Astrom and Murray, Feedback Systems,
/// chapter 11). No clock, no sensor.
class DutyControl {
 public:
  /// limit: in the unit of measured(). The duty begins at 1.
  explicit DutyControl(double limit, DutyGains gains = {}) noexcept : limit_(limit), gains_(gains) {}

  /// The duty from now on, seconds after the last measurement.
  double measured(double value, double seconds) noexcept {
    const double error = (limit_ - value) / gains_.scale,
                 before = std::exchange(error_, error).value_or(error);
    duty_ += gains_.proportional * (error - before) + gains_.integral * error * seconds;
    return duty_ = std::clamp(duty_, gains_.min, 1.0);
  }

 private:
  double limit_;
  DutyGains gains_;
  double duty_ = 1;
  std::optional<double> error_;  // of the last measurement
};

/// The limit.
struct Pace {
  /// The measured quantity: the part of the time, a temperature, a power.
  enum class Unit : std::uint8_t { percent, celsius, watts };
  Unit unit = Unit::percent;  // of the limit
  double limit = 100;         // 100 %: no limit

  /// "85C", "15W", "50%". Raises ErrorCode::usage, naming `what`, for anything else: 1 to 150 C, above 0 W, 1
  /// to 100 %.
  [[nodiscard]] static Pace parse(std::string_view text, std::string_view what) {
    Pace pace;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    bool known = error == std::errc() && number >= 1;
    if (unit == "C" || unit == "c") {
      pace.unit = Unit::celsius;
      known = known && number <= 150;
    } else if (unit == "W" || unit == "w") {
      pace.unit = Unit::watts;
      known = known && number <= 100'000;
    } else {
      known = known && unit == "%" && number <= 100;
    }
    MICA_CHECK(known, usage, what, ": found \"", escaped(text),
               "\", allowed a temperature, a power or a part of the time, 1 or more: 85C, 15W, 50%");
    pace.limit = number;
    return pace;
  }
};

/// Decides about rests. One thread, the one that steps.
class Pacer final : public exec::RunObserver {
 public:
  static constexpr std::chrono::milliseconds every{500};    // measurements
  static constexpr std::chrono::milliseconds shortest{2};   // the minimum sleep; shorter ones are accumulated
  static constexpr std::chrono::milliseconds longest{500};  // the maximum sleep
  static constexpr std::chrono::milliseconds saved{100};    // idle time that counts as sleep later

  /// Raises ErrorCode::unsupported where no sensor for it can be read. root: a prefix of /sys, for tests.
  explicit Pacer(const Pace& pace, const std::string& root = "")
      : pace_(pace),
        thermometer_(root),
        power_(root),
        control_(pace.limit, gains(pace)),
        duty_(pace.unit == Pace::Unit::percent ? pace.limit / 100 : 1) {
    MICA_CHECK(pace.unit != Pace::Unit::celsius || thermometer_, unsupported,
               "no thermal zone can be read below /sys/class/thermal; a part of the time needs none: 50%");
    MICA_CHECK(
        pace.unit != Pace::Unit::watts || power_, unsupported,
        "no counter of energy can be read below /sys/class/powercap (intel-rapl:*/energy_uj, which many "
        "systems let root alone read); a part of the time needs none: 50%");
  }

  // Required by RunObserver
  /// Sleeps as long as rest() says.
  void ran(Time begin, Time end) noexcept override {
    const Clock::duration rest = this->rest(begin, end);
    if (rest > Clock::duration::zero()) std::this_thread::sleep_for(rest);
  }

  // Specific to Pacer
  /// Records work from `begin` to `end`, and returns how long to sleep now, usually 0.
  [[nodiscard]] Clock::duration rest(Time begin, Time end) noexcept {
    measure(end);
    const auto work = std::chrono::duration<double>(end - begin);
    const auto wall = end - worked_.value_or(begin);  // with rests, and waits for a disk
    worked_ = end;
    owed_ += std::chrono::duration_cast<Clock::duration>(work / duty_) - wall;
    owed_ = std::max<Clock::duration>(owed_, -saved);
    if (duty_ >= 1 || owed_ < shortest) return Clock::duration::zero();
    return std::min<Clock::duration>(owed_, longest);
  }
  /// "85 C of thermal_zone0 (x86_pkg_temp), now 61 C; the system itself acts at 100 C"
  [[nodiscard]] std::string text() const {
    const auto number = [](double value) { return join(static_cast<std::int64_t>(value + 0.5)); };
    if (pace_.unit == Pace::Unit::percent) return join(number(pace_.limit), " % of the time");
    if (pace_.unit == Pace::Unit::watts) return join(number(pace_.limit), " W of ", power_.name());
    const auto now = thermometer_.celsius();
    return join(
        number(pace_.limit), " C of ", thermometer_.name(), now ? join(", now ", number(*now), " C") : "",
        thermometer_.trip() ? join("; the system itself acts at ", number(*thermometer_.trip()), " C") : "");
  }

 private:
  void measure(Time now) noexcept {
    if (pace_.unit == Pace::Unit::percent || (measured_ && now - *measured_ < every)) return;
    const double seconds = measured_ ? std::chrono::duration<double>(now - *measured_).count() : 0;
    measured_ = now;
    const auto value = pace_.unit == Pace::Unit::celsius ? thermometer_.celsius() : power_.watts(now);
    if (value) duty_ = control_.measured(*value, std::min(seconds, 2.0));
  }
  /// The power reacts at once and may exceed the limit several times: a fourth of the correction each time.
  [[nodiscard]] static DutyGains gains(const Pace& pace) noexcept {
    return pace.unit == Pace::Unit::watts ? DutyGains{pace.limit, 0, 0.5, 0.02} : DutyGains{};
  }

  Pace pace_;
  Thermometer thermometer_;
  PowerMeter power_;
  DutyControl control_;
  double duty_;
  std::optional<Time> measured_, worked_;  // the last time
  Clock::duration owed_{};                 // rest
};

}  // namespace mica::pace
