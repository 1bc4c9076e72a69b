// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/serve/scheduler.hpp"

#include "io/temporary_folder.hpp"
#include "mica_tools/routes/llama.hpp"
#include "mica_tools/routes/ollama.hpp"
#include "serve/fairy_server.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace mica::test::scheduler_test {
namespace {

using namespace serve;

const std::string fairy = MICA_SOURCE "/examples/models/fairy.gguf";
constexpr std::uint64_t plenty = std::uint64_t{1} << 30;

Job job_of(const std::shared_ptr<const ServedModel>& model, std::string_view text, std::size_t max_tokens,
           std::uint64_t seed = 0, float temperature = 0.8f) {
  Job job;
  job.prompt.tokens = model->encode(text, true, false);
  job.model = model;
  job.max_tokens = max_tokens;
  job.sampler.seed = seed;
  job.sampler.temperature = temperature;
  return job;
}

/// The text of a job that has a model for itself.
std::string alone(const Job& job) {
  static Model model = [] {
    OpenOptions options{.n_ctx = 256, .threads = 1};
    return mica::open(fairy, options);
  }();
  auto session = model.session();
  sample::Standard<> sampler(job.sampler, model.config().n_vocab);
  GenerateOptions options{.max_tokens = job.max_tokens, .stop = job.stop};
  std::string text;
  static_cast<void>(
      generate(session, model.tokenizer(), sampler, job.prompt.tokens, options, [&](std::string_view piece) {
        text += piece;
        return true;
      }));
  return text;
}

/// A budget in which one of two models fits, and both together do not.
std::uint64_t for_one_of_two() {
  ModelCard card;
  card.path = fairy;
  const std::uint64_t one = FileLoader(256).bytes(card);
  return plan::any_process_bytes + one + one / 2;
}

void wait_until_one_runs(const Scheduler& scheduler) {
  wait_until([&] {
    const auto answers = scheduler.snapshot().answers;
    return !answers.empty() && answers[0].running;
  });
}

std::string cause_of(auto&& f) {
  try {
    f();
  } catch (const Refusal& refusal) {
    return std::to_string(static_cast<int>(refusal.cause())) + " " + refusal.message();
  }
  return "none";
}
bool is(const std::string& found, Cause cause, std::string_view words) {
  INFO(found);
  return found.starts_with(std::to_string(static_cast<int>(cause)) + " ") &&
         found.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("an answer of the server is the answer that the model gives alone") {
  Running server({fairy}, plenty);
  const auto model = server.scheduler.model("");
  CHECK(model->card().n_ctx == 256);
  Job job = job_of(model, "Once upon a time", 40, 7);
  const std::string expected = alone(job);
  const Collected answer = collect(*server.scheduler.submit(job));
  CHECK(answer.failure.empty());
  CHECK(answer.text == expected);
  CHECK(answer.ended.prompt_tokens == job.prompt.tokens.size());
  CHECK(answer.ended.cached_tokens == 0);
  CHECK(answer.ended.answer_tokens == 40);
  CHECK(answer.ended.reason == StopReason::length);
}

TEST_CASE("random schedules change no answer, and keep the budget") {
  constexpr std::size_t answers = 120;
  std::mt19937 random(5);
  const std::vector<std::string> beginnings = {
      "Once upon a time there was a little girl who lived with her mother in a small house near the wood, "
      "and",
      "Once upon a time there was a little girl who lived with her mother in a small house near the wood. "
      "One day",
      "The fox said to the raven", "Once upon",
      "In the dark wood stood a small house, and in the house lived"};
  // Memory for the model and some answers: the others wait, and prefixes are dropped.
  FileLoader loader(256);
  ModelCard card;
  card.path = fairy;
  const std::uint64_t budget = loader.bytes(card, 0) + plan::any_process_bytes + (std::uint64_t{2} << 20);
  Running server({fairy}, budget, {.parallel = 4, .max_waiting = answers});
  const auto model = server.scheduler.model("");
  struct Expected {
    std::shared_ptr<Answer> answer;
    std::string text;
    bool cancelled;
  };
  std::vector<Expected> all;
  for (std::size_t i = 0; i < answers; ++i) {
    Job job = job_of(model, beginnings[random() % beginnings.size()], 1 + random() % 30, random() % 3);
    if (random() % 4 == 0) job.stop = {"and"};
    if (random() % 5 == 0) job.sampler.repeat_penalty = 1.3f;
    if (random() % 3 == 0) job.prompt.marks = {2, job.prompt.tokens.size() - 1};
    std::string text = alone(job);
    all.push_back({server.scheduler.submit(std::move(job)), std::move(text), random() % 8 == 0});
    if (all.back().cancelled) all.back().answer->cancel();
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
  }
  std::size_t cached = 0;
  for (const Expected& expected : all) {
    const Collected answer = collect(*expected.answer);
    CHECK(answer.failure.empty());
    cached += answer.ended.cached_tokens;
    if (expected.cancelled) {
      CHECK(expected.text.starts_with(answer.text));
    } else {
      CHECK(answer.text == expected.text);
    }
  }
  CHECK(cached > 0);
  CHECK(server.ledger->peak() <= budget);
  server.finish();
  const Snapshot snapshot = server.scheduler.snapshot();
  CHECK(snapshot.metrics.requests == answers);
  CHECK(snapshot.metrics.finished + snapshot.metrics.cancelled == answers);
  CHECK(snapshot.metrics.failed == 0);
  CHECK(snapshot.reserved_bytes == 0);
}

TEST_CASE("a conversation that goes on computes its new tokens only") {
  Running server({fairy}, plenty);
  const auto model = server.scheduler.model("0");
  Conversation conversation{{{"system", "You tell stories about animals that live in the old forest."},
                             {"user", "Tell me a story about a fox."}}};
  Job first;
  first.model = model;
  first.prompt = model->prompt(conversation);
  CHECK(first.prompt.end.ends_with("assistant:"));
  first.max_tokens = 20;
  const std::size_t first_tokens = first.prompt.tokens.size();
  const Collected answer = collect(*server.scheduler.submit(std::move(first)));
  conversation.messages.push_back({"assistant", answer.text});
  conversation.messages.push_back({"user", "And then?"});
  Job second;
  second.model = model;
  second.prompt = model->prompt(conversation);
  second.max_tokens = 5;
  const Collected more = collect(*server.scheduler.submit(second));
  CHECK(more.ended.cached_tokens >= first_tokens / 16 * 16);
  CHECK(more.text == alone(second));
}

TEST_CASE("probabilities come with the text of their tokens") {
  Running server({fairy}, plenty);
  const auto model = server.scheduler.model("");
  Job job = job_of(model, "Once upon a time", 12, 1, 0.0f);
  job.scores = true;
  job.top_tokens = 3;
  const Collected answer = collect(*server.scheduler.submit(std::move(job)));
  REQUIRE(answer.tokens.size() == 12);
  std::string bytes;
  for (const ScoredPiece& piece : answer.tokens) {
    bytes += piece.bytes;
    REQUIRE(piece.top.size() == 3);
    CHECK(piece.top[0].id == piece.id);  // greedy
    CHECK(piece.top[0].log_probability == piece.log_probability);
    CHECK(piece.top[0].log_probability >= piece.top[1].log_probability);
  }
  CHECK(bytes == answer.text);
}

TEST_CASE("requests that never fit are refused with their numbers") {
  Running server({fairy}, plenty, {.parallel = 1, .max_waiting = 1, .resident_bytes = nothing_slowly});
  const auto model = server.scheduler.model("");
  CHECK(is(cause_of([&] { static_cast<void>(server.scheduler.model("nobody")); }), Cause::not_found,
           "'nobody'"));
  Job job = job_of(model, "Once", 10);
  job.prompt.tokens.assign(256, job.prompt.tokens[0]);
  CHECK(
      is(cause_of([&] { static_cast<void>(server.scheduler.submit(job)); }), Cause::too_long, "256 tokens"));
  Job wrong = job_of(model, "Once", 10);
  wrong.sampler.temperature = 20000;
  CHECK(is(cause_of([&] { static_cast<void>(server.scheduler.submit(wrong)); }), Cause::invalid,
           "temperature"));

  // One runs, one waits, the third one is too many.
  const auto running = server.scheduler.submit(job_of(model, "Once", 200));
  wait_until_one_runs(server.scheduler);
  const auto waiting = server.scheduler.submit(job_of(model, "Once", 1));
  const std::string busy =
      cause_of([&] { static_cast<void>(server.scheduler.submit(job_of(model, "Once", 1))); });
  CHECK(is(busy, Cause::busy, "1 answers"));
  running->cancel();
  CHECK(collect(*running).ended.reason == StopReason::cancelled);
  CHECK(collect(*waiting).failure.empty());
}

TEST_CASE("a model too large for the budget is refused before it is opened") {
  Running server({fairy}, plan::any_process_bytes + (std::uint64_t{1} << 20));
  CHECK(is(cause_of([&] { static_cast<void>(server.scheduler.model("")); }), Cause::too_large, "budget"));
  CHECK(server.scheduler.snapshot().metrics.loads == 0);
}

TEST_CASE("models are unloaded for each other, and come back with the same answers") {
  Running server({fairy, fairy}, for_one_of_two());
  const std::string expected = alone(job_of(server.scheduler.model("0"), "The old king", 20));
  for (const char* const name : {"0", "1", "0", "1"}) {
    const Collected answer =
        collect(*server.scheduler.submit(job_of(server.scheduler.model(name), "The old king", 20)));
    CHECK(answer.text == expected);
  }
  CHECK(server.scheduler.snapshot().metrics.loads == 4);
  CHECK(server.scheduler.unload("1"));
  wait_until([&] { return server.scheduler.snapshot().metrics.unloads == 4; });
  CHECK_FALSE(server.scheduler.unload("1"));
  CHECK_FALSE(server.scheduler.models()[1].loaded);
}

TEST_CASE("requests that wait do not keep a model in memory, for which others wait") {
  Running server({fairy, fairy}, for_one_of_two(), {.parallel = 1});
  Router router;
  add_llama(router, server.scheduler, {});
  add_ollama(router, server.scheduler, {});
  std::atomic<int> good{0};
  const auto client = [&](int number) {
    for (int i = 0; i < 4; ++i) {
      const Json name = std::to_string((number + i) % 2);
      const Json options = {{"num_predict", 5}};
      HttpRequest request{"POST", number % 2 == 0 ? "/completion" : "/api/generate"};
      request.body =
          number % 2 == 0
              ? Json{{"model", name}, {"prompt", "The old king"}, {"n_predict", 5}}.dump()
              : Json{{"model", name}, {"prompt", "The"}, {"stream", false}, {"options", options}}.dump();
      const HttpReply reply = router.handle(request);
      REQUIRE(reply.later);
      const auto made = reply.later([] { return true; });
      if (made && made->status == 200) ++good;
    }
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) clients.emplace_back(client, i);
  for (std::thread& each : clients) each.join();
  CHECK(good == 32);
}

TEST_CASE("a client that waits for a model and disconnects is not waited for") {
  Running server({fairy, fairy}, for_one_of_two());
  const auto long_one = server.scheduler.submit(job_of(server.scheduler.model("0"), "The old king", 200));
  CHECK(is(cause_of([&] { static_cast<void>(server.scheduler.model("1", [] { return false; })); }),
           Cause::unavailable, "disconnected"));
  CHECK(collect(*long_one).failure.empty());
  CHECK(collect(*server.scheduler.submit(job_of(server.scheduler.model("0"), "The old king", 5)))
            .failure.empty());
}

TEST_CASE("an answer whose sampler takes more than is left ends, and the next ones run") {
  FileLoader loader(256);
  ModelCard card;
  card.path = fairy;
  std::uint64_t sequence = 0;
  {
    Running server({fairy}, plenty, {.resident_bytes = nothing_slowly});
    Job job = job_of(server.scheduler.model(""), "The old king", 0);
    const auto answer = server.scheduler.submit(std::move(job));
    wait_until_one_runs(server.scheduler);
    sequence = server.scheduler.snapshot().answers[0].bytes;
  }
  const std::uint64_t sampler = 2048 * sizeof(sample::Candidate);
  Running server({fairy}, plan::any_process_bytes + loader.bytes(card) + sequence + sampler + 64);
  Job job = job_of(server.scheduler.model(""), "The old king", 0);
  job.sampler.repeat_penalty = 1.1f;
  job.sampler.repeat_last_n = 100'000;
  const Collected answer = collect(*server.scheduler.submit(job));
  CAPTURE(answer.failure);
  CHECK((answer.failure.empty() || answer.failure.find("smaller max_tokens") != std::string::npos));
  CHECK(collect(*server.scheduler.submit(job_of(server.scheduler.model(""), "The", 5))).failure.empty());
}

TEST_CASE("more answers than a step has tokens wait for each other") {
  Running server({fairy}, plenty, {.parallel = 8}, 256, 4);
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 8; ++i)
    answers.push_back(server.scheduler.submit(job_of(server.scheduler.model(""), "The old king", 12)));
  for (const auto& answer : answers)
    CHECK(collect(*answer).text == alone(job_of(server.scheduler.model(""), "The old king", 12)));
}

TEST_CASE("a model that is asked for while it is unloaded is loaded all the same") {
  Running server({fairy}, plenty);
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!ends) {
        static_cast<void>(server.scheduler.unload(""));
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 50; ++i) CHECK(server.scheduler.model("") != nullptr);
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a model whose time is over leaves memory") {
  Running server({fairy}, plenty);
  static_cast<void>(server.scheduler.model(""));
  server.scheduler.keep_alive("", std::chrono::seconds(0));
  wait_until([&] { return server.scheduler.snapshot().metrics.unloads == 1; });
  CHECK_FALSE(server.scheduler.models()[0].loaded);
  CHECK(server.ledger->used() == plan::any_process_bytes);
}

TEST_CASE("memory that the ledger does not have is booked as it was measured, and gives way to a model") {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  std::atomic<std::uint64_t> all{0};
  const std::uint64_t more = 40 * mib;
  Running server({fairy}, plenty, {.process_bytes = 20 * mib, .resident_bytes = [&] { return all.load(); }});
  CHECK(server.ledger->used(budget::Account::process) == 20 * mib);
  all = 20 * mib - plan::any_process_bytes / 2 + more;
  wait_until([&] { return server.ledger->used(budget::Account::process) == 20 * mib + more; });
  all = 0;
  wait_until([&] { return server.ledger->used(budget::Account::process) == 20 * mib; });
  all = plan::any_process_bytes + plenty;  // not even the ledger has as many
  static_cast<void>(server.scheduler.model(""));
  CHECK(server.scheduler.models()[0].loaded);
}

TEST_CASE("prefixes survive a restart, and damaged files cost time alone") {
  const TemporaryFolder folder;
  const std::string text =
      "Once upon a time there was a little girl who lived with her mother in a small house near the wood. "
      "One day "
      "the mother said that there was nothing left to eat, and that she should go and look for berries in "
      "the wood "
      "before the night came, and she took her basket and went into the dark wood, where the birds were "
      "singing and the old wolf slept under a tree, and she sang a song";
  const SchedulerOptions options{.state = folder.path("state")};
  std::string expected;
  std::size_t prompt_tokens = 0;
  {
    Running server({fairy}, plenty, options);
    const Job job = job_of(server.scheduler.model(""), text, 20, 3);
    prompt_tokens = job.prompt.tokens.size();
    REQUIRE(prompt_tokens > 80);
    expected = collect(*server.scheduler.submit(job)).text;
  }
  for (const bool damaged : {false, true}) {
    CAPTURE(damaged);
    if (damaged) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(options.state)) {
        if (!entry.is_regular_file()) continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-5000, std::ios::end);
        file.put('\x55').put('\x55');
      }
    }
    Running server({fairy}, plenty, options);
    const Collected answer =
        collect(*server.scheduler.submit(job_of(server.scheduler.model(""), text, 20, 3)));
    CHECK(answer.failure.empty());
    CHECK(answer.text == expected);
    if (!damaged) CHECK(answer.ended.cached_tokens >= (prompt_tokens - 1) / 16 * 16);
  }
}

TEST_CASE("a folder that has no room for all prefixes gets each of them once") {
  const TemporaryFolder folder;
  const SchedulerOptions options{.state = folder.path("state"), .max_state_bytes = 1};
  Running server({fairy}, plenty, options);
  for (const char* const text : {"The old king had three sons, and", "A girl went into the wood with"})
    CHECK(collect(*server.scheduler.submit(job_of(server.scheduler.model(""), text, 20))).failure.empty());
  server.finish();
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(options.state))
    files += entry.path().extension() == ".session" ? 1 : 0;
  CHECK(files == 1);
}

TEST_CASE("a saved slot comes back after its prefix was evicted, with the same bits") {
  const TemporaryFolder folder;
  const SchedulerOptions options{.parallel = 2, .slots = folder.path("")};
  const std::string text =
      "Once upon a time there was a little girl who lived with her mother in a small house";
  std::string expected;
  std::size_t prompt = 0;
  const auto task = [](const auto& model, std::size_t slot, SlotAction action, std::string file = "") {
    return SlotTask{model, slot, action, std::move(file)};
  };
  {
    Running server({fairy}, plenty, options);
    const auto model = server.scheduler.model("");
    Job job = job_of(model, text, 20, 3);
    job.slot = 1;
    prompt = job.prompt.tokens.size();
    expected = collect(*server.scheduler.submit(job)).text;
    const SlotResult saved = server.scheduler.slot(task(model, 1, SlotAction::save, "one.bin"));
    CHECK(saved.tokens == prompt + 19);  // the last token was sampled, not run
    CHECK(saved.bytes == std::filesystem::file_size(folder.path("one.bin")));
    CHECK(folder.entries() == 1);
    CHECK(server.scheduler.slot(task(model, 1, SlotAction::erase)).tokens == prompt + 19);
    CHECK(server.scheduler.slot(task(model, 1, SlotAction::erase)).tokens == 0);
    CHECK(is(cause_of([&] { server.scheduler.slot(task(model, 1, SlotAction::save, "no.bin")); }),
             Cause::invalid, "slot 1 has no tokens"));
    job.slot = 2;
    CHECK(is(cause_of([&] { static_cast<void>(server.scheduler.submit(job)); }), Cause::invalid, "0 to 1"));
  }
  Running server({fairy}, plenty, options);  // its prefix cache is empty
  const auto model = server.scheduler.model("");
  const SlotResult restored = server.scheduler.slot(task(model, 0, SlotAction::restore, "one.bin"));
  CHECK(restored.tokens == prompt + 19);
  CHECK(restored.bytes == std::filesystem::file_size(folder.path("one.bin")));
  const Collected answer = collect(*server.scheduler.submit(job_of(model, text, 20, 3)));
  CHECK(answer.text == expected);
  CHECK(answer.ended.cached_tokens >= (prompt - 1) / 16 * 16);
  CHECK(answer.ended.cached_tokens > 0);
  CHECK(server.scheduler.slot(task(model, 0, SlotAction::save, "two.bin")).tokens >= prompt / 16 * 16);
  CHECK(server.scheduler.slot(task(model, 0, SlotAction::erase)).tokens == prompt + 19);
}

TEST_CASE("slots that cannot be saved or restored are refused, and nothing is lost") {
  const TemporaryFolder folder;
  FileLoader loader(256);
  ModelCard card;
  card.path = fairy;
  {
    Running server({fairy}, plenty, {.slots_hint = "say --where"});
    CHECK(is(cause_of([&] {
               server.scheduler.slot({server.scheduler.model(""), 0, SlotAction::erase, ""});
             }),
             Cause::unsupported, "say --where"));
  }
  // Memory for the model and one answer of the whole context.
  const std::uint64_t budget = loader.bytes(card, 0) + plan::any_process_bytes + (std::uint64_t{1} << 18);
  Running server({fairy}, budget,
                 {.parallel = 2, .resident_bytes = nothing_slowly, .slots = folder.path("")});
  const auto model = server.scheduler.model("");
  const auto refused = [&](SlotAction action, std::string file, std::size_t slot = 0) {
    return cause_of([&] { server.scheduler.slot({model, slot, action, std::move(file)}); });
  };
  for (const std::string& name : std::vector<std::string>{
           "", ".", "..", "../a", "a/b", "a\\b", std::string("a\0b", 3), "a\n", std::string(201, 'a')}) {
    CAPTURE(name);
    CHECK(is(refused(SlotAction::save, name), Cause::invalid, "filename"));
    CHECK(is(refused(SlotAction::restore, name), Cause::invalid, "filename"));
  }
  CHECK(is(refused(SlotAction::save, "a", 2), Cause::invalid, "allowed: 0 to 1"));
  CHECK(is(refused(SlotAction::restore, "none"), Cause::invalid, "none"));
  static_cast<void>(folder.file("text", "this is no session"));
  CHECK(is(refused(SlotAction::restore, "text"), Cause::invalid, "text"));
  std::filesystem::create_symlink("/dev/null", folder.path("link"));
  CHECK(is(refused(SlotAction::save, "link"), Cause::invalid, "not a plain file"));
  CHECK(is(refused(SlotAction::restore, "link"), Cause::invalid, "not a plain file"));

  Job job = job_of(model, "Once upon a time there was a little girl who lived with her mother", 150, 3);
  job.slot = 0;
  CHECK(collect(*server.scheduler.submit(job)).failure.empty());
  const SlotResult saved = server.scheduler.slot({model, 0, SlotAction::save, "good"});
  CHECK(saved.tokens > 150);
  // A byte of the keys and values is damaged.
  std::string bytes = contents(folder.path("good"));
  bytes[bytes.size() - 5000] ^= 1;
  static_cast<void>(folder.file("damaged", bytes));
  CHECK(is(refused(SlotAction::restore, "damaged"), Cause::invalid, "damaged"));

  // While an answer has reserved the memory, the file does not fit; the slot and its file stay.
  Job large = job_of(model, "The fox", 0, 1);
  large.stop_at_end = false;
  const auto running = server.scheduler.submit(large);
  REQUIRE(running->next(std::chrono::seconds(30)).has_value());  // it has begun, and has 200 tokens to write
  CHECK(is(refused(SlotAction::restore, "good", 1), Cause::too_large, "free beside models and answers"));
  running->cancel();
  for (auto event = running->next(std::chrono::seconds(30)); event && !std::holds_alternative<Ended>(*event);)
    event = running->next(std::chrono::seconds(30));
  CHECK(std::filesystem::file_size(folder.path("good")) == saved.bytes);
  CHECK(server.scheduler.slot({model, 1, SlotAction::restore, "good"}).tokens == saved.tokens);
  CHECK(folder.entries() == 4);
  CHECK(server.ledger->peak() <= budget);
}

TEST_CASE("folders of models with similar names are not the same") {
  CHECK(file_name_of("a.b") == "a.b");
  CHECK(file_name_of("a_b") == "a_b");
  CHECK(file_name_of("a/b:c") == "a%2Fb%3Ac");
  CHECK(file_name_of("a%2Fb") == "a%252Fb");
  CHECK(file_name_of("..") == "%2E.");
  const TemporaryFolder folder;
  const std::string file = folder.file("file", "x");
  CHECK_THROWS_AS(make_folder(file + "/state"), Error);
}

TEST_CASE("an answer that ends in the queue is noted") {
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, std::string>> notes;
  SchedulerOptions options{.parallel = 1};
  options.on_ended = [&](const AnswerNote& note) {
    const std::lock_guard lock(mutex);
    notes.emplace_back(note.id, note.failure);
  };
  Running server({fairy}, plenty, options);
  const auto model = server.scheduler.model("");
  const auto first = server.scheduler.submit(job_of(model, "Once", 200));
  const auto second = server.scheduler.submit(job_of(model, "Once", 1));
  second->cancel();
  CHECK(collect(*second).ended.reason == StopReason::cancelled);
  const auto third = server.scheduler.submit(job_of(model, "Once", 1));
  server.scheduler.stop();
  static_cast<void>(collect(*first));
  static_cast<void>(collect(*third));
  server.finish();
  REQUIRE(notes.size() == 3);
  CHECK(server.scheduler.snapshot().answers.empty());
}

TEST_CASE("an ending server refuses, and ends what runs") {
  Running server({fairy}, plenty);
  const auto model = server.scheduler.model("");
  const auto answer = server.scheduler.submit(job_of(model, "Once", 0));
  server.scheduler.stop();
  const Collected all = collect(*answer);
  CHECK((all.failure == "the server is ending" || all.ended.answer_tokens > 0));
  CHECK(is(cause_of([&] { static_cast<void>(server.scheduler.submit(job_of(model, "Once", 1))); }),
           Cause::unavailable, "ending"));
  CHECK(is(cause_of([&] { static_cast<void>(server.scheduler.model("")); }), Cause::unavailable, "ending"));
}

}  // namespace mica::test::scheduler_test
