// SPDX-License-Identifier: Apache-2.0
//
// Tools in every API: what requests say about them reaches the chat template, and calls in answers have the
// form of the API, whole and in a stream.

#include "fake_service.hpp"
#include "mica_tools/http/router.hpp"
#include "mica_tools/routes/anthropic.hpp"
#include "mica_tools/routes/llama.hpp"
#include "mica_tools/routes/ollama.hpp"
#include "mica_tools/routes/openai_chat.hpp"
#include "mica_tools/routes/responses.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::tools_test {
namespace {

using namespace serve;

const std::string schema =
    R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},
  "required":["city"],"additionalProperties":false})";
const std::string openai_tools = R"("tools":[{"type":"function","function":{"name":"weather",
  "description":"The weather of a city","strict":true,"parameters":)" +
                                 schema + R"(}},{"type":"function","function":{"name":"now"}}])";
const std::string answer_text =
    "I look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bonn\", "
    "\"days\": 3}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": "
    "{}}\n</tool_call>";
const std::string weather_arguments = R"({"city": "Bonn", "days": 3})";

struct Server {
  FakeService service;
  Router router;

  explicit Server(const std::string& text = answer_text, std::size_t step = 3) {
    const RouteOptions options;
    add_openai_chat(router, service, options);
    add_anthropic(router, service, options);
    add_ollama(router, service, options);
    add_responses(router, service, options);
    add_llama(router, service, options);
    service.script = {Begun{7, 3}};
    for (std::size_t at = 0; at < text.size(); at += step)
      service.script.emplace_back(Text{text.substr(at, step), {}});
    service.script.emplace_back(FakeService::ended());
  }
  HttpReply ask(const std::string& path, const std::string& fields) const {
    return router.handle(post(path, R"({"model":"tiny",)" + fields + "}"));
  }
  /// The values of a stream whose texts arrive one by one; named events without their names.
  std::vector<Json> events(const std::string& path, const std::string& fields) {
    service.stepwise = true;
    const HttpReply reply = ask(path, fields);
    REQUIRE(reply.status == 200);
    Recorder recorder;
    recorder.between = [&] { service.step(); };
    recorder.read(reply);
    std::vector<Json> out;
    std::string text = recorder.text();
    const std::string mark = "data: ";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      std::string line = text.substr(at, end - at);
      at = end == std::string::npos ? text.size() : end + 1;
      if (line.starts_with(mark)) line.erase(0, mark.size());
      if (line.starts_with("{")) out.push_back(Json::parse(line));
    }
    return out;
  }
  [[nodiscard]] const Conversation& conversation() const { return service.tiny().conversations.back(); }
};

constexpr const char* hi = R"("messages":[{"role":"user","content":"Weather?"}],)";

/// Two calls and their results, as all APIs describe them.
void check_history(const Server& server) {
  const auto& messages = server.conversation().messages;
  REQUIRE(messages.size() == 5);
  CHECK(messages[1].role == "assistant");
  CHECK(messages[1].content == "I look.");
  REQUIRE(messages[1].calls.size() == 2);
  CHECK(messages[1].calls[0].name == "weather");
  CHECK(Json::parse(messages[1].calls[0].arguments) == Json::parse(weather_arguments));
  CHECK(messages[1].calls[1].name == "now");
  CHECK(messages[2].role == "tool");
  CHECK(messages[2].tool == "weather");
  CHECK(messages[2].call_id == messages[1].calls[0].id);
  CHECK(messages[2].content == "Rain");
  CHECK(messages[3].tool == "now");
  CHECK(messages[3].content == "Noon");
  CHECK(messages[4].content == "Thanks");
  CHECK_FALSE(server.conversation().continues);
}

}  // namespace

TEST_CASE("tools reach the template as OpenAI describes them, from every API") {
  const auto tools_after = [](const std::string& path, const std::string& fields) {
    const Server server;
    CAPTURE(path);
    const HttpReply reply = server.ask(path, fields);
    CAPTURE(reply.body);
    REQUIRE(reply.status == 200);
    CHECK((path == "/apply-template" || server.service.jobs.at(0).constraint != nullptr));
    return path == "/apply-template" ? Json() : Json::parse(server.conversation().tools);
  };
  const Json chat = tools_after("/v1/chat/completions", hi + openai_tools);
  REQUIRE(chat.size() == 2);
  CHECK(chat[0]["type"] == "function");
  CHECK(chat[0]["function"]["name"] == "weather");
  CHECK(chat[0]["function"]["description"] == "The weather of a city");
  CHECK(chat[0]["function"]["parameters"] == Json::parse(schema));
  CHECK(chat[1]["function"]["parameters"]["type"] == "object");
  CHECK(tools_after("/api/chat", R"("stream":false,)" + (hi + openai_tools)) == chat);
  CHECK(tools_after("/v1/messages", R"("max_tokens":9,)" + std::string(hi) +
                                        R"("tools":[{"name":"weather","description":"The weather of a city",
    "input_schema":)" + schema + R"(},{"name":"now","input_schema":{"type":"object","properties":{},
    "additionalProperties":false}}])") == chat);
  CHECK(tools_after("/v1/responses", R"("input":"Weather?","tools":[{"type":"function","name":"weather",
    "description":"The weather of a city","strict":true,"parameters":)" +
                                         schema +
                                         R"(},{"type":"function","name":"now","parameters":null}])") == chat);
  tools_after("/apply-template", hi + openai_tools);
}

TEST_CASE("calls of an answer have the form of OpenAI's chat, whole and as deltas of a stream") {
  const Server whole;
  const Json choice = json_of(whole.ask("/v1/chat/completions", hi + openai_tools))["choices"][0];
  CHECK(choice["finish_reason"] == "tool_calls");
  const Json& message = choice["message"];
  CHECK(message["content"] == "I look.");
  REQUIRE(message["tool_calls"].size() == 2);
  CHECK(message["tool_calls"][0]["type"] == "function");
  CHECK(message["tool_calls"][0]["id"].get<std::string>().starts_with("call_"));
  CHECK(message["tool_calls"][0]["function"]["name"] == "weather");
  CHECK(message["tool_calls"][0]["function"]["arguments"] == weather_arguments);
  CHECK_FALSE(message["tool_calls"][0].contains("index"));
  CHECK(message["tool_calls"][1]["function"] == Json{{"name", "now"}, {"arguments", "{}"}});
  CHECK(message["tool_calls"][1]["id"] != message["tool_calls"][0]["id"]);

  Server streamed;
  std::string content, names, reason;
  std::vector<std::string> arguments(2), ids(2);
  for (const Json& chunk : streamed.events("/v1/chat/completions", hi + openai_tools + R"(,"stream":true)")) {
    const Json& delta = chunk["choices"][0]["delta"];
    if (delta.contains("content") && delta["content"].is_string())
      content += delta["content"].get<std::string>();
    if (chunk["choices"][0]["finish_reason"].is_string()) reason = chunk["choices"][0]["finish_reason"];
    if (!delta.contains("tool_calls")) continue;
    for (const Json& call : delta["tool_calls"]) {
      const auto index = call["index"].get<std::size_t>();
      REQUIRE(index < 2);
      if (call.contains("id")) ids[index] += call["id"].get<std::string>();
      if (call["function"].contains("name")) names += call["function"]["name"].get<std::string>() + " ";
      arguments[index] += call["function"]["arguments"].get<std::string>();
    }
  }
  CHECK(content == "I look.");
  CHECK(names == "weather now ");
  CHECK(arguments[0] == weather_arguments);
  CHECK(arguments[1] == "{}");
  CHECK(ids[0].size() == 29);
  CHECK(reason == "tool_calls");

  const Server alone(answer_text.substr(answer_text.find('<')));
  const Json only = json_of(alone.ask("/v1/chat/completions", hi + openai_tools))["choices"][0]["message"];
  CHECK(only["content"].is_null());
  CHECK(only["tool_calls"].size() == 2);
}

TEST_CASE("an answer that is cut off within a call says so") {
  Server server(answer_text.substr(0, answer_text.find("onn")));
  server.service.script.back() = FakeService::ended(StopReason::length);
  const Json choice = json_of(server.ask("/v1/chat/completions", hi + openai_tools))["choices"][0];
  CHECK(choice["finish_reason"] == "length");
  CHECK(choice["message"]["tool_calls"][0]["function"]["arguments"] == "{\"city\": \"B");
}

TEST_CASE("an answer that is cut off within a mark has no part of it") {
  for (std::size_t size = 0; size < 60; ++size) {
    CAPTURE(size);
    Server server(answer_text.substr(answer_text.find('<'), size));
    server.service.script.back() = FakeService::ended(StopReason::length);
    const Json message = json_of(server.ask(
        "/v1/chat/completions", hi + openai_tools + R"(,"tool_choice":"required")"))["choices"][0]["message"];
    CHECK((message["content"].is_null() || message["content"] == ""));
    Server automatic("So: " + answer_text.substr(answer_text.find('<'), size));
    const Json text =
        json_of(automatic.ask("/v1/chat/completions", hi + openai_tools))["choices"][0]["message"];
    CHECK(text["content"].get<std::string>().find("<t") == std::string::npos);
  }
}

TEST_CASE("thoughts, text and calls are apart; without a place of their own, thoughts stay in the text") {
  const std::string text = "Hm.</think>\n" + answer_text;
  const std::string think = R"(,"chat_template_kwargs":{"enable_thinking":true})";
  const Server server(text);
  const Json message =
      json_of(server.ask("/v1/chat/completions", hi + openai_tools + think))["choices"][0]["message"];
  CHECK(message["reasoning_content"] == "Hm.");
  CHECK(message["content"] == "I look.");
  CHECK(message["tool_calls"].size() == 2);
  const Server plain(text);
  const Json joined =
      json_of(plain.ask("/v1/chat/completions", hi + openai_tools + think + R"(,"reasoning_format":"none")"));
  CHECK(joined["choices"][0]["message"]["content"] == "Hm.</think>\nI look.");
}

TEST_CASE("calls of an answer are blocks of Anthropic's messages") {
  const std::string fields = R"("max_tokens":9,)" + std::string(hi) +
                             R"("tools":[{"name":"weather","input_schema":)" + schema +
                             R"(},{"name":"now","input_schema":{"type":"object"}}])";
  const Server whole;
  const Json message = json_of(whole.ask("/v1/messages", fields));
  CHECK(message["stop_reason"] == "tool_use");
  REQUIRE(message["content"].size() == 3);
  CHECK(message["content"][0]["text"] == "I look.");
  CHECK(message["content"][1]["type"] == "tool_use");
  CHECK(message["content"][1]["name"] == "weather");
  CHECK(message["content"][1]["id"].get<std::string>().starts_with("toolu_"));
  CHECK(message["content"][1]["input"] == Json::parse(weather_arguments));
  CHECK(message["content"][2]["input"] == Json::object());

  Server streamed;
  std::string order, arguments;
  for (const Json& event : streamed.events("/v1/messages", fields + R"(,"stream":true)")) {
    const std::string type = event["type"];
    if (type == "content_block_start") order += event["content_block"]["type"].get<std::string>() + " ";
    if (type == "content_block_start" && event["content_block"]["type"] == "tool_use")
      CHECK(event["content_block"]["input"] == Json::object());
    if (type == "content_block_stop") order += "stop ";
    if (type == "content_block_delta" && event["delta"]["type"] == "input_json_delta" && event["index"] == 1)
      arguments += event["delta"]["partial_json"].get<std::string>();
    if (type == "message_delta") order += event["delta"]["stop_reason"];
  }
  CHECK(order == "text stop tool_use stop tool_use stop tool_use");
  CHECK(arguments == weather_arguments);
}

TEST_CASE("calls of an answer are whole in the lines of Ollama's API") {
  Server streamed;
  std::string content;
  Json calls = Json::array();
  for (const Json& line : streamed.events("/api/chat", hi + openai_tools)) {
    content += line["message"]["content"].get<std::string>();
    if (!line["message"].contains("tool_calls")) continue;
    for (const Json& call : line["message"]["tool_calls"]) calls.push_back(call);
  }
  CHECK(content == "I look.");
  REQUIRE(calls.size() == 2);
  CHECK(calls[0]["function"]["name"] == "weather");
  CHECK(calls[0]["function"]["arguments"] == Json::parse(weather_arguments));
  CHECK(calls[1]["function"]["index"] == 1);
  const Server whole;
  const Json one = json_of(whole.ask("/api/chat", R"("stream":false,)" + (hi + openai_tools)));
  CHECK(one["message"]["tool_calls"].size() == 2);
  CHECK(one["done_reason"] == "stop");
}

TEST_CASE("calls of an answer are items of a response") {
  const std::string fields =
      R"("input":"Weather?","tools":[{"type":"function","name":"weather","parameters":)" + schema +
      R"(},{"type":"function","name":"now"}])";
  const Server whole;
  const Json output = json_of(whole.ask("/v1/responses", fields))["output"];
  REQUIRE(output.size() == 3);
  CHECK(output[0]["content"][0]["text"] == "I look.");
  CHECK(output[1]["type"] == "function_call");
  CHECK(output[1]["status"] == "completed");
  CHECK(output[1]["name"] == "weather");
  CHECK(output[1]["arguments"] == weather_arguments);
  CHECK(output[1]["call_id"].get<std::string>().starts_with("call_"));
  CHECK_FALSE(output[1].contains("content"));
  CHECK(output[2]["arguments"] == "{}");

  Server streamed;
  std::string arguments, done;
  Json last;
  for (const Json& event : streamed.events("/v1/responses", fields + R"(,"stream":true)")) {
    if (event["type"] == "response.function_call_arguments.delta" && event["output_index"] == 1)
      arguments += event["delta"].get<std::string>();
    if (event["type"] == "response.function_call_arguments.done" && event["output_index"] == 1)
      done = event["arguments"];
    last = event;
  }
  CHECK(arguments == weather_arguments);
  CHECK(done == weather_arguments);
  CHECK(last["type"] == "response.completed");
  CHECK(last["response"]["output"].size() == 3);
}

TEST_CASE("earlier calls and their results reach the template from every API") {
  const Server chat;
  const std::string chat_history = R"("messages":[{"role":"user","content":"Weather?"},
    {"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"weather",
      "arguments":"{\"city\":\"Bonn\",\"days\":3}"}},{"id":"b","type":"function","function":{"name":"now",
      "arguments":""}}]},{"role":"tool","tool_call_id":"a","content":"Rain"},
    {"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"Noon"}]},
    {"role":"user","content":"Thanks"}],)";
  REQUIRE(chat.ask("/v1/chat/completions", chat_history + openai_tools).status == 200);
  check_history(chat);
  const Server ollama;
  REQUIRE(ollama
              .ask("/api/chat", R"("messages":[{"role":"user","content":"Weather?"},
    {"role":"assistant","content":"I look.","tool_calls":[{"function":{"name":"weather",
      "arguments":{"city":"Bonn","days":3}}},{"function":{"name":"now","arguments":{}}}]},
    {"role":"tool","tool_name":"weather","content":"Rain"},{"role":"tool","content":"Noon"},
    {"role":"user","content":"Thanks"}],)" +
                                    openai_tools)
              .status == 200);
  check_history(ollama);
  const Server anthropic;
  REQUIRE(anthropic
              .ask("/v1/messages", R"("max_tokens":9,"messages":[{"role":"user","content":"Weather?"},
    {"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"weather",
      "input":{"city":"Bonn","days":3}},{"type":"tool_use","id":"b","name":"now","input":{}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"Rain"},{"type":"tool_result",
      "tool_use_id":"b","content":[{"type":"text","text":"Noon"}]},{"type":"text","text":"Thanks"}]}])")
              .status == 200);
  check_history(anthropic);
  const Server responses;
  REQUIRE(responses
              .ask("/v1/responses", R"("input":[{"role":"user","content":"Weather?"},
    {"role":"assistant","content":[{"type":"output_text","text":"I look."}]},
    {"type":"function_call","id":"fc","call_id":"a","name":"weather","arguments":"{\"city\":\"Bonn\",\"days\":3}"},
    {"type":"function_call","call_id":"b","name":"now","arguments":"{}"},
    {"type":"function_call_output","call_id":"a","output":"Rain"},
    {"type":"function_call_output","call_id":"b","output":"Noon"},{"role":"user","content":"Thanks"}])")
              .status == 200);
  check_history(responses);
}

TEST_CASE("what a request says about tools and cannot have is refused by name") {
  struct Row {
    const char* path;
    std::string fields;
    const char* place;
  };
  const std::string chat = "/v1/chat/completions";
  const auto tool = [](const std::string& parameters) {
    return R"("tools":[{"type":"function","function":{"name":"f","parameters":)" + parameters + "}}]";
  };
  const Row rows[] = {
      {"", R"("tools":7)", "tools: must be an array"},
      {"", R"("tools":[{"type":"code_interpreter"}])", "tools[0].type: found 'code_interpreter'"},
      {"", R"("tools":[{"type":"function","function":{"name":""}}])",
       "tools[0].function.name: the name of the tool"},
      {"", R"("tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}])",
       "tools[1].function.name: the tool 'f'"},
      {"", tool(R"({"type":"array"})"), "tools: schema: no object meets"},
      {"", tool(R"({"properties":{"a":{"type":"string","pattern":"(?<=a)b"}}})"),
       "tools: schema: 'pattern' at #/$defs/f/properties/a: "},
      {"", tool("7"), "tools: "},
      {"", openai_tools + R"(,"tool_choice":"always")", "tool_choice: must be 'none'"},
      {"", openai_tools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})",
       "tool_choice: there is no tool 'g'"},
      {"", openai_tools + R"(,"grammar":"root ::= [a]")", "tools: a request has one grammar or schema"},
      {"", R"("functions":[{"name":"f"}])", "functions: is not supported"}};
  for (const Row& row : rows) {
    CAPTURE(row.fields);
    const Server server;
    const HttpReply reply = server.ask("/v1/chat/completions", hi + row.fields);
    CHECK(reply.status == 400);
    const std::string message = json_of(reply)["error"]["message"];
    CAPTURE(message);
    CHECK(message.starts_with(row.place));
    CHECK(server.service.jobs.empty());
  }
}

}  // namespace mica::test::tools_test
