// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/http/stream.hpp"

#include "fake_service.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mica::test::stream_test {
namespace {

using namespace serve;
using namespace std::chrono_literals;

std::vector<Job> jobs(std::size_t n) { return std::vector<Job>(n); }
constexpr auto here = [] { return true; };

TEST_CASE("events of several answers arrive with their numbers, each in its order") {
  FakeService service;
  service.scripts[1] = {Begun{1, 0}, Text{"B", {}}, FakeService::ended()};
  Answers answers(service, jobs(2));
  std::vector<std::string> seen(2);
  CHECK(answers.run(
      [&](std::size_t i, Event event) {
        const char* names[] = {"begun", "text", "embedded", "ended"};
        seen[i] += std::string(names[event.index()]) + " ";
        return true;
      },
      here));
  CHECK(seen[0] == "begun text ended ");
  CHECK(seen[1] == "begun text ended ");
  CHECK_FALSE(service.answers[0]->cancelled());
}

TEST_CASE("a client that leaves cancels all answers: at an event, between events, and before the first") {
  FakeService service;
  SUBCASE("at an event") {
    Answers answers(service, jobs(2));
    CHECK_FALSE(answers.run([](std::size_t, Event) { return false; }, here));
    CHECK(service.answers[0]->cancelled());
    CHECK(service.answers[1]->cancelled());
  }
  SUBCASE("between events") {
    service.script = {};
    Answers answers(service, jobs(1));
    CHECK_FALSE(answers.run([](std::size_t, Event) { return true; }, [] { return false; }));
    CHECK(service.answers[0]->cancelled());
  }
  SUBCASE("before the first") {
    { const Answers answers(service, jobs(1)); }
    CHECK(service.answers[0]->cancelled());
  }
  SUBCASE("while a whole reply is collected") {
    Recorder recorder;
    recorder.max_questions = 0;
    recorder.read(whole_reply(std::make_shared<Answers>(service, jobs(1)), Api::openai,
                              [](const auto&) { return Json("never"); }));
    CHECK(recorder.pieces.empty());
    CHECK(service.answers[0]->cancelled());
  }
}

TEST_CASE("a refused job cancels those before it") {
  FakeService service;
  service.refusal = Refusal(Cause::busy, "full");
  service.refuse_from = 2;
  CHECK_THROWS_AS(Answers(service, jobs(3)), Refusal);
  REQUIRE(service.answers.size() == 2);
  CHECK(service.answers[0]->cancelled());
  CHECK(service.answers[1]->cancelled());
}

TEST_CASE("an answer that fails, or that the server ends, is an error") {
  const auto raised = [](Event last) {
    FakeService service;
    service.script = {Begun{1, 0}, std::move(last)};
    Answers answers(service, jobs(1));
    try {
      (void)answers.run([](std::size_t, Event) { return true; }, here);
    } catch (const Refusal& refusal) {
      return std::pair(refusal.cause(), refusal.message());
    }
    return std::pair(Cause::invalid, std::string());
  };
  CHECK(raised(Failed{"disk"}) == std::pair(Cause::failed, std::string("disk")));
  CHECK(raised(Failed{"too large", Cause::invalid}) == std::pair(Cause::invalid, std::string("too large")));
  CHECK(raised(FakeService::ended(StopReason::cancelled)).first == Cause::unavailable);
  for (const StopReason reason : {StopReason::no_memory, StopReason::write_failed, StopReason::read_failed}) {
    const auto [cause, text] = raised(FakeService::ended(reason));
    CHECK(cause == Cause::failed);
    CHECK(text.find(name(reason)) != std::string::npos);
  }
  CHECK(raised(FakeService::ended(StopReason::context_full)).second.empty());
}

TEST_CASE("silence is broken by comments, and they show that a client has disconnected") {
  Recorder recorder;
  const Connection connection = recorder.connection();
  EventStream pings(connection, 0ms);
  CHECK(pings.idle());
  CHECK(recorder.text() == ": \n\n");
  EventStream quiet(connection, 1h);
  CHECK(quiet.idle());
  CHECK(quiet.event("x", Json{{"a", 1}}));
  CHECK(recorder.text() == ": \n\nevent: x\ndata: {\"a\":1}\n\n");
  recorder.max_questions = 0;
  CHECK_FALSE(quiet.idle());
  recorder.max_pieces = 0;
  CHECK_FALSE(pings.idle());
}

TEST_CASE("a whole reply that fails midway has the status and the form of the failure") {
  const auto failing = [](Api api, Event last) {
    FakeService service;
    service.script = {Begun{1, 0}, Text{"a", {}}, std::move(last)};
    return made(whole_reply(std::make_shared<Answers>(service, jobs(1)), api,
                            [](const auto&) { return Json("never"); }));
  };
  const HttpReply openai = failing(Api::openai, Failed{"disk"});
  CHECK(openai.status == 500);
  CHECK(openai.body == R"({"error":{"code":500,"message":"disk","type":"server_error","param":null}})");
  CHECK(failing(Api::ollama, Failed{"disk"}).status == 500);
  CHECK(failing(Api::ollama, Failed{"disk"}).body == R"({"error":"disk"})");
  const HttpReply stopped = failing(Api::anthropic, FakeService::ended(StopReason::cancelled));
  CHECK(stopped.status == 503);
  CHECK(json_of(stopped)["error"]["type"] == "overloaded_error");
  const HttpReply later = failing(Api::anthropic, short_of_memory(7));
  CHECK(later.status == 503);
  CHECK(later.headers.get("retry-after") == "7");
  CHECK(json_of(later)["error"]["type"] == "overloaded_error");
  const HttpReply good = failing(Api::openai, FakeService::ended());
  CHECK(good.status == 200);
  CHECK(good.body == "\"never\"");
}

TEST_CASE("an error after the header is an event of the API") {
  const auto failing = [](Api api) {
    FakeService service;
    return body_of(event_reply(std::make_shared<Answers>(service, jobs(1)), api, 1h,
                               [](Answers&, EventStream&) { raise(ErrorCode::failed, "disk"); }));
  };
  CHECK(failing(Api::openai) ==
        "data: {\"error\":{\"code\":500,\"message\":\"disk\",\"type\":\"server_error\",\"param\":null}}\n\n");
  CHECK(
      failing(Api::anthropic) ==
      "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"disk\"}}\n\n");
}

}  // namespace
}  // namespace mica::test::stream_test
