// SPDX-License-Identifier: Apache-2.0
//
// A watch that frees weights while a step runs: on a machine whose files a test writes, and with a thread.

#include "mica/runtime/memory_watch.hpp"

#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"
#include "mica/paging/streamed.hpp"
#include "mica/runtime/governed.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"
#include "runtime/made_up_machine.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace mica::test::memory_watch_test {
namespace {

using namespace std::chrono_literals;
using Model =
    Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>, WithPager<paging::Streamed<>>>;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

struct Weights {
  TemporaryFolder folder;
  TinyModel tiny{blocks_of(format::Q8_0::id)};
  gguf::Document document = gguf::open(folder.file("model.gguf", tiny.bytes()));
  exec::Inline executor;
  Model model{document,
              executor,
              {.n_ctx = 600, .chunk = 64, .log = {}},
              {.pager = [](const paging::Table& table, alloc::Huge allocator, LogSink log) {
                return paging::Streamed<>(table, allocator, log, 1u << 30);
              }}};
};

}  // namespace

TEST_CASE("a watch: nothing, weights at once where others come fast, then the end of steps") {
  const MadeUpMachine machine;
  Weights weights;
  Model& model = weights.model;
  Session session(model);
  const auto ids = random_ids(200, 67);
  MemoryWatch watch({.root = machine.folder.path(""), .thread = false});
  watch.attach(model);
  auto now = MemoryWatch::Clock::time_point{};
  const auto look = [&](int left_mib) {
    machine.leave(left_mib);
    return watch.look(now += 50ms);
  };
  CHECK(look(15) == 8ms);  // as little as at the beginning: nobody took it
  CHECK(watch.take(model).yielded == 0);
  CHECK(watch.lacking() == 0);
  CHECK(look(800) == 100ms);
  const std::uint64_t whole = model.weight_capacity().resident;
  CHECK(look(150) == 8ms);  // 650 MiB within 50 ms
  CHECK(watch.state().growth == 650 * mib);
  CHECK(watch.lacking() > 0);
  CHECK(model.weight_capacity().resident < whole);
  CHECK_FALSE(watch.halted());
  CHECK(session.feed(std::span(ids).first(50)) == model::StepStatus::ok);
  CHECK(look(900) == 8ms);  // as much may be taken once more
  CHECK(watch.lacking() == 0);
  CHECK(session.feed(std::span(ids).subspan(50, 50)) == model::StepStatus::ok);
  CHECK(look(3) == 8ms);
  CHECK(watch.halted());
  CHECK(session.feed(std::span(ids).subspan(100, 50)) == model::StepStatus::no_memory);
  CHECK(session.tokens().size() == 100);
  watch.resume();
  CHECK_FALSE(watch.halted());
  CHECK(session.feed(std::span(ids).subspan(100, 100)) == model::StepStatus::ok);

  Weights fresh;
  Session plain(fresh.model);
  CHECK(plain.feed(ids) == model::StepStatus::ok);
  CHECK(same_bits(plain.logits(), session.logits()));
}

TEST_CASE("a program that saves a file before it ends is halted earlier, by what others take meanwhile") {
  const auto halted_at = [](std::chrono::milliseconds ending, std::uint64_t bytes) {
    const MadeUpMachine machine;
    Weights weights;
    MemoryWatch watch({.root = machine.folder.path(""), .thread = false});
    watch.attach(weights.model);
    watch.set_ending(ending, bytes);
    auto now = MemoryWatch::Clock::time_point{};
    int left = 800;
    for (; left > 0 && !watch.halted(); left -= 10) {  // 20 MiB within 100 ms
      machine.leave(left);
      watch.look(now += 50ms);
    }
    CHECK(watch.halted());
    return left;
  };
  const int plain = halted_at(0ms, 0), slow = halted_at(1000ms, 0), large = halted_at(1000ms, 100 * mib);
  CHECK(plain < 80);
  CHECK(slow - plain >= 180);
  CHECK(slow - plain <= 270);
  CHECK(large - slow >= 80);
  CHECK(large - slow <= 110);
}

TEST_CASE("a governed model with a watch: what comes before weights follows between two steps") {
  const MadeUpMachine machine;
  Weights weights;
  Model& model = weights.model;
  Session session(model);
  MemoryWatch watch({.root = machine.folder.path(""), .thread = false});
  watch.attach(model);
  std::vector<std::string> lines;
  Governed governed(model, {.session = &session,
                            .min_chunk = 8,
                            .watch = &watch,
                            .log = {[](void* to, LogLevel, std::string_view line) {
                                      static_cast<std::vector<std::string>*>(to)->emplace_back(line);
                                    },
                                    &lines}});
  auto now = MemoryWatch::Clock::time_point{};
  const auto look = [&](int left_mib) {
    machine.leave(left_mib);
    watch.look(now += 50ms);
  };
  look(800);
  CHECK_FALSE(governed(now));
  look(100);
  CHECK(governed(now));
  CHECK_FALSE(governed(now));  // no reading since
  CHECK(governed.yield() == Yield::weights);
  CHECK(model.chunk() == 8);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("governor: 100.0 MiB of 1000.0 MiB left of the machine: "));
  CHECK(lines[0].ends_with(" of weights left memory at once, steps of 64 -> 8 tokens"));
  CHECK(model.streamed_bytes() > 0);
  for (int i = 0; i < 1000 && governed.yield() != Yield::nothing; ++i) {
    now += 1s;
    look(900);
    governed(now);
  }
  CHECK(governed.yield() == Yield::nothing);
  CHECK(model.streamed_bytes() == 0);
  CHECK(model.chunk() == 64);
}

TEST_CASE("several models yield, each is told what it yielded, and all are halted") {
  const MadeUpMachine machine;
  Weights a, b;
  MemoryWatch watch({.root = machine.folder.path(""), .thread = false});
  watch.attach(a.model);
  watch.attach(b.model);
  watch.touch(a.model);
  int calls = 0;
  watch.on_short([&] { ++calls; });
  auto now = MemoryWatch::Clock::time_point{};
  const auto look = [&](int left_mib) {
    machine.leave(left_mib);
    watch.look(now += 50ms);
  };
  look(500);
  CHECK(calls == 0);
  look(100);
  CHECK(calls == 1);
  CHECK(watch.state().others_came);
  const std::uint64_t of_b = watch.take(b.model).yielded;
  CHECK(of_b > 0);
  CHECK(watch.take(b.model).yielded == 0);
  CHECK(watch.state().yielded == 0);
  while (a.model.weight_capacity().resident > a.model.weight_capacity().min) look(3);
  look(3);
  CHECK(watch.take(a.model).yielded > 0);
  CHECK(watch.halted());
  CHECK(watch.state().hopeless);
  Session of_a(a.model);
  CHECK(of_a.feed(random_ids(10, 67)) == model::StepStatus::no_memory);
  watch.detach(a.model);
  watch.detach(b.model);
  CHECK(watch.take(a.model).yielded == 0);
  look(900);
  CHECK_FALSE(watch.state().hopeless);
  look(2);
  CHECK(watch.state().hopeless);  // also without a model
  Weights late;
  watch.attach(late.model);
  Session of_late(late.model);
  CHECK(of_late.feed(random_ids(10, 67)) == model::StepStatus::no_memory);
  watch.resume();
  CHECK(of_late.feed(random_ids(10, 67)) == model::StepStatus::ok);
  watch.on_short({});
  watch.detach(late.model);
}

TEST_CASE("a watch with a thread of its own reads by itself, and ends with the object") {
  const MadeUpMachine machine;
  Weights weights;
  {
    MemoryWatch watch({.root = machine.folder.path("")});
    watch.attach(weights.model);
    while (watch.state().readings == 0) std::this_thread::sleep_for(1ms);
    const std::uint64_t whole = weights.model.weight_capacity().resident;
    machine.leave(4);
    while (weights.model.weight_capacity().resident == whole) std::this_thread::sleep_for(1ms);
    watch.detach(weights.model);
  }
  MemoryWatch of_this_machine;
  while (of_this_machine.state().readings == 0 && !of_this_machine.state().pressure)
    std::this_thread::sleep_for(1ms);
}

}  // namespace mica::test::memory_watch_test
