// SPDX-License-Identifier: Apache-2.0
//
// A program that knows nothing of ranks, on rank 0: the others repeat its calls, and the answers are those of
// one rank.

#include "mica/runtime/leader.hpp"

#include "io/temporary_folder.hpp"
#include "mica/ranks/threads.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/runtime/open.hpp"
#include "mica/runtime/shared_step.hpp"
#include "mica/sample/standard.hpp"
#include "model/run_model.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace mica::test::leader_test {
namespace {

using Link = ranks::Threads::Link;

const char* const fairy = MICA_SOURCE "/examples/models/fairy.gguf";
constexpr std::size_t n_vocab = 2048;

Model open_alone() { return open(fairy, {.n_ctx = 256, .chunk = 32, .logits_rows = 4, .threads = 1}); }
Model open_divided(Link& link, bool leads, ranks::Split split) {
  OpenOptions options{.n_ctx = 256, .chunk = 32, .logits_rows = 4, .threads = 1};
  options.choice.ranks = ranks::Several<ranks::AnyLink>(link, {}, split);
  if (leads) options.leads = &link;
  return open(fairy, options);
}

/// Rank 0 calls use(model), the others repeat; answers what they raised, or "".
std::vector<std::string> on_ranks(std::size_t size, const std::function<void(Model&)>& use,
                                  ranks::Split split = ranks::Split::rows) {
  ranks::Threads meeting(size);
  std::vector<std::string> errors(size);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      Link link(meeting, r);
      try {
        Model model = open_divided(link, r == 0, split);
        r == 0 ? use(model) : follow(model.transformer(), link);
      } catch (const std::exception& error) {
        errors[r] = error.what();
        meeting.leave();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return errors;
}

/// A prompt, answers, two sequences in one step, tokens that are removed, a copy: all logits.
std::vector<float> story(Model& model) {
  std::vector<float> out;
  const auto keep = [&](Session<AnyModel>& session) {
    const auto logits = session.logits();
    out.insert(out.end(), logits.begin(), logits.end());
  };
  auto first = model.session(), second = model.session();
  REQUIRE(first.feed(random_ids(50, n_vocab, 1)) == model::StepStatus::ok);
  keep(first);
  for (TokenId id = 0; id < 20; ++id) {
    REQUIRE(first.feed(std::span(&id, 1)) == model::StepStatus::ok);
    keep(first);
  }
  REQUIRE(second.feed(random_ids(9, n_vocab, 2)) == model::StepStatus::ok);
  keep(second);
  first.rewind(30);
  REQUIRE(first.feed(random_ids(5, n_vocab, 3)) == model::StepStatus::ok);
  keep(first);
  return out;
}

}  // namespace

TEST_CASE("what rank 0 does has the bits of one rank, and the others end with it") {
  Model alone = open_alone();
  const std::vector<float> expected = story(alone);
  for (const std::size_t size : {1, 2, 3, 5}) {
    CAPTURE(size);
    std::vector<float> found;
    const auto errors = on_ranks(size, [&](Model& model) { found = story(model); });
    CHECK(same_bits(found, expected));
    CHECK(errors == std::vector<std::string>(size));
  }
}

TEST_CASE("ranks that divide layers answer as one rank, and save what one rank saves") {
  const TemporaryFolder folder;
  const auto save = [&](Model& model, const std::string& name) {
    auto session = model.session();
    REQUIRE(session.feed(random_ids(70, n_vocab, 4)) == model::StepStatus::ok);
    session.save(folder.path(name));
  };
  Model alone = open_alone();
  const std::vector<float> expected = story(alone);
  save(alone, "1");
  for (const std::size_t size : {2, 3}) {
    CAPTURE(size);
    const std::string name = std::to_string(size);
    std::vector<float> found;
    const auto use = [&](Model& model) {
      found = story(model);
      save(model, name);
      auto session = Session<AnyModel>::open(model.transformer(), folder.path("1"));
      CHECK(session.feed(random_ids(3, n_vocab, 5)) == model::StepStatus::ok);
    };
    CHECK(on_ranks(size, use, ranks::Split::layers) == std::vector<std::string>(size));
    CHECK(same_bits(found, expected));
    CHECK(contents(folder.path(name)) == contents(folder.path("1")));
  }
}

TEST_CASE("a sampled answer is that of one rank, also with a sampler that looks at few logits") {
  const auto answer = [](Model& model) {
    std::vector<TokenId> out;
    for (const float temperature : {0.0f, 1.5f}) {
      for (const std::int64_t top_k : {std::int64_t{40}, std::int64_t{0}}) {
        auto session = model.session();
        sample::Standard sampler({.temperature = temperature, .top_k = top_k, .seed = 9}, n_vocab);
        const auto result =
            generate(session, model.tokenizer(), sampler, random_ids(9, n_vocab, 6),
                     {.max_tokens = 30, .stop_at_end = false}, [](std::string_view) { return true; });
        out.insert(out.end(), result.tokens.begin(), result.tokens.end());
      }
    }
    return out;
  };
  Model alone = open_alone();
  const std::vector<TokenId> expected = answer(alone);
  CHECK(expected.size() == 120);
  for (const std::size_t size : {2, 3}) {
    std::vector<TokenId> found;
    const auto errors = on_ranks(size, [&](Model& model) { found = answer(model); });
    CHECK(found == expected);
    CHECK(errors == std::vector<std::string>(size));
  }
}

TEST_CASE("a session is saved as by one rank, and goes on with any number of them") {
  const TemporaryFolder folder;
  const auto begun = random_ids(70, n_vocab, 4), next = random_ids(3, n_vocab, 5);
  const auto save = [&](Model& model, const std::string& name) {
    auto session = model.session();
    REQUIRE(session.feed(begun) == model::StepStatus::ok);
    session.save(folder.path(name), {.text = "a note"});
  };
  const auto go_on = [&](Model& model, const std::string& name) {
    auto session = Session<AnyModel>::open(model.transformer(), folder.path(name));
    session.rewind(67);
    REQUIRE(session.feed(next) == model::StepStatus::ok);
    const auto logits = session.logits();
    return std::vector<float>(logits.begin(), logits.end());
  };
  Model alone = open_alone();
  save(alone, "1");
  const auto expected = go_on(alone, "1");
  for (const std::size_t size : {2, 3, 5}) {
    CAPTURE(size);
    const std::string name = std::to_string(size);
    std::vector<float> found;
    const auto errors = on_ranks(size, [&](Model& model) {
      save(model, name);
      found = go_on(model, size == 3 ? "2" : "1");
    });
    CHECK(errors == std::vector<std::string>(size));
    CHECK(same_bits(found, expected));
    CHECK(contents(folder.path(name)) == contents(folder.path("1")));
    CHECK(same_bits(go_on(alone, name), expected));
  }
}

TEST_CASE("a saved session that rank 0 cannot read or write is refused there, and the others go on") {
  const TemporaryFolder folder;
  const auto errors = on_ranks(3, [&](Model& model) {
    auto session = model.session();
    REQUIRE(session.feed(random_ids(70, n_vocab)) == model::StepStatus::ok);
    session.save(folder.path("whole"));
    std::string bytes = contents(folder.path("whole"));
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    folder.file("damaged", bytes);
    auto damaged = Session<AnyModel>::open(model.transformer(), folder.path("damaged"));
    CHECK_THROWS_WITH_AS(static_cast<void>(damaged.feed(random_ids(1, n_vocab))),
                         doctest::Contains("are damaged"), Error);
    CHECK_THROWS_AS(session.save(folder.path("no/such/folder")), Error);
    CHECK(session.feed(random_ids(1, n_vocab)) == model::StepStatus::ok);
    CHECK(damaged.feed(random_ids(1, n_vocab)) == model::StepStatus::ok);
  });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("where a rank is gone, a session is saved as its tokens, which go on with the same bits") {
  const TemporaryFolder folder;
  const auto begun = random_ids(40, n_vocab, 4), next = random_ids(3, n_vocab, 5);
  for (const bool noticed : {false, true}) {  // by a step before
    CAPTURE(noticed);
    ranks::Threads meeting(2);
    std::thread other([&] {
      Link link(meeting, 1);
      Model model = open_divided(link, false, ranks::Split::rows);
      mica::detail::Follower follower(model.transformer(), link);
      for (int calls = 0; calls < 3; ++calls) static_cast<void>(follower.repeat());  // a cache, two steps
      link.leave();
    });
    Link link(meeting, 0);
    Model model = open_divided(link, true, ranks::Split::rows);
    auto session = model.session();
    REQUIRE(session.feed(begun) == model::StepStatus::ok);
    other.join();
    if (noticed) CHECK(session.feed(next) == model::StepStatus::rank_lost);
    session.save(folder.path("saved"));

    Model alone = open_alone();
    auto saved = Session<AnyModel>::open(alone.transformer(), folder.path("saved"));
    CHECK(saved.tokens().size() == begun.size());
    REQUIRE(saved.feed(next) == model::StepStatus::ok);
    const auto logits = saved.logits();
    const std::vector<float> found(logits.begin(), logits.end());
    auto fresh = alone.session();
    REQUIRE(fresh.feed(begun) == model::StepStatus::ok);
    REQUIRE(fresh.feed(next) == model::StepStatus::ok);
    CHECK(same_bits(found, fresh.logits()));
  }
}

TEST_CASE("a program that fails on rank 0 ends the others") {
  const auto errors = on_ranks(3, [](Model& model) {
    auto session = model.session();
    REQUIRE(session.feed(random_ids(9, n_vocab)) == model::StepStatus::ok);
    raise(ErrorCode::failed, "rank 0 stumbles");
  });
  CHECK(errors[0] == "rank 0 stumbles");
  CHECK(errors[1].empty());  // the leader said that it ends
  CHECK(errors[2].empty());
}

TEST_CASE("messages that no leader sends are refused, with what is wrong") {
  struct Message {
    std::vector<std::uint64_t> numbers;  // after the call
    std::string_view refusal;
  };
  using mica::detail::Call;
  const std::pair<Call, Message> messages[] = {
      {static_cast<Call>(77), {{}, "call 77 is none"}},
      {Call::forget, {{}, "truncated"}},
      {Call::rewind, {{9, 0}, "sequence 9 is none"}},
      {Call::rewind, {{0, 4}, "4 tokens, the sequence has 3"}},
      {Call::adopt, {{0, 0, 9}, "9 tokens, the sequence has 3"}},
      {Call::examine, {{0, 2048}, "token 2048, allowed below 2048"}},
      {Call::logits, {{2049}, "the best 2049 logits of 2048"}},
      {Call::logits, {{0, 5}, "5 rows of logits, allowed 1 to 4"}},
      {Call::logits, {{40, 1, 3}, "logits of row 3, the last step had 3"}},
      {Call::save, {{9}, "sequence 9 is none"}},
      {Call::load, {{9}, "sequence 9 is none"}},
      {Call::load, {{0, 0, 5}, "truncated"}},
      {Call::step, {{0}, "a step without tokens"}},
      {Call::step, {{1, 0}, "truncated"}},
  };
  for (const auto& each : messages) {
    const Call call = each.first;
    const Message& message = each.second;
    CAPTURE(message.refusal);
    ranks::Threads meeting(2);
    std::string refusal;
    std::thread other([&] {
      Link link(meeting, 1);
      OpenOptions options{.n_ctx = 64, .chunk = 8, .logits_rows = 4, .threads = 1};
      options.choice.ranks = ranks::Several<ranks::AnyLink>(link);
      Model model = open(fairy, options);
      try {
        follow(model.transformer(), link);
      } catch (const Error& error) {
        refusal = error.what();
      }
    });
    Link link(meeting, 0);
    OpenOptions options{.n_ctx = 64, .chunk = 8, .logits_rows = 4, .threads = 1};
    options.choice.ranks = ranks::Several<ranks::AnyLink>(link);
    options.leads = &link;
    Model model = open(fairy, options);
    auto session = model.session();
    REQUIRE(session.feed(random_ids(3, n_vocab)) == model::StepStatus::ok);
    mica::detail::Calls calls(link);
    auto& out = calls.begin(call);
    for (const std::uint64_t number : message.numbers) gguf::append_number(out, number);
    static_cast<void>(calls.send());
    other.join();
    CHECK(refusal.find(message.refusal) != std::string::npos);
    CHECK(refusal.starts_with("message of rank 0: "));
    CHECK(session.feed(random_ids(1, n_vocab)) == model::StepStatus::rank_lost);
  }
}

}  // namespace mica::test::leader_test
