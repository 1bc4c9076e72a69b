// SPDX-License-Identifier: Apache-2.0
//
// usage: machine_bench [THREADS]
//
// The limits of the machine that whole models are held against, with 1, 2, ... THREADS threads at once (2 if
// not given): reading memory on huge pages, each thread a part of its own, the dot of bytes, and float
// multiply-adds. Wall-clock time, the best of nine runs; one object of JSON on stdout.

#define MICA_USER_CODECS_INL "kernel/peak-inl.hpp"
#include "kernel/measure.hpp"
#include "mica/kernel/highway/dispatch.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace mica::kernel::highway {
HWY_EXPORT(dots);
HWY_EXPORT(float_multiply_adds);
HWY_EXPORT(read_all);
HWY_EXPORT(target_name);
}  // namespace mica::kernel::highway

namespace {

/// Seconds until all of `threads` have done work(thread), which they begin together; the best of nine.
double together(std::size_t threads, const std::function<void(std::size_t)>& work) {
  double best = 1e9;
  for (int run = 0; run < 9; ++run) {
    std::atomic<std::size_t> waiting{threads};
    std::atomic<bool> go{false};
    std::vector<std::thread> team;
    for (std::size_t i = 0; i < threads; ++i) {
      team.emplace_back([&, i] {
        --waiting;
        while (!go) std::this_thread::yield();
        work(i);
      });
    }
    while (waiting != 0) std::this_thread::yield();
    const auto begin = std::chrono::steady_clock::now();
    go = true;
    for (std::thread& each : team) each.join();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace mica::kernel::highway;
  const std::size_t max = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2;
  constexpr std::size_t bytes = std::size_t{1} << 30, rounds = 4000000;
  bench::Pages<unsigned char> memory(bytes);
  std::vector<std::int32_t> sinks(max * 64, 1);
  double dots_done = 0, floats_done = 0;
  const auto read = HWY_DYNAMIC_POINTER(read_all);
  const auto dot = HWY_DYNAMIC_POINTER(dots);
  const auto multiply_add = HWY_DYNAMIC_POINTER(float_multiply_adds);
  std::printf("{\"target\": \"%s\", \"threads\": [", HWY_DYNAMIC_DISPATCH(target_name)());
  for (std::size_t n = 1; n <= max; ++n) {
    const std::size_t part = bytes / n;
    const double reading =
        together(n, [&](std::size_t i) { read(memory.data() + i * part, part, &sinks[i * 64]); });
    const double dotting = together(n, [&](std::size_t i) {
      const double done = dot(rounds, &sinks[i * 64]);
      if (i == 0) dots_done = done;
    });
    const double adding = together(n, [&](std::size_t i) {
      const double done = multiply_add(rounds, &sinks[i * 64]);
      if (i == 0) floats_done = done;
    });
    const double count = static_cast<double>(n);
    std::printf("%s{\"threads\": %zu, \"read_gbs\": %.1f, \"dot_gmacs\": %.0f, \"float_gmacs\": %.0f}",
                n == 1 ? "" : ", ", n, static_cast<double>(part * n) / reading / 1e9,
                dots_done * count / dotting / 1e9, floats_done * count / adding / 1e9);
  }
  std::printf("]}\n");
  return 0;
}
