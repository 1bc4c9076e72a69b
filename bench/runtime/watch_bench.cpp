// SPDX-License-Identifier: Apache-2.0
//
// What a MemoryWatch costs, and how fast weights leave memory.
//
// usage: watch_bench MODEL
//
// Prints the processor time of a reading, and for amounts of weights the time in which yield_weights() frees
// them. It checks that the weights in memory are as much fewer.
#include "mica/budget/size.hpp"
#include "mica/runtime/open.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace {

double processor_seconds() {
  ::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void time_readings() {
  constexpr int readings = 2000;
  mica::MemoryWatch watch({.thread = false});
  const double begin = processor_seconds();
  for (int i = 0; i < readings; ++i) watch.look();
  const double us = (processor_seconds() - begin) * 1e6 / readings;
  std::printf("a reading: %.1f us of processor time; every 100 ms %.3f %%, every 8 ms %.2f %% of a core\n",
              us, us / 1e5 * 100, us / 8e3 * 100);
}

/// False if other bytes left memory than yield_weights() said.
bool time_yields(const char* path) {
  using Clock = std::chrono::steady_clock;
  auto model = mica::open(path, {.n_ctx = 256, .choice = {.weights = mica::paging::Choice::streamed}});
  auto& transformer = model.transformer();
  for (const std::uint64_t mib : {10u, 50u, 100u, 200u, 400u}) {
    const std::uint64_t before = transformer.weight_capacity().resident;
    const auto begin = Clock::now();
    const std::uint64_t freed = transformer.yield_weights(mib << 20);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (transformer.weight_capacity().resident + freed != before) return false;
    std::printf("%4u MiB wanted: %s of weights left memory in %.2f ms\n", static_cast<unsigned>(mib),
                mica::budget::size_text(freed).c_str(), ms);
    transformer.resize_weights(before);
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: watch_bench MODEL\n");
    return 2;
  }
  try {
    time_readings();
    if (time_yields(words[1])) return 0;
    std::fprintf(stderr, "watch_bench: the capacity of weights is not what was freed\n");
  } catch (const mica::Error& error) {
    std::fprintf(stderr, "watch_bench: %s\n", error.message().c_str());
  }
  return 1;
}
