// SPDX-License-Identifier: Apache-2.0
//
// Pacing against machines that a test simulates: a thermal mass, counters of energy, files below a root of
// our own.

#include "mica_tools/pace/pacer.hpp"

#include "io/temporary_folder.hpp"
#include "mica/exec/inline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mica::test::pacer_test {
namespace {

using namespace std::chrono_literals;
using pace::DutyControl;
using pace::Pace;
using pace::Pacer;

/// A machine with a thermal zone, one that is no processor, and a package of two parts.
struct Machine {
  TemporaryFolder folder;

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder.path(path);
    std::filesystem::create_directories(file.parent_path());
    folder.file(path, text);
  }
  void heat(int zone, double celsius) const {
    write("sys/class/thermal/thermal_zone" + std::to_string(zone) + "/temp",
          std::to_string(static_cast<int>(celsius * 1000)) + "\n");
  }
  void zones() const {
    write("sys/class/thermal/thermal_zone0/type", "acpitz\n");
    heat(0, 95);
    for (int zone : {1, 2}) {
      const std::string path = "sys/class/thermal/thermal_zone" + std::to_string(zone);
      write(path + "/type", "x86_pkg_temp\n");
      write(path + "/trip_point_0_type", "active\n");
      write(path + "/trip_point_0_temp", "40000\n");
      write(path + "/trip_point_1_type", "passive\n");
      write(path + "/trip_point_1_temp", "98000\n");
      heat(zone, 50 + zone);
    }
    write("sys/class/thermal/cooling_device0/type", "Processor\n");
  }
  void energy(double joules) const {
    const auto microjoules = static_cast<std::uint64_t>(joules * 1e6) % 1'000'000'000;
    write("sys/class/powercap/intel-rapl:0/energy_uj", std::to_string(microjoules) + "\n");
  }
  void package() const {
    write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000\n");
    energy(990);
    write("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n");
    write("sys/class/powercap/intel-rapl/enabled", "1\n");
  }
};

/// Runs pieces of work of 20 ms for some time, rests as the pacer says, and calls after(seconds worked,
/// seconds passed) each time.
template <class After>
double run(Pacer& pacer, Pacer::Time& now, double seconds, After after) {
  const auto end =
      now + std::chrono::duration_cast<Pacer::Clock::duration>(std::chrono::duration<double>(seconds));
  double worked = 0;
  const auto begin = now;
  while (now < end) {
    const auto started = now;
    now += 20ms;
    const auto rest = pacer.rest(started, now);
    now += rest;
    worked += 0.02;
    after(0.02, 0.02 + std::chrono::duration<double>(rest).count());
  }
  return worked / std::chrono::duration<double>(now - begin).count();
}

}  // namespace

TEST_CASE("what a pace may be") {
  CHECK(Pace::parse("85C", "--pace").unit == Pace::Unit::celsius);
  CHECK(Pace::parse("85.5C", "--pace").limit == 85.5);
  CHECK(Pace::parse("15W", "--pace").unit == Pace::Unit::watts);
  CHECK(Pace::parse("50%", "--pace").unit == Pace::Unit::percent);
  for (const char* text : {"", "C", "85", "85F", "0C", "-5C", "151C", "0W", "0%", "101%", "nanC", "infW",
                           "1e9W", "50 %", "50%%"}) {
    CAPTURE(text);
    const Error error = refusal([&] { return Pace::parse(text, "--pace"); });
    CHECK(error.code() == ErrorCode::usage);
    CHECK(mentions(error, "--pace", "85C, 15W, 50%"));
  }
}

TEST_CASE("a part of the time is kept, and time that passed by itself counts as rest") {
  Pacer pacer(Pace{Pace::Unit::percent, 40}, "/nowhere");
  Pacer::Time now{};
  CHECK(run(pacer, now, 20, [](double, double) {}) == doctest::Approx(0.4).epsilon(0.02));
  CHECK(pacer.text() == "40 % of the time");
  for (int i = 0; i < 100; ++i) {  // 20 ms of work, 40 ms of waiting for a disk
    const auto begin = now;
    now += 20ms;
    const auto rest = pacer.rest(begin, now);
    CHECK((rest == 0ms || i < 5));  // some was owed
    now += 40ms;
  }
}

TEST_CASE("a temperature is kept below its limit, whatever the mass, and nothing rests where it is cool") {
  for (const double seconds : {3.0, 20.0, 120.0}) {  // of the mass: 1 - 1/e of the way
    CAPTURE(seconds);
    const Machine machine;
    machine.zones();
    Pacer pacer(Pace{Pace::Unit::celsius, 80}, machine.folder.path(""));
    Pacer::Time now{};
    double heat = 45, hottest = 0, worked = 0, passed = 0;  // at rest 40 C, at work 110 C
    const auto step = [&](double work, double wall) {
      heat += (40 + 70 * work / wall - heat) * (1 - std::exp(-wall / seconds));
      if (static_cast<int>(passed * 4) != static_cast<int>((passed + wall) * 4)) machine.heat(2, heat);
      worked += work;
      passed += wall;
      hottest = std::max(hottest, heat);
    };
    run(pacer, now, 10 * seconds + 60, step);
    CHECK(hottest < 86);  // on the way
    hottest = worked = passed = 0;
    run(pacer, now, 60, step);
    CHECK(hottest < 81.5);
    CHECK(worked / passed > 0.53);  // 40 of 70: four sevenths of the time
  }
  const Machine machine;
  machine.zones();
  Pacer pacer(Pace{Pace::Unit::celsius, 80}, machine.folder.path(""));
  Pacer::Time now{};
  CHECK(run(pacer, now, 60, [](double, double) {}) == doctest::Approx(1));
  CHECK(pacer.text() ==
        "80 C of thermal_zone1 (x86_pkg_temp) and 1 more, now 52 C; the system itself acts at 98 C");
}

TEST_CASE("a power is kept, over a counter that wraps") {
  for (const double limit : {12.0, 20.0, 39.0, 60.0}) {
    CAPTURE(limit);
    const Machine machine;
    machine.package();
    Pacer pacer(Pace{Pace::Unit::watts, limit}, machine.folder.path(""));
    Pacer::Time now{};
    double joules = 990, before = 0, passed = 0;
    const auto step = [&](double work, double wall) {  // 5 W at rest, 40 W at work
      joules += 5 * wall + 35 * work;
      if (static_cast<int>(passed * 10) != static_cast<int>((passed + wall) * 10)) machine.energy(joules);
      passed += wall;
    };
    run(pacer, now, 40, step);
    before = joules;
    passed = 0;
    run(pacer, now, 60, step);
    CHECK((joules - before) / passed == doctest::Approx(std::min(limit, 40.0)).epsilon(0.04));
    CHECK(mentions(Error(ErrorCode::usage, pacer.text()), " W of intel-rapl:0 (package-0)"));
  }
}

TEST_CASE("without a sensor a limit is refused, and files of other words are none") {
  const Machine machine;
  for (int i = 0; i < 2; ++i) {
    const Error hot = refusal([&] { return Pacer(Pace{Pace::Unit::celsius, 80}, machine.folder.path("")); });
    CHECK(hot.code() == ErrorCode::unsupported);
    CHECK(mentions(hot, "no thermal zone can be read", "50%"));
    const Error power = refusal([&] { return Pacer(Pace{Pace::Unit::watts, 8}, machine.folder.path("")); });
    CHECK(power.code() == ErrorCode::unsupported);
    CHECK(mentions(power, "no counter of energy can be read", "root"));
    machine.write("sys/class/thermal/thermal_zone0/temp", "warm\n");
    machine.write("sys/class/powercap/intel-rapl:0/energy_uj", "");
  }
}

TEST_CASE("an executor that rests runs every task, and half of the time") {
  exec::Inline executor;
  Pacer pacer(Pace{Pace::Unit::percent, 50}, "/nowhere");
  exec::Observed paced(executor, &pacer), hurried(executor);
  std::size_t sum = 0;
  hurried.run(3, [&](std::size_t task, std::size_t) noexcept { sum += task; });
  const auto begin = Pacer::Clock::now();
  Pacer::Clock::duration worked{};
  while (Pacer::Clock::now() - begin < 300ms) {
    const auto started = Pacer::Clock::now();
    paced.run(4, [&](std::size_t task, std::size_t) noexcept {
      sum += task;
      if (task == 3) worked += Pacer::Clock::now() - started;
    });
  }
  CHECK(sum % 6 == 3);
  CHECK(worked < (Pacer::Clock::now() - begin) * 3 / 4);  // a neighbour makes work longer, and rest with it
}

}  // namespace mica::test::pacer_test
