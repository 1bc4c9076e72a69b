// SPDX-License-Identifier: Apache-2.0
//
// An executor that rests: between two runs the caller and the workers sleep for the time that a Pacer
// computes. Pending reads continue. No bit of a result changes.
#pragma once

#include "mica/exec/concept.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/pacer.hpp"

#include <cstddef>
#include <thread>
#include <utility>

namespace mica::exec {

/// Runs on E. Without a pacer it costs a comparison for each run; with one, two readings of a clock.
template <Executor E>
class Paced {
 public:
  /// Both outlive it. pacer: null for none.
  explicit Paced(E& executor, Pacer* pacer = nullptr) noexcept : executor_(&executor), pacer_(pacer) {}

  // Required by Executor
  [[nodiscard]] std::size_t workers() const noexcept { return executor_->workers(); }

  template <class F>
  void run(std::size_t tasks, F&& f) noexcept {
    if (pacer_ == nullptr) return executor_->run(tasks, std::forward<F>(f));
    const auto begin = Pacer::Clock::now();
    executor_->run(tasks, std::forward<F>(f));
    const auto rest = pacer_->rest(begin, Pacer::Clock::now());
    if (rest > Pacer::Clock::duration::zero()) std::this_thread::sleep_for(rest);
  }

 private:
  E* executor_;
  Pacer* pacer_;
};
static_assert(Executor<Paced<Inline>>);

}  // namespace mica::exec
