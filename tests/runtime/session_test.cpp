// SPDX-License-Identifier: Apache-2.0

#include "mica/runtime/session.hpp"

#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/runtime/shared_step.hpp"
#include "mica/sample/standard.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"
#include "runtime/scripted_model.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>

namespace mica::test::session_test {
namespace {

using Plain = Transformer<arch::Llama, WithExecutor<exec::Inline>>;

struct Fixture {
  TinyModel tiny{Recipe{}};
  exec::Inline executor;
  Plain model{tiny.document(), executor, {.n_ctx = 64, .chunk = 8, .logits_rows = 4, .log = {}}};
  std::vector<TokenId> ids = random_ids(30, 67);
};

std::vector<float> last_row(Session<Plain>& session) {
  const auto row = session.logits();
  return {row.begin(), row.end()};
}

}  // namespace

TEST_CASE("tokens are taken by chunks, and each chunk's logits can be had while it is the last") {
  Fixture f;
  Session session(f.model);
  std::vector<std::size_t> firsts;
  REQUIRE(session.feed_rows(f.ids, nullptr, [&](std::size_t first, std::size_t count) {
    firsts.push_back(first);
    const std::size_t last = first + count - 1;
    CHECK(session.logits(std::span(&last, 1)).cols() == 67);
    if (first > 0) {
      const std::size_t before = first - 1;
      CHECK(refusal([&] { return session.logits(std::span(&before, 1)); }).code() == ErrorCode::usage);
    }
  }) == model::StepStatus::ok);
  CHECK(firsts == std::vector<std::size_t>{0, 8, 16, 24});
  CHECK(session.tokens().size() == 30);
  CHECK(session.remaining() == 34);
}

TEST_CASE("a session that goes back and on equals one that went there at once") {
  Fixture f;
  Session session(f.model);
  REQUIRE(session.feed(f.ids) == model::StepStatus::ok);
  session.rewind(11);
  CHECK(session.tokens().size() == 11);
  CHECK(refusal([&] { return session.logits(); }).code() == ErrorCode::usage);
  REQUIRE(session.feed(std::span(f.ids).subspan(11, 4)) == model::StepStatus::ok);
  const auto back = last_row(session);
  Session fresh(f.model);
  REQUIRE(fresh.feed(std::span(f.ids).first(15)) == model::StepStatus::ok);
  CHECK(same_bits(back, last_row(fresh)));
  fresh.rewind(99);
  CHECK(fresh.tokens().size() == 15);
}

TEST_CASE("an id outside the vocabulary is refused before anything is fed") {
  Fixture f;
  Session session(f.model);
  const std::vector<TokenId> ids = {1, 2, 67};
  const Error error = refusal([&] { return session.feed(ids); });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "67"));
  CHECK(session.tokens().empty());
}

TEST_CASE("a full context keeps the chunks before it") {
  Fixture f;
  Session session(f.model);
  const auto many = random_ids(70, 67);
  CHECK(session.feed(many) == model::StepStatus::context_full);
  CHECK(session.tokens().size() == 64);
  CHECK(session.remaining() == 0);
}

TEST_CASE("a context that was shortened ends there, alone and in a shared step, and can be whole again") {
  Fixture f;
  Session session(f.model), other(f.model);
  session.limit(20);
  CHECK(session.limited());
  CHECK(session.feed(f.ids) == model::StepStatus::context_full);
  CHECK(session.tokens().size() == 16);
  CHECK(session.remaining() == 4);
  CHECK(session.feed(std::span(f.ids).subspan(16, 4)) == model::StepStatus::ok);
  CHECK(session.remaining() == 0);
  SharedStep together(f.model);
  const std::array<SharedStep<Plain>::Feed, 2> feeds = {
      {{&other, std::span(f.ids).first(2)}, {&session, std::span(f.ids).subspan(20, 1)}}};
  const model::StepResult result = together.step(feeds);
  CHECK(result.status == model::StepStatus::context_full);
  CHECK(result.part == 1);
  CHECK(other.tokens().empty());
  session.limit(10);  // tokens that are there stay
  CHECK(session.tokens().size() == 20);
  CHECK(session.remaining() == 0);
  session.limit(64);
  CHECK_FALSE(session.limited());
  CHECK(session.feed(std::span(f.ids).subspan(20)) == model::StepStatus::ok);
  CHECK(session.remaining() == 34);
  Session plain(f.model);
  REQUIRE(plain.feed(f.ids) == model::StepStatus::ok);
  const std::vector<float> expected = last_row(plain);
  session.rewind(29);
  REQUIRE(session.feed(std::span(f.ids).last(1)) == model::StepStatus::ok);
  CHECK(last_row(session) == expected);
}

TEST_CASE("a flag stops between chunks and keeps what is done") {
  ScriptedModel model(3, "Hello.");
  Session session(model);
  std::atomic<bool> cancel{false};
  const std::vector<TokenId> ids(10, first_byte);
  CHECK(session.feed_rows(ids, &cancel, [&](std::size_t, std::size_t) { cancel = true; }) ==
        model::StepStatus::ok);
  CHECK(session.tokens().size() == 4);
}

TEST_CASE("a session on a model of any type computes what one on the type computes") {
  Fixture f;
  const auto hidden = AnyModel::of<Plain>([&] {
    return Plain(f.tiny.document(), f.executor, {.n_ctx = 64, .chunk = 5, .logits_rows = 4, .log = {}});
  });
  AnyModel& any = *hidden;
  CHECK(any.n_ctx() == 64);
  CHECK(any.weight_bytes() == f.model.weight_bytes());
  Session<AnyModel> erased(any);
  Session<Plain> plain(f.model);
  REQUIRE(erased.feed(f.ids) == model::StepStatus::ok);
  REQUIRE(plain.feed(f.ids) == model::StepStatus::ok);
  CHECK(same_bits(erased.logits(), plain.logits()));
  erased.rewind(7);
  plain.rewind(7);
  REQUIRE(erased.feed(std::span(f.ids).first(3)) == model::StepStatus::ok);
  REQUIRE(plain.feed(std::span(f.ids).first(3)) == model::StepStatus::ok);
  CHECK(same_bits(erased.logits(), plain.logits()));
  Session<AnyModel> other(any);
  REQUIRE(other.feed(std::span(f.ids).first(1)) == model::StepStatus::ok);
  CHECK(refusal([&] { return erased.logits(); }).code() == ErrorCode::usage);
}

TEST_CASE("logits are refused to a session when another one of its model has stepped since") {
  Fixture f;
  Session a(f.model), b(f.model);
  const std::size_t last = 4;
  const auto feed = [](auto& session, std::span<const TokenId> tokens) {
    REQUIRE(session.feed(tokens) == model::StepStatus::ok);
  };
  feed(a, std::span(f.ids).first(5));
  const auto expected = last_row(a);
  feed(b, std::span(f.ids).last(6));
  for (const Error& error :
       {refusal([&] { return a.logits(); }), refusal([&] { return a.logits(std::span(&last, 1)); })}) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK(mentions(error, "logits at position 4", "for another session", "mica::Batch"));
  }
  CHECK(!same_bits(last_row(b), expected));
  a.rewind(4);
  feed(a, std::span(f.ids).subspan(4, 1));
  CHECK(same_bits(last_row(a), expected));
  Session moved = std::move(a);
  CHECK(same_bits(last_row(moved), expected));
  CHECK(refusal([&] { return b.logits(); }).code() == ErrorCode::usage);
}

TEST_CASE("a step for which there is no memory leaves the logits of the one before") {
  ScriptedModel model(3, "Hello.");
  Session session(model);
  const std::vector<TokenId> ids(3, first_byte);
  REQUIRE(session.feed(ids) == model::StepStatus::ok);
  model.failing_from = 3;
  CHECK(session.feed(ids) == model::StepStatus::no_memory);
  CHECK(session.logits()[first_byte + 'H'] == 1);
}

TEST_CASE("sessions that step together have their logits until one of them steps alone") {
  Fixture f;
  Session a(f.model), b(f.model), alone(f.model);
  const auto ids = std::span<const TokenId>(f.ids);
  REQUIRE(alone.feed(ids.first(3)) == model::StepStatus::ok);
  const auto expected = last_row(alone);
  SharedStep together(f.model);
  const std::array feeds = {SharedStep<Plain>::Feed{&a, ids.first(3)},
                            SharedStep<Plain>::Feed{&b, ids.last(4)}};
  REQUIRE(together.step(feeds).status == model::StepStatus::ok);
  static_cast<void>(last_row(b));
  CHECK(same_bits(last_row(a), expected));
  CHECK(refusal([&] { return alone.logits(); }).code() == ErrorCode::usage);
  REQUIRE(b.feed(ids.first(1)) == model::StepStatus::ok);
  CHECK(refusal([&] { return a.logits(); }).code() == ErrorCode::usage);
  CHECK(last_row(b).size() == 67);
}

TEST_CASE("an answer does not go on from logits that are another session's") {
  ScriptedModel model(3, "Hello.");
  Session a(model), b(model);
  const std::vector<TokenId> ids(3, first_byte);
  REQUIRE(a.feed(ids) == model::StepStatus::ok);
  REQUIRE(b.feed(std::span(ids).first(1)) == model::StepStatus::ok);
  const text::Spm tokenizer = byte_tokenizer();
  sample::Standard sampler({.temperature = 0}, model.config().n_vocab);
  const auto go_on = [&] {
    return generate(a, tokenizer, sampler, {}, {}, [](std::string_view) { return true; });
  };
  CHECK(refusal(go_on).code() == ErrorCode::usage);
}

TEST_CASE("logits go with the scratch of their step, when steps become shorter") {
  Fixture f;
  Session session(f.model);
  REQUIRE(session.feed(std::span(f.ids).first(7)) == model::StepStatus::ok);
  REQUIRE(f.model.set_chunk(7));
  CHECK(last_row(session).size() == 67);
  REQUIRE(f.model.set_chunk(2));
  CHECK(refusal([&] { return session.logits(); }).code() == ErrorCode::usage);
}

}  // namespace mica::test::session_test
