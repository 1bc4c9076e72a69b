// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithExecutor<...> needs a mica::Executor (exec/concept.hpp)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

struct Mine {
  std::size_t workers() const noexcept { return 1; }
#ifdef MICA_FAIL
  template <class F>
  void run(std::size_t tasks, F&& f) {
    for (std::size_t task = 0; task < tasks; ++task) f(task, std::size_t{0});
  }
#else
  template <class F>
  void run(std::size_t tasks, F&& f) noexcept {
    for (std::size_t task = 0; task < tasks; ++task) f(task, std::size_t{0});
  }
#endif
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithExecutor<Mine>>) > 0);
