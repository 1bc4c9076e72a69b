// SPDX-License-Identifier: Apache-2.0
//
// A model that gives way while it runs, and has everything back, with the same bits: on a machine whose files
// a test writes.

#include "mica/runtime/governed.hpp"

#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"
#include "mica/paging/streamed.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"
#include "runtime/made_up_machine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace mica::test::governed_test {
namespace {

using namespace std::chrono_literals;
using Model =
    Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>, WithPager<paging::Streamed<>>>;

struct Lines {
  std::vector<std::string> lines;
  LogSink sink() {
    return {
        [](void* to, LogLevel, std::string_view line) { static_cast<Lines*>(to)->lines.emplace_back(line); },
        this};
  }
};

}  // namespace

TEST_CASE("a governed model gives way step by step, writes the same, and has everything back") {
  const MadeUpMachine machine;
  const TinyModel tiny(blocks_of(format::Q8_0::id));
  const gguf::Document document = gguf::open(machine.folder.file("model.gguf", tiny.bytes()));
  exec::Inline executor;
  const auto make = [](const paging::Table& table, alloc::Huge allocator, LogSink log) {
    return paging::Streamed<>(table, allocator, log, 1u << 30);
  };
  Model model(document, executor, {.n_ctx = 600, .chunk = 256, .log = {}}, {.pager = make});
  const auto whole = model.weight_capacity();
  const auto ids = random_ids(400, 67);
  Session plain(model), session(model);
  REQUIRE(plain.feed(ids) == model::StepStatus::ok);
  const auto row = plain.logits();
  const std::vector<float> expected(row.begin(), row.end());

  machine.leave(500);
  Lines log;
  int freed = 3;
  Governed governed(model, {.session = &session,
                            .free_memory = [&] { return freed-- > 0; },
                            .root = machine.folder.path(""),
                            .log = log.sink()});
  auto now = Governed<Model>::Clock::time_point{};
  const auto run = [&](int left_mib, std::chrono::milliseconds after) {
    machine.leave(left_mib);
    now += after;
    return governed(now);
  };
  std::span<const text::TokenId> rest(ids);
  const auto feed_some = [&](std::size_t n) {
    REQUIRE(session.feed(rest.first(n)) == model::StepStatus::ok);
    rest = rest.subspan(n);
  };
  CHECK_FALSE(run(500, 1s));
  feed_some(100);
  CHECK(run(15, 1s));
  CHECK(governed.yield() == Yield::caches);
  CHECK(freed == -1);
  feed_some(50);
  CHECK(run(15, 1s));
  CHECK(model.chunk() == 32);
  feed_some(50);
  CHECK(run(15, 1s));  // no session waits: weights follow at once
  CHECK(governed.yield() == Yield::weights);
  CHECK_FALSE(governed.rest());  // no file
  CHECK(model.streamed_bytes() > 0);
  CHECK(model.weight_capacity().resident <= whole.resident / 2);
  feed_some(100);
  CHECK_FALSE(run(15, 1s));  // nothing is left to give
  for (int i = 0; i < 7; ++i) run(900, 11s);
  CHECK(governed.yield() == Yield::nothing);
  CHECK(model.weight_capacity().resident == whole.resident);
  CHECK(model.streamed_bytes() == 0);
  CHECK(model.chunk() == 256);
  feed_some(100);
  CHECK(same_bits(session.logits(), expected));
  REQUIRE(log.lines.size() == 5);
  CHECK(log.lines[1] == "governor: 15.0 MiB of 1000.0 MiB left of the machine: steps of 256 -> 32 tokens");
  CHECK(log.lines[2].starts_with("governor: 15.0 MiB of 1000.0 MiB left of the machine: weights in memory "));
  CHECK(log.lines[4] == "governor: 900.0 MiB of 1000.0 MiB left of the machine: steps of 32 -> 256 tokens");
}

TEST_CASE("a session grows no further than memory lasts, and has its context again when others leave") {
  const MadeUpMachine machine;
  const TinyModel tiny(blocks_of(format::Q8_0::id));
  const gguf::Document document = gguf::open(machine.folder.file("model.gguf", tiny.bytes()));
  exec::Inline executor;
  Model model(document, executor, {.n_ctx = 600, .chunk = 64, .log = {}});
  Session plain(model), session(model);
  const auto ids = random_ids(300, 67);
  REQUIRE(plain.feed(ids) == model::StepStatus::ok);
  const auto row = plain.logits();
  const std::vector<float> expected(row.begin(), row.end());

  MemoryWatch watch({.root = machine.folder.path(""), .thread = false});
  watch.attach(model);
  Lines log;
  Governed governed(model, {.session = &session, .watch = &watch, .log = log.sink()});
  auto now = MemoryWatch::Clock::time_point{};
  const auto look = [&](int left_mib) {
    machine.leave(left_mib);
    watch.look(now += 250ms);
    return governed(now);
  };
  REQUIRE(session.feed(std::span(ids).first(100)) == model::StepStatus::ok);
  for (int left = 30; left >= 20; --left) {  // slowly: there is time for the ends of steps
    static_cast<void>(look(left));
    CHECK_FALSE(session.limited());
  }
  for (int left = 19; left >= 10; --left) static_cast<void>(look(left));
  CHECK_FALSE(governed.halted());
  CHECK(governed.yield() >= Yield::cold);
  CHECK(session.limited());
  CHECK(session.remaining() == 0);  // half of 2 % stays for others
  CHECK(session.feed(std::span(ids).subspan(100, 1)) == model::StepStatus::context_full);
  CHECK(session.tokens().size() == 100);
  CHECK(log.lines.back().find("the context ends at ") != std::string::npos);
  static_cast<void>(look(12));
  const std::size_t tiles = (std::uint64_t{2} << 20) / model.kv_bytes_per_tile();
  CHECK(session.remaining() == std::min<std::size_t>(500, tiles * 16));
  static_cast<void>(look(900));
  CHECK_FALSE(session.limited());
  CHECK(log.lines.back().ends_with("the context has again 600 tokens"));
  CHECK(session.remaining() == 500);
  CHECK(session.feed(std::span(ids).subspan(100)) == model::StepStatus::ok);
  CHECK(same_bits(session.logits(), expected));
  watch.detach(model);
}

TEST_CASE("what a session will take within the next tokens is kept free, as far as its context goes") {
  const MadeUpMachine machine;
  const TinyModel tiny(blocks_of(format::Q8_0::id));
  const gguf::Document document = gguf::open(machine.folder.file("model.gguf", tiny.bytes()));
  exec::Inline executor;
  Model model(document, executor, {.n_ctx = 64 * 16, .chunk = 64, .log = {}});
  Session session(model);
  REQUIRE(session.feed(random_ids(64, 67)) == model::StepStatus::ok);
  GovernorOptions options;
  options.growth_tokens = 32 * 16;
  std::size_t asked = 0;
  std::uint64_t told = 0;
  Governed governed(model, {.governor = options,
                            .session = &session,
                            .growth =
                                [&](std::size_t tokens) {
                                  asked = tokens;
                                  return std::uint64_t{10} << 20;
                                },
                            .limit_growth = [&](std::uint64_t bytes) { told = bytes; },
                            .root = machine.folder.path("")});
  auto now = Governed<Model>::Clock::time_point{};
  machine.leave(31);
  static_cast<void>(governed(now += 1s));
  CHECK(governed.yield() == Yield::nothing);  // 20 and 10 MiB, and a few KiB of the session
  CHECK(asked == 32 * 16);
  CHECK(told == budget::Pressure::unlimited);
  machine.leave(30);
  static_cast<void>(governed(now += 1s));
  CHECK(governed.yield() > Yield::nothing);
}

}  // namespace mica::test::governed_test
