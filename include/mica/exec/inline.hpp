// SPDX-License-Identifier: Apache-2.0
//
// No threads at all.
#pragma once

#include "mica/exec/concept.hpp"
#include "mica/exec/detail/denormals.hpp"

#include <cstddef>

namespace mica::exec {

/// Runs every task on the caller, in order. Stateless: for any number of threads.
class Inline {
 public:
  // Required by Executor
  [[nodiscard]] std::size_t workers() const noexcept { return 1; }

  template <class F>
  void run(std::size_t tasks, F&& f) noexcept {
    const FlushDenormals flush;
    for (std::size_t task = 0; task < tasks; ++task) f(task, std::size_t{0});
  }
};
static_assert(Executor<Inline>);

}  // namespace mica::exec
