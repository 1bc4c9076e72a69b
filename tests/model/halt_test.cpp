// SPDX-License-Identifier: Apache-2.0
//
// A halted model ends its steps, and no step of it or of another model on its executor has wrong bits.

#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/observed.hpp"
#include "mica/model/transformer.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

namespace mica::test::halt_test {
namespace {

/// Calls a function before one of its tasks.
class Calling {
 public:
  // Required by Executor
  [[nodiscard]] std::size_t workers() const noexcept { return 1; }
  template <class F>
  void run(std::size_t tasks, F&& f) noexcept {
    for (std::size_t task = 0; task < tasks; ++task) {
      if (tasks_++ == at) call();
      f(task, std::size_t{0});
    }
  }

  std::size_t at = static_cast<std::size_t>(-1);
  std::function<void()> call = {};

 private:
  std::size_t tasks_ = 0;
};

using Executor = exec::Observed<Calling>;
using Model = Transformer<arch::Llama, WithExecutor<Executor>>;

std::vector<float> logits_after(Model& model, std::span<const TokenId> ids) {
  auto cache = model.make_cache();
  REQUIRE(model.step(cache, ids) == model::StepStatus::ok);
  const std::size_t last[] = {ids.size() - 1};
  const auto logits = model.logits(last);
  return {logits[0].begin(), logits[0].end()};
}

}  // namespace

TEST_CASE("another model on the executor of a halted one computes what it would have computed") {
  const TinyModel tiny(blocks_of(format::Q4_0::id));
  Calling inner;
  Executor executor(inner);
  const ModelOptions options{.n_ctx = 64, .chunk = 8, .logits_rows = 8};
  Model halted(tiny.document(), executor, options), other(tiny.document(), executor, options);
  const auto ids = random_ids(8, 67);
  const std::vector<float> right = logits_after(other, ids);
  halted.halt(true);
  CHECK(logits_after(other, ids) == right);
  auto cache = halted.make_cache();
  CHECK(halted.step(cache, ids) == model::StepStatus::no_memory);
  CHECK(cache.tokens == 0);
  CHECK(logits_after(other, ids) == right);
  halted.halt(false);
  CHECK(logits_after(halted, ids) == right);
}

TEST_CASE("a halt in the middle of a step ends it, also if it is taken back before the step has ended") {
  const TinyModel tiny(blocks_of(format::Q4_0::id));
  Calling inner;
  Executor executor(inner);
  Model model(tiny.document(), executor, {.n_ctx = 64, .chunk = 8, .logits_rows = 8});
  const auto ids = random_ids(8, 67);
  const std::vector<float> right = logits_after(model, ids);
  for (const bool stays : {true, false}) {
    CAPTURE(stays);
    Calling again;
    Executor fresh(again);
    Model other(tiny.document(), fresh, {.n_ctx = 64, .chunk = 8, .logits_rows = 8});
    again.at = 5;
    again.call = [&] {
      other.halt(true);
      if (!stays) other.halt(false);
    };
    auto cache = other.make_cache();
    CHECK(other.step(cache, ids) == model::StepStatus::no_memory);
    CHECK(cache.tokens == 0);
    other.halt(false);
    CHECK(logits_after(other, ids) == right);
  }
}

}  // namespace mica::test::halt_test
