// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/responses.hpp"

#include "events.hpp"

#include <doctest/doctest.h>

namespace mica::test::responses_test {
namespace {

using namespace serve;

struct Server {
  FakeService service;
  Router router;

  Server() { add_responses(router, service, RouteOptions{}); }
  [[nodiscard]] HttpReply ask(const std::string& fields, const std::string& path = "/v1/responses") {
    return router.handle(post(path, R"({"model":"tiny",)" + fields + "}"));
  }
  [[nodiscard]] std::vector<text::Message> messages() const {
    return service.tiny().conversations.back().messages;
  }
};

const std::string thinks = "<think>\n2 and 2\n</think>\n\nFour.";

TEST_CASE("a response has all fields of the specification") {
  Server server;
  const Json r = json_of(server.ask(R"("input":"Hi","metadata":{"a":"b"},"temperature":0.5)"));
  for (const char* name : {"id",
                           "object",
                           "created_at",
                           "completed_at",
                           "status",
                           "incomplete_details",
                           "model",
                           "previous_response_id",
                           "instructions",
                           "output",
                           "error",
                           "tools",
                           "tool_choice",
                           "truncation",
                           "parallel_tool_calls",
                           "text",
                           "top_p",
                           "presence_penalty",
                           "frequency_penalty",
                           "top_logprobs",
                           "temperature",
                           "reasoning",
                           "usage",
                           "max_output_tokens",
                           "max_tool_calls",
                           "store",
                           "background",
                           "service_tier",
                           "metadata",
                           "safety_identifier",
                           "prompt_cache_key"}) {
    CAPTURE(name);
    CHECK(r.contains(name));
  }
  CHECK(r["status"] == "completed");
  CHECK(r["temperature"] == 0.5);
  CHECK(r["metadata"] == Json{{"a", "b"}});
  REQUIRE(r["output"].size() == 1);
  const Json& message = r["output"][0];
  CHECK(message["type"] == "message");
  CHECK(message["role"] == "assistant");
  CHECK(message["status"] == "completed");
  CHECK(message["content"] == Json::parse(R"([{"type":"output_text","text":"Hello world","annotations":[],
                                              "logprobs":[]}])"));
  CHECK(r["usage"] ==
        Json::parse(R"({"input_tokens":7,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":0},
    "output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":9})"));
  CHECK(server.service.jobs[0].sampler.temperature == 0.5f);
}

TEST_CASE("the events of a stream have the order of the specification") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"<think>so", {}}, Text{"</think>Four", {}},
                           FakeService::ended()};
  const HttpReply reply = server.ask(R"("input":"Hi","stream":true)");
  CHECK(reply.type == "text/event-stream");
  const auto events = events_of(body_of(reply));
  CHECK(names_of(events) ==
        std::vector<std::string>{
            "response.created", "response.in_progress", "response.output_item.added",
            "response.content_part.added", "response.reasoning_text.delta", "response.reasoning_text.done",
            "response.content_part.done", "response.output_item.done", "response.output_item.added",
            "response.content_part.added", "response.output_text.delta", "response.output_text.done",
            "response.content_part.done", "response.output_item.done", "response.completed", ""});
  CHECK(events.back().data.is_null());
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    CHECK(events[i].data["type"] == events[i].name);
    CHECK(events[i].data["sequence_number"] == i);
  }
  CHECK(events[0].data["response"]["status"] == "in_progress");
  CHECK(events[0].data["response"]["output"].empty());
  CHECK(events[4].data["delta"] == "so");
  CHECK(events[4].data["output_index"] == 0);
  CHECK(events[10].data["delta"] == "Four");
  CHECK(events[10].data["output_index"] == 1);
  CHECK(events[10].data["content_index"] == 0);
  CHECK(events[10].data["item_id"] == events[13].data["item"]["id"]);
  CHECK(events[11].data["text"] == "Four");
  const Json& whole = events[14].data["response"];
  CHECK(whole["output"][0] == events[7].data["item"]);
  CHECK(whole["output"][1] == events[13].data["item"]);
  CHECK(whole["usage"]["output_tokens_details"]["reasoning_tokens"] == 2);
}

TEST_CASE("thoughts are content of an item, or its summary where one is asked for") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{thinks, {}}, FakeService::ended()};
  Json output = json_of(server.ask(R"("input":"2+2?")"))["output"];
  REQUIRE(output.size() == 2);
  CHECK(output[0]["type"] == "reasoning");
  CHECK(output[0]["content"] == Json::parse(R"([{"type":"reasoning_text","text":"2 and 2"}])"));
  CHECK(output[0]["summary"].empty());
  CHECK(output[1]["content"][0]["text"] == "Four.");

  server.service.script[1] = Text{"2 and 2</think>Four.", {}};  // the prompt opens thoughts
  output = json_of(server.ask(R"("input":"2+2?","reasoning":{"summary":"auto","effort":"low"})"))["output"];
  CHECK(output[0]["summary"] == Json::parse(R"([{"type":"summary_text","text":"2 and 2"}])"));
  CHECK(output[0]["content"].empty());
  CHECK(server.service.tiny().conversations.back().variables == R"({"reasoning_effort":"low"})");
  CHECK(server.service.tiny().conversations.back().thinking == true);

  (void)json_of(server.ask(R"("input":"2+2?","reasoning":{"effort":"none"})"));
  CHECK(server.service.tiny().conversations.back().thinking == false);
}

TEST_CASE("a client of Open Responses gets the names that it has for thoughts") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{thinks, {}}, FakeService::ended()};
  HttpRequest request = post("/v1/responses", R"({"model":"tiny","input":"2+2?","stream":true})");
  request.headers.add("OpenResponses-Version", "latest");
  const auto events = events_of(body_of(server.router.handle(request)));
  CHECK(events[4].name == "response.reasoning.delta");
  CHECK(events[5].name == "response.reasoning.done");
  CHECK(events[5].data["text"] == "2 and 2");
}

TEST_CASE("items become messages") {
  Server server;
  (void)json_of(server.ask(R"("instructions":"Be brief.","input":[
    {"role":"developer","content":"No jokes."},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"A"},
                                               {"type":"input_text","text":"B"}]},
    {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"why"}]},
    {"type":"message","id":"m","status":"completed","role":"assistant","phase":"final_answer",
     "content":[{"type":"output_text","text":"C","annotations":[],"logprobs":[]}]},
    {"role":"user","content":"D"}])"));
  const auto messages = server.messages();
  REQUIRE(messages.size() == 4);
  CHECK(messages[0].role == "system");
  CHECK(messages[0].content == "Be brief.\n\nNo jokes.");
  CHECK(messages[1].content == "AB");
  CHECK(messages[2].role == "assistant");
  CHECK(messages[2].thoughts == "why");
  CHECK(messages[2].content == "C");
  CHECK(messages[3].content == "D");
  CHECK_FALSE(server.service.tiny().conversations.back().continues);
}

TEST_CASE("an answer that a maximum ends is incomplete") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"Hel", {}}, FakeService::ended(StopReason::length)};
  const Json r = json_of(server.ask(R"("input":"Hi","max_output_tokens":20)"));
  CHECK(r["status"] == "incomplete");
  CHECK(r["incomplete_details"] == Json{{"reason", "max_output_tokens"}});
  CHECK(r["completed_at"].is_null());
  CHECK(r["output"][0]["status"] == "incomplete");
  CHECK(server.service.jobs[0].max_tokens == 20);
  const auto events = events_of(body_of(server.ask(R"("input":"Hi","stream":true)")));
  CHECK(events[events.size() - 2].name == "response.incomplete");
}

TEST_CASE("an answer without text has an empty message") {
  Server server;
  server.service.script = {Begun{7, 3}, FakeService::ended()};
  CHECK(json_of(server.ask(R"("input":"Hi")"))["output"][0]["content"][0]["text"] == "");
}

TEST_CASE("an answer that fails ends its stream as failed") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"Hel", {}}, Failed{"the disk is gone"}};
  const auto events = events_of(body_of(server.ask(R"("input":"Hi","stream":true)")));
  const Json& last = events[events.size() - 2].data;
  CHECK(last["type"] == "response.failed");
  CHECK(last["response"]["status"] == "failed");
  CHECK(last["response"]["error"] == Json{{"code", "server_error"}, {"message", "the disk is gone"}});
  CHECK(json_of(server.ask(R"("input":"Hi")"))["error"]["message"] == "the disk is gone");
}

TEST_CASE("probabilities are with the text of the answer, and not with thoughts") {
  Server server;
  const auto piece = [](const char* text) { return ScoredPiece{5, -0.5f, text, {{6, -1.5f, "x"}}}; };
  server.service.script = {Begun{7, 3},         Text{"<think>so", {piece("<think>"), piece("so")}},
                           Begun{7, 3},         Text{"</think>", {piece("</think>")}},
                           Begun{7, 3},         Text{"Four", {piece("Four")}},
                           FakeService::ended()};
  const std::string asked =
      R"("input":"Hi","stream":true,"top_logprobs":1,"include":["message.output_text.logprobs"])";
  const auto events = events_of(body_of(server.ask(asked)));
  const Json logprobs = Json::parse(R"([{"token":"Four","logprob":-0.5,"bytes":[70,111,117,114],
    "top_logprobs":[{"token":"x","logprob":-1.5,"bytes":[120]}]}])");
  CHECK(events[10].data["logprobs"] == logprobs);
  CHECK(events[14].data["response"]["output"][1]["content"][0]["logprobs"] == logprobs);
  CHECK(server.service.jobs[0].scores);
  CHECK(server.service.jobs[0].top_tokens == 1);
}

TEST_CASE("what a response cannot do is refused by name") {
  const auto refused = [](const std::string& fields, const std::string& field, int status) {
    CAPTURE(fields);
    Server server;
    const HttpReply reply = server.ask(fields);
    CHECK(reply.status == status);
    CHECK(json_of(reply)["error"]["param"] == field);
    CHECK(server.service.jobs.empty());
  };
  refused(R"("stream":false)", "input", 400);
  refused(R"("input":3)", "input", 400);
  refused(R"("input":"a","previous_response_id":"resp_1")", "previous_response_id", 400);
  refused(R"("input":"a","conversation":"c")", "conversation", 400);
  refused(R"("input":"a","tools":[{"type":"function"}])", "tools[0].name", 400);
  refused(R"("input":"a","tool_choice":"required")", "tool_choice", 400);
  refused(R"("input":"a","background":true)", "background", 400);
  refused(R"("input":"a","text":{"format":{"type":"json_schema"}})", "text.format.schema", 400);
  refused(R"("input":"a","include":["file_search_call.results"])", "include", 400);
  refused(R"("input":"a","reasoning":{"effort":"much"})", "reasoning.effort", 400);
  refused(R"("input":"a","reasoning":{"summary":"much"})", "reasoning.summary", 400);
  refused(R"("input":"a","metadata":{"a":1})", "metadata", 400);
  refused(R"("input":"a","wishes":1)", "wishes", 400);
  refused(R"("input":"a","tools":[{"type":"web_search"}])", "tools[0].type", 400);
  refused(R"("input":[{"type":"function_call","name":"f"}])", "input[0].call_id", 400);
  refused(R"("input":[{"type":"web_search_call"}])", "input[0].type", 400);
  refused(R"("input":[{"type":"item_reference","id":"m"}])", "input[0].type", 400);
  refused(R"("input":[{"role":"critic","content":"a"}])", "input[0].role", 400);
  refused(R"("input":[{"role":"user"}])", "input[0].content", 400);
  refused(R"("input":[{"role":"user","content":[{"type":"input_image"}]}])", "input[0].content[0].type", 400);
  refused(R"("input":[{"role":"user","content":"a","mood":1}])", "input[0].mood", 400);
  Server server;
  const HttpReply reply = server.router.handle(post("/v1/responses", R"({"input":"a"})"));
  CHECK(reply.status == 400);
  CHECK(json_of(reply)["error"]["param"] == "model");
}

TEST_CASE("a client that leaves ends the answer") {
  for (const bool stream : {true, false}) {
    Server server;
    server.service.script = {Begun{7, 3}};  // goes on
    const HttpReply reply = server.ask(stream ? R"("input":"a","stream":true)" : R"("input":"a")");
    Recorder client;
    client.max_questions = 1;
    client.read(reply);
    CHECK(server.service.answers[0]->cancelled());
  }
  for (std::size_t pieces = 0; pieces < 9; ++pieces) {  // of 10
    Server server;
    const HttpReply reply = server.ask(R"("input":"a","stream":true)");
    Recorder client;
    client.max_pieces = pieces;
    reply.stream(client.connection());
    CHECK(client.pieces.size() == pieces);
    CHECK(server.service.answers[0]->cancelled());
  }
}

TEST_CASE("tokens of an input are counted without an answer") {
  Server server;
  const Json r = json_of(server.ask(R"("input":"Hi")", "/v1/responses/input_tokens"));
  CHECK(r["object"] == "response.input_tokens");
  CHECK(r["input_tokens"] == std::string("<user: Hi\nassistant:").size());  // BOS is one token
  CHECK(server.service.jobs.empty());
}

}  // namespace
}  // namespace mica::test::responses_test
