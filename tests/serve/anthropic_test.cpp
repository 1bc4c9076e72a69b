// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/anthropic.hpp"

#include "events.hpp"

#include <doctest/doctest.h>

namespace mica::test::anthropic_test {
namespace {

using namespace serve;

struct Server {
  FakeService service;
  Router router;

  Server() { add_anthropic(router, service, RouteOptions{}); }
  [[nodiscard]] HttpReply ask(const std::string& fields, const std::string& path = "/v1/messages") {
    return router.handle(post(path, R"({"model":"tiny","max_tokens":2000,)" + fields + "}"));
  }
  [[nodiscard]] const Conversation& conversation() const { return service.tiny().conversations.back(); }
};

const std::string hi = R"("messages":[{"role":"user","content":"Hi"}])";
const std::string enabled = R"(,"thinking":{"type":"enabled","budget_tokens":1024})";

TEST_CASE("a message has all fields of the API") {
  Server server;
  const Json r = json_of(server.ask(hi));
  CHECK(r["id"].get<std::string>().starts_with("msg_"));
  CHECK(r["type"] == "message");
  CHECK(r["role"] == "assistant");
  CHECK(r["model"] == "tiny");
  CHECK(r["content"] == Json::parse(R"([{"type":"text","text":"Hello world","citations":null}])"));
  CHECK(r["stop_reason"] == "end_turn");
  for (const char* name : {"stop_sequence", "stop_details", "container"}) CHECK(r.at(name).is_null());
  const Json& usage = r["usage"];
  CHECK(usage["input_tokens"] == 4);  // those that the cache had are counted apart
  CHECK(usage["cache_read_input_tokens"] == 3);
  CHECK(usage["cache_creation_input_tokens"] == 0);
  CHECK(usage["output_tokens"] == 2);
  for (const char* name : {"cache_creation", "inference_geo", "server_tool_use", "service_tier"})
    CHECK(usage.at(name).is_null());
  CHECK(server.service.jobs[0].max_tokens == 2000);
  CHECK(server.conversation().thinking == false);
}

TEST_CASE("the events of a message have the order of the API") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"so</think>Four", {}}, FakeService::ended()};
  const HttpReply reply = server.ask(hi + R"(,"stream":true)" + enabled);
  CHECK(reply.type == "text/event-stream");
  const auto events = events_of(body_of(reply));
  CHECK(names_of(events) == std::vector<std::string>{"message_start", "ping", "content_block_start",
                                                     "content_block_delta", "content_block_delta",
                                                     "content_block_stop", "content_block_start",
                                                     "content_block_delta", "content_block_stop",
                                                     "message_delta", "message_stop"});
  for (const StreamEvent& event : events) CHECK(event.data["type"] == event.name);
  CHECK(events[0].data["message"]["content"].empty());
  CHECK(events[0].data["message"]["stop_reason"].is_null());
  CHECK(events[0].data["message"]["usage"]["input_tokens"] == 4);
  CHECK(events[2].data["content_block"] ==
        Json::parse(R"({"type":"thinking","thinking":"","signature":""})"));
  CHECK(events[3].data["delta"] == Json::parse(R"({"type":"thinking_delta","thinking":"so"})"));
  CHECK(events[4].data["delta"]["type"] == "signature_delta");
  CHECK(events[6].data["index"] == 1);
  CHECK(events[7].data["delta"] == Json::parse(R"({"type":"text_delta","text":"Four"})"));
  CHECK(events[9].data["delta"]["stop_reason"] == "end_turn");
  CHECK(events[9].data["usage"]["output_tokens"] == 2);
  CHECK(events[9].data["usage"]["output_tokens_details"]["thinking_tokens"] == 2);
}

TEST_CASE("thoughts are shown where a client asks for them") {
  const auto content = [](const std::string& thinking) {
    Server server;
    const bool opened = thinking.find("disabled") == std::string::npos && !thinking.empty();  // by the prompt
    server.service.script = {Begun{7, 3}, Text{opened ? "so</think>Four" : "<think>so</think>Four", {}},
                             FakeService::ended()};
    return json_of(server.ask(hi + thinking))["content"];
  };
  const Json shown = content(enabled);
  REQUIRE(shown.size() == 2);
  CHECK(shown[0]["type"] == "thinking");
  CHECK(shown[0]["thinking"] == "so");
  CHECK_FALSE(shown[0]["signature"].get<std::string>().empty());
  CHECK(shown[1]["text"] == "Four");
  const Json omitted = content(R"(,"thinking":{"type":"adaptive","display":"omitted"})");
  CHECK(omitted[0]["thinking"] == "");
  CHECK(omitted[1]["text"] == "Four");
  for (const char* none : {"", R"(,"thinking":{"type":"disabled"})"}) {
    REQUIRE(content(none).size() == 1);
    CHECK(content(none)[0]["text"] == "Four");
  }
}

TEST_CASE("a message has the reason of its end, and the text that ended it") {
  Server server;
  const auto end = [&](StopReason reason, const char* text = "") {
    Ended ended = FakeService::ended(reason);
    ended.stop = text;
    server.service.script = {Begun{7, 3}, Text{"a", {}}, ended};
    return json_of(server.ask(hi + R"(,"stop_sequences":["END","STOP"])"));
  };
  const Json stopped = end(StopReason::stop_text, "END");
  CHECK(stopped["stop_reason"] == "stop_sequence");
  CHECK(stopped["stop_sequence"] == "END");
  const Json turned = end(StopReason::stop_text);  // by a text of the chat format
  CHECK(turned["stop_reason"] == "end_turn");
  CHECK(turned["stop_sequence"].is_null());
  CHECK(end(StopReason::length)["stop_reason"] == "max_tokens");
  CHECK(end(StopReason::context_full)["stop_reason"] == "model_context_window_exceeded");
  CHECK(end(StopReason::end_of_text)["stop_sequence"].is_null());
  CHECK(server.service.jobs[0].stop == std::vector<std::string>{"END", "STOP"});
}

TEST_CASE("blocks become messages, and those of one role in a row one message") {
  Server server;
  (void)json_of(server.ask(R"("system":[{"type":"text","text":"Be ","cache_control":{"type":"ephemeral"}},
                                        {"type":"text","text":"brief."}],
    "top_k":5,"messages":[
    {"role":"user","content":"A"},{"role":"user","content":[{"type":"text","text":"B"}]},
    {"role":"assistant","content":[{"type":"thinking","thinking":"why","signature":"mica"},
                                   {"type":"text","text":"C"}]},
    {"role":"user","content":"D"}])"));
  const auto& messages = server.conversation().messages;
  REQUIRE(messages.size() == 4);
  CHECK(messages[0].role == "system");
  CHECK(messages[0].content == "Be brief.");
  CHECK(messages[1].content == "A\n\nB");
  CHECK(messages[2].thoughts == "why");
  CHECK(messages[2].content == "C");
  CHECK_FALSE(server.conversation().continues);
  CHECK(server.service.jobs[0].sampler.top_k == 5);

  (void)json_of(server.ask(
      R"("messages":[{"role":"user","content":"Best?"},{"role":"assistant","content":"It is ("}])"));
  CHECK(server.conversation().continues);
}

TEST_CASE("what a message cannot do is refused by name") {
  const auto refused = [](const std::string& fields, const std::string& message, int status) {
    CAPTURE(fields);
    Server server;
    const HttpReply reply = server.ask(fields);
    CHECK(reply.status == status);
    const Json r = json_of(reply);
    CHECK(r["type"] == "error");
    CHECK(r["error"]["type"] == "invalid_request_error");
    CHECK(r["error"]["message"].get<std::string>().starts_with(message));
    CHECK(server.service.jobs.empty());
  };
  refused(R"("system":"a")", "messages: is missing", 400);
  refused(R"("system":"a","messages":[])", "messages: must be an array with one message", 400);
  refused(hi + R"(,"tools":[{"name":"f"}])", "tools[0].input_schema: ", 400);
  refused(hi + R"(,"tool_choice":{"type":"any"})", "tool_choice.type: ", 400);
  refused(hi + R"(,"container":"c")", "container: ", 400);
  refused(hi + R"(,"output_config":{"format":{"type":"json_schema"}})",
          "output_config.format.schema: is missing", 400);
  refused(hi + R"(,"output_config":{"effort":"none"})", "output_config.effort: ", 400);
  refused(hi + R"(,"thinking":{"type":"enabled"})", "thinking.budget_tokens: is missing", 400);
  refused(hi + R"(,"thinking":{"type":"enabled","budget_tokens":2000})", "thinking.budget_tokens: is 2000",
          400);
  refused(hi + R"(,"thinking":{"type":"some"})", "thinking.type: ", 400);
  refused(hi + R"(,"wishes":1)", "wishes: ", 400);
  refused(R"("messages":[{"role":"tool","content":"a"}])", "messages[0].role: ", 400);
  refused(R"("messages":[{"role":"user","content":[{"type":"image"}]}])",
          "messages[0].content[0].type: ", 400);
  refused(R"("messages":[{"role":"assistant","content":[{"type":"tool_use"}]}])",
          "messages[0].content[0].id: ", 400);
  Server server;
  const HttpReply reply = server.router.handle(post("/v1/messages", R"({"model":"tiny",)" + hi + "}"));
  CHECK(reply.status == 400);
  CHECK(json_of(reply)["error"]["message"] == "max_tokens: is missing");
}

TEST_CASE("an answer that fails ends its stream with an error") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"Hel", {}}, Failed{"the disk is gone"}};
  const auto events = events_of(body_of(server.ask(hi + R"(,"stream":true)")));
  CHECK(events.back().name == "error");
  CHECK(events.back().data ==
        Json::parse(R"({"type":"error","error":{"type":"api_error","message":"the disk is gone"}})"));
}

TEST_CASE("a client that leaves ends the message") {
  for (const bool stream : {true, false}) {
    Server server;
    server.service.script = {Begun{7, 3}};  // goes on
    const HttpReply reply = server.ask(stream ? hi + R"(,"stream":true)" : hi);
    Recorder client;
    client.max_questions = 1;
    client.read(reply);
    CHECK(server.service.answers[0]->cancelled());
  }
  Server server;
  Recorder client;
  client.max_pieces = 2;
  server.ask(hi + R"(,"stream":true)").stream(client.connection());
  CHECK(client.pieces.size() == 2);
  CHECK(server.service.answers[0]->cancelled());
}

TEST_CASE("tokens of a message are counted without an answer") {
  Server server;
  const HttpReply reply =
      server.router.handle(post("/v1/messages/count_tokens", R"({"model":"tiny",)" + hi + "}"));
  CHECK(json_of(reply) == Json{{"input_tokens", std::string("<user: Hi\nassistant:").size()}});
  CHECK(server.service.jobs.empty());
}

}  // namespace
}  // namespace mica::test::anthropic_test
