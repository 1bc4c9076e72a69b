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

#include <chrono>
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

}  // namespace mica::test::governed_test
