// SPDX-License-Identifier: Apache-2.0
//
// A server whose memory others take: on a machine whose files a test writes, which the watch reads when the
// test says so.

#include "io/temporary_folder.hpp"
#include "mica_tools/http/stream.hpp"
#include "mica_tools/serve/scheduler.hpp"
#include "runtime/made_up_machine.hpp"
#include "serve/fairy_server.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mica::test::pressure_test {
namespace {

using namespace serve;
using namespace std::chrono_literals;

const std::string fairy = MICA_SOURCE "/examples/models/fairy.gguf";
constexpr std::uint64_t plenty = std::uint64_t{1} << 30;

struct Pressed {
  TemporaryFolder folder;
  MadeUpMachine machine;
  std::shared_ptr<MemoryWatch> watch =
      std::make_shared<MemoryWatch>(MemoryWatchOptions{.root = machine.folder.path(""), .thread = false});
  MemoryWatch::Clock::time_point now = MemoryWatch::Clock::now();
  std::mutex mutex;
  std::vector<std::string> lines;

  [[nodiscard]] SchedulerOptions options() {
    SchedulerOptions options;
    options.watch = watch;
    options.log = {[](void* to, LogLevel, std::string_view line) {
                     auto* const self = static_cast<Pressed*>(to);
                     const std::lock_guard hold(self->mutex);
                     self->lines.emplace_back(line);
                   },
                   this};
    return options;
  }
  /// The same for a scheduler with long steps.
  [[nodiscard]] SchedulerOptions slow_options() {
    SchedulerOptions with = options();
    with.resident_bytes = nothing_slowly;
    return with;
  }
  /// The same as options(), with a folder for prefixes.
  [[nodiscard]] SchedulerOptions options_with_folder() {
    SchedulerOptions with = options();
    with.state = folder.path("state");
    return with;
  }
  /// A reading of so many MiB.
  void look(int left_mib) {
    machine.leave(left_mib);
    watch->look(now += 100ms);
  }
  /// From one number to another, one MiB after the other: steps may end meanwhile.
  void sink(int from, int to) {
    for (int left = from; left >= to; --left) look(left);
  }
  /// Others have left, long ago.
  void calm() {
    now += 300s;
    look(900);
  }
  /// Readings until f() is true.
  template <class F>
  void look_until(int left_mib, F&& f) {
    wait_until([&] {
      const bool is = f();
      if (!is) look(left_mib);
      return is;
    });
  }
  [[nodiscard]] bool said(std::string_view words) {
    const std::lock_guard hold(mutex);
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(words) != std::string::npos; });
  }
};

Job job_of(const std::shared_ptr<const ServedModel>& model, std::string_view text, std::size_t max_tokens) {
  Job job;
  job.prompt.tokens = model->encode(text, true, false);
  job.model = model;
  job.max_tokens = max_tokens;
  job.sampler.seed = 3;
  return job;
}

Collected answer_of(Scheduler& scheduler, std::string_view model, std::string_view text,
                    std::size_t max_tokens) {
  return collect(*scheduler.submit(job_of(scheduler.model(model), text, max_tokens)));
}

std::optional<Refusal> refusal_to(auto&& f) {
  try {
    f();
  } catch (const Refusal& refusal) {
    return refusal;
  }
  return std::nullopt;
}

constexpr const char* once = "Once upon a time there was a little girl who lived with her mother in a small";

/// More answers than run at a time, of different lengths, so that some are amid their texts at any moment. Some run
/// already.
std::vector<std::shared_ptr<Answer>> many(Scheduler& scheduler) {
  std::vector<std::shared_ptr<Answer>> answers;
  for (std::size_t i = 0; i < 40; ++i)
    answers.push_back(scheduler.submit(job_of(scheduler.model("0"), once, 40 + 3 * i)));
  wait_until([&] {
    const auto states = scheduler.snapshot().answers;
    return !states.empty() && states[0].running && states[0].answer_tokens > 0;
  });
  return answers;
}

}  // namespace

TEST_CASE("a sequence may take the tokens whose bytes are there, up to the end of a tile") {
  const SequenceBytes bytes({5, 10, 20, 20, 30});  // of 0, 16, 32, 48 and 64 tokens
  CHECK(bytes.tokens_in(0, 4) == 0);
  CHECK(bytes.tokens_in(0, 5) == 16);
  CHECK(bytes.tokens_in(0, 14) == 16);
  CHECK(bytes.tokens_in(0, 15) == 48);
  CHECK(bytes.tokens_in(1, 0) == 15);   // its tile is there
  CHECK(bytes.tokens_in(20, 0) == 28);  // a tile that takes nothing
  CHECK(bytes.tokens_in(48, 9) == 0);
  CHECK(bytes.tokens_in(48, 10) == 16);
  CHECK(bytes.tokens_in(20, std::numeric_limits<std::uint64_t>::max()) == 44);
  CHECK(bytes.tokens_in(64, 100) == 0);
}

TEST_CASE("prefixes leave memory first, and later answers are the same") {
  Pressed pressed;
  Running server({fairy}, plenty, pressed.options());
  const Collected before = answer_of(server.scheduler, "0", once, 20);
  wait_until([&] { return server.scheduler.snapshot().prefixes > 0; });
  pressed.look(500);
  pressed.look_until(19, [&] { return server.scheduler.snapshot().prefixes == 0; });
  CHECK(pressed.said("governor: 19.0 MiB of 1000.0 MiB left of the machine: "));
  CHECK(pressed.said(" of prefixes and idle models left memory"));
  CHECK(server.scheduler.snapshot().metrics.sheds == 0);
  pressed.calm();
  CHECK(answer_of(server.scheduler, "0", once, 20).text == before.text);
}

TEST_CASE("prefixes that leave memory are saved, if there is a folder") {
  Pressed pressed;
  const SchedulerOptions options = pressed.options_with_folder();
  Running server({fairy}, plenty, options);
  const std::string text =
      std::string(once) +
      " house near the wood. One day the mother said that there was "
      "nothing left to eat, and that she should go and look for berries in the wood "
      "before the night came, and she took her basket and went into the dark wood, where "
      "the birds were singing and the old wolf slept under a tree, and she sang a song";
  const Collected before = answer_of(server.scheduler, "0", text, 20);
  pressed.sink(26, 19);
  pressed.look_until(19, [&] { return server.scheduler.snapshot().prefixes == 0; });
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(options.state))
    files += entry.path().extension() == ".session" ? 1 : 0;
  CHECK(files > 0);
  pressed.calm();
  const Collected after = answer_of(server.scheduler, "0", text, 20);
  CHECK(after.text == before.text);
  CHECK(after.ended.cached_tokens > 64);
}

TEST_CASE("a model that nobody uses is unloaded before the one that answers gives way") {
  Pressed pressed;
  Running server({fairy, fairy}, plenty, pressed.options());
  static_cast<void>(answer_of(server.scheduler, "1", "The fox", 2));
  const Collected before = answer_of(server.scheduler, "0", once, 30);
  std::this_thread::sleep_for(1100ms);  // a second without answers
  const auto answer = server.scheduler.submit(job_of(server.scheduler.model("0"), once, 200));
  pressed.look(26);
  pressed.look_until(19, [&] { return server.scheduler.snapshot().metrics.unloads == 1; });
  CHECK_FALSE(server.scheduler.models()[1].loaded);
  CHECK(server.scheduler.models()[0].loaded);
  pressed.calm();
  CHECK(collect(*answer).text.starts_with(before.text));
  CHECK(answer_of(server.scheduler, "0", once, 30).text == before.text);
}

TEST_CASE("where nothing is left, answers fail, requests are refused, and the server lives on") {
  Pressed pressed;
  Running server({fairy}, plenty, pressed.slow_options());
  const std::string whole = answer_of(server.scheduler, "0", once, 0).text;
  const auto model = server.scheduler.model("0");
  const auto answers = many(server.scheduler);
  pressed.look(500);
  pressed.look_until(1, [&] { return server.scheduler.snapshot().metrics.sheds == 1; });
  std::size_t failed = 0;
  for (const auto& answer : answers) {
    const Collected each = collect(*answer);
    CHECK(whole.starts_with(each.text));
    if (each.failure.empty()) continue;
    ++failed;
    CHECK(each.failed.cause == Cause::unavailable);
    CHECK(each.failed.retry_after == 1);
    CHECK(each.failure.find("other processes took the memory") != std::string::npos);
  }
  CHECK(failed > 0);
  const auto refused =
      refusal_to([&] { static_cast<void>(server.scheduler.submit(job_of(model, once, 1))); });
  REQUIRE(refused);
  CHECK(refused->cause() == Cause::unavailable);
  CHECK(refused->retry_after == 1);
  CHECK(refusal_to([&] { static_cast<void>(server.scheduler.model("0")); }));
  CHECK(server.scheduler.models()[0].loaded);  // this thread has it
  CHECK_FALSE(server.scheduler.is_lost());
}

TEST_CASE("after memory is back the server loads its model again, and answers as before") {
  Pressed pressed;
  const SchedulerOptions options = pressed.options_with_folder();
  Running server({fairy}, plenty, options);
  const Collected before = answer_of(server.scheduler, "0", once, 30);
  pressed.look(500);
  pressed.look_until(1, [&] { return pressed.watch->halted(); });
  pressed.look_until(30, [&] { return server.scheduler.snapshot().metrics.unloads == 1; });
  CHECK_FALSE(server.scheduler.models()[0].loaded);
  CHECK(server.ledger->used() == plan::any_process_bytes);
  CHECK(refusal_to([&] { static_cast<void>(server.scheduler.model("0")); }));
  pressed.calm();
  pressed.look_until(900, [&] { return pressed.said("requests are answered again"); });
  CHECK_FALSE(pressed.watch->halted());
  wait_until([&] { return !refusal_to([&] { static_cast<void>(server.scheduler.model("0")); }); });
  CHECK(answer_of(server.scheduler, "0", once, 30).text == before.text);
  CHECK(server.scheduler.snapshot().metrics.sheds == 1);
}

TEST_CASE("where the limit is near although no model is loaded, the server ends") {
  Pressed pressed;
  Running server({fairy}, plenty, pressed.options());
  static_cast<void>(server.scheduler.model("0"));
  pressed.look(500);
  pressed.look_until(1, [&] { return server.scheduler.is_lost(); });
  CHECK(server.scheduler.models()[0].loaded == false);
  CHECK(pressed.said("nothing is left to release"));
}

TEST_CASE("answers end at their length where others slowly take all but the reserve") {
  Pressed pressed;
  Running server({fairy}, plenty, pressed.slow_options());
  const std::string whole = answer_of(server.scheduler, "0", once, 0).text;
  pressed.look(30);
  const auto answers = many(server.scheduler);
  pressed.sink(29, 10);
  pressed.look_until(10, [&] { return pressed.said("since others took the memory"); });
  const auto refused = refusal_to([&] { static_cast<void>(server.scheduler.model("0")); });
  CHECK((!refused || refused->retry_after == 1));
  pressed.calm();
  std::size_t cut = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Collected each = collect(*answers[i]);
    CHECK(each.failure.empty());
    CHECK(whole.starts_with(each.text));
    cut += each.ended.reason == StopReason::context_full && each.ended.answer_tokens < 40 + 3 * i ? 1 : 0;
  }
  CHECK(cut > 0);
  CHECK(cut < answers.size());  // those that waited are whole
  CHECK_FALSE(pressed.watch->halted());
  CHECK(server.scheduler.snapshot().metrics.sheds == 0);
}

}  // namespace mica::test::pressure_test
