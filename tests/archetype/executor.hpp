// SPDX-License-Identifier: Apache-2.0
//
// The minimal Executor: one thread, tasks in the wrong order, two workers in turn. Neither copied nor moved.

#pragma once

#include "mica/exec/concept.hpp"
#include "mica/exec/detail/denormals.hpp"

#include <cstddef>

namespace mica::archetype {

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Required by Executor
  std::size_t workers() const noexcept { return 2; }

  template <class F>
  void run(std::size_t tasks, F&& f) noexcept {
    const mica::exec::FlushDenormals flush;
    for (std::size_t task = tasks; task-- > 0;) f(task, task % 2);
  }
};
static_assert(mica::Executor<Executor>);

}  // namespace mica::archetype
