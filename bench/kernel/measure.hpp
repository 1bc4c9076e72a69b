// SPDX-License-Identifier: Apache-2.0
//
// What the kernel benchmarks share: the clock of one thread, the spread, memory that is really there.

#pragma once

#include "mica/kernel/highway/instruction_sets.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>
#include <sys/mman.h>
#include <time.h>

namespace bench {

/// Seconds of the runs of one thing.
struct Spread {
  double best;
  double median;
};

/// Seconds that this thread has computed: what other programs take is not in it, what they do to caches and memory is.
inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Runs f once to warm up, then for at least `seconds` and at least five times.
template <class F>
Spread time(F&& f, double seconds = 0.5) {
  f();
  std::vector<double> runs;
  const double begin = now();
  while (runs.size() < 5 || now() - begin < seconds) {
    const double start = now();
    f();
    runs.push_back(now() - start);
  }
  std::sort(runs.begin(), runs.end());
  return {runs.front(), runs[runs.size() / 2]};
}

/// Zeroed memory on huge pages where the kernel has them.
template <class T>
class Pages {
 public:
  explicit Pages(std::size_t n) : n_(n) {
    constexpr std::size_t huge = std::size_t{2} << 20;
    const std::size_t bytes = (n * sizeof(T) + huge - 1) / huge * huge;
    void* const p = std::aligned_alloc(huge, bytes);
    if (p == nullptr) std::abort();
    madvise(p, bytes, MADV_HUGEPAGE);
    std::fill_n(static_cast<unsigned char*>(p), bytes, static_cast<unsigned char>(0));
    data_.reset(static_cast<T*>(p));
  }

  [[nodiscard]] T* data() noexcept { return data_.get(); }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_.get()[i]; }
  [[nodiscard]] std::size_t size() const noexcept { return n_; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + n_; }

 private:
  struct Free {
    void operator()(T* p) const noexcept { std::free(p); }
  };
  std::size_t n_;
  std::unique_ptr<T, Free> data_;
};

/// Takes the instruction sets that are better than this one away from all kernels. False: no such set here.
inline bool limit_targets(std::string_view name) {
  for (const auto& set : mica::kernel::highway::instruction_sets()) {
    if (set.name != name) continue;
    mica::kernel::highway::limit_to(set);
    return true;
  }
  return false;
}

/// What a machine reaches, for the instruction set that was chosen.
struct Limits {
  const char* target;
  double read_gbs;
  double gops;  // of the arithmetic that `work` is made of
};

/// read(bytes, count): reads memory. work(): computes for a while and answers how many operations that were.
template <class Read, class Work>
Limits measure_limits(const char* target, Read&& read, Work&& work) {
  Pages<unsigned char> memory(std::size_t{256} << 20);
  const Spread reading = time([&] { read(memory.data(), memory.size()); });
  double ops = 0;
  const Spread working = time([&] { ops = work(); });
  return {target, static_cast<double>(memory.size()) / reading.best / 1e9, ops / working.best / 1e9};
}

}  // namespace bench
