// SPDX-License-Identifier: Apache-2.0
//
// The duty cycle that keeps a measured value below a limit. A PI controller in velocity form,
//
//   duty += proportional * (error - error before) + integral * error * seconds,  error = (limit - measured) / scale,
//
// kept between `min` and 1, which is all the anti-windup it needs (Astrom and Murray, Feedback Systems,
// chapter 11).
#pragma once

#include <algorithm>
#include <optional>
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

/// One limit. No clock, no sensor.
class DutyControl {
 public:
  explicit DutyControl(double limit, DutyGains gains = {}) noexcept : limit_(limit), gains_(gains) {}

  /// The duty from now on, seconds after the last measurement.
  double measured(double value, double seconds) noexcept {
    const double error = (limit_ - value) / gains_.scale,
                 before = std::exchange(error_, error).value_or(error);
    duty_ += gains_.proportional * (error - before) + gains_.integral * error * seconds;
    return duty_ = std::clamp(duty_, gains_.min, 1.0);
  }
  [[nodiscard]] double duty() const noexcept { return duty_; }

 private:
  double limit_;
  DutyGains gains_;
  double duty_ = 1;
  std::optional<double> error_;  // of the last measurement
};

}  // namespace mica::pace
