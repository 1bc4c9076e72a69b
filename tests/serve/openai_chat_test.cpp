// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/openai_chat.hpp"

#include "fake_service.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace mica::test::openai_chat_test {
namespace {

using namespace serve;
using namespace std::chrono_literals;

constexpr const char* path = "/v1/chat/completions";

struct Chat {
  FakeService service;
  Router router;

  explicit Chat(RouteOptions options = {}) { add_openai_chat(router, service, options); }
  /// With one message of a user, and these fields.
  HttpReply ask(const std::string& fields = "") const {
    return router.handle(post(path, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]" +
                                        (fields.empty() ? "" : "," + fields) + "}"));
  }
  HttpReply send(const std::string& messages) const {
    return router.handle(post(path, "{\"messages\":" + messages + "}"));
  }
};

/// The values of a stream; the last one, [DONE], is left out and must be there.
std::vector<Json> chunks_of(Chat& chat, const std::string& fields) {
  chat.service.stepwise = true;
  const HttpReply reply = chat.ask(fields);
  chat.service.stepwise = false;
  CHECK(reply.status == 200);
  CHECK(reply.type == "text/event-stream");
  CHECK(reply.headers.get("cache-control") == "no-cache");
  CHECK(reply.headers.get("x-accel-buffering") == "no");
  Recorder recorder;
  recorder.between = [&] { chat.service.step(); };
  reply.stream(recorder.connection());
  REQUIRE(!recorder.pieces.empty());
  CHECK(recorder.pieces.back() == "data: [DONE]\n\n");
  recorder.pieces.pop_back();
  std::vector<Json> out;
  for (const std::string& piece : recorder.pieces) {
    REQUIRE(piece.starts_with("data: "));
    REQUIRE(piece.ends_with("\n\n"));
    out.push_back(Json::parse(piece.substr(6)));
  }
  return out;
}

TEST_CASE("a whole answer has a message, the count of tokens and the time they took") {
  const Chat chat;
  const HttpReply reply =
      chat.ask("\"model\":\"tiny\",\"user\":\"u\",\"store\":true,\"metadata\":{\"a\":\"b\"}");
  CHECK(reply.status == 200);
  CHECK(reply.type == "application/json");
  const Json body = json_of(reply);
  CHECK(body["id"].get<std::string>().starts_with("chatcmpl-"));
  CHECK(body["object"] == "chat.completion");
  CHECK(body["model"] == "tiny");
  REQUIRE(body["choices"].size() == 1);
  CHECK(body["choices"][0] == Json::parse(R"({"index":0,"message":{"role":"assistant","content":"Hello world",
    "refusal":null},"logprobs":null,"finish_reason":"stop"})"));
  CHECK(body["usage"] == Json::parse(R"({"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,
    "prompt_tokens_details":{"cached_tokens":3}})"));
  CHECK(body["timings"] ==
        Json::parse(R"({"cache_n":3,"prompt_n":4,"prompt_ms":500.0,"prompt_per_token_ms":125.0,
    "prompt_per_second":8.0,"predicted_n":2,"predicted_ms":250.0,"predicted_per_token_ms":125.0,
    "predicted_per_second":8.0})"));
  REQUIRE(chat.service.jobs.size() == 1);
  CHECK(chat.service.tiny().decode(chat.service.jobs[0].prompt.tokens) == "<s>user: Hi\nassistant:");
}

TEST_CASE("the tokens of a prompt are counted without an answer, and verbose shows its text") {
  Chat chat;
  const HttpReply counted = chat.router.handle(
      post(std::string(path) + "/input_tokens", R"({"messages":[{"role":"user","content":"Hi"}]})"));
  CHECK(json_of(counted)["input_tokens"] == std::string("<s>user: Hi\nassistant:").size() - 2);
  CHECK(chat.service.jobs.empty());
  CHECK(json_of(chat.ask("\"verbose\":true"))["__verbose"]["prompt"] == "user: Hi\nassistant:");
  CHECK_FALSE(json_of(chat.ask("\"verbose\":false")).contains("__verbose"));
  CHECK(chunks_of(chat, R"("stream":true,"verbose":true)").back().contains("__verbose"));
}

TEST_CASE("a stream has a role, pieces, an end with counts, and [DONE]") {
  Chat chat;
  const auto chunks = chunks_of(chat, ("\"stream\":true"));
  REQUIRE(chunks.size() == 4);
  CHECK(
      chunks[0]["choices"] ==
      Json::parse(
          R"([{"index":0,"delta":{"role":"assistant","content":null},"logprobs":null,"finish_reason":null}])"));
  CHECK(chunks[1]["choices"] ==
        Json::parse(R"([{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}])"));
  CHECK(chunks[2]["choices"][0]["delta"] == Json{{"content", " world"}});
  CHECK(chunks[3]["choices"] ==
        Json::parse(R"([{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}])"));
  CHECK(chunks[3]["usage"]["prompt_tokens_details"]["cached_tokens"] == 3);
  CHECK(chunks[3]["timings"]["predicted_n"] == 2);
  for (const Json& chunk : chunks) {
    CHECK(chunk["id"] == chunks[0]["id"]);
    CHECK(chunk["object"] == "chat.completion.chunk");
    CHECK(chunk.contains("usage") == (&chunk == &chunks[3]));
  }
}

TEST_CASE("include_usage moves the counts into a chunk without choices") {
  Chat chat;
  const auto chunks = chunks_of(chat, (R"("stream":true,"stream_options":{"include_usage":true})"));
  REQUIRE(chunks.size() == 5);
  CHECK_FALSE(chunks[3].contains("usage"));
  CHECK(chunks[4]["choices"] == Json::array());
  CHECK(chunks[4]["usage"]["total_tokens"] == 9);
  CHECK(chunks[4]["timings"]["cache_n"] == 3);
  CHECK(chat.ask(R"("stream_options":{"include_usage":true})").status == 400);
  CHECK(chat.ask(R"("stream":true,"stream_options":{"x":true})").status == 400);
}

TEST_CASE("several answers have seeds that follow each other, and their own index") {
  Chat chat;
  chat.service.scripts[1] = {Begun{7, 7}, Text{"B", {}}, FakeService::ended(StopReason::length)};
  const auto chunks = chunks_of(chat, ("\"stream\":true,\"n\":2,\"seed\":41"));
  REQUIRE(chat.service.jobs.size() == 2);
  CHECK(chat.service.jobs[0].sampler.seed == 41);
  CHECK(chat.service.jobs[1].sampler.seed == 42);
  std::string texts[2], reasons[2];
  for (const Json& chunk : chunks) {
    const Json& choice = chunk["choices"][0];
    const std::size_t i = choice["index"];
    if (choice["delta"].contains("content") && !choice["delta"]["content"].is_null())
      texts[i] += choice["delta"]["content"];
    if (!choice["finish_reason"].is_null()) reasons[i] += choice["finish_reason"];
  }
  CHECK(texts[0] == "Hello world");
  CHECK(texts[1] == "B");
  CHECK(reasons[0] == "stop");
  CHECK(reasons[1] == "length");
  CHECK(chunks.back()["usage"]["prompt_tokens"] == 7);  // once
  CHECK(chunks.back()["usage"]["completion_tokens"] == 4);
  CHECK(json_of(chat.ask("\"n\":3"))["choices"].size() == 3);
  CHECK(chat.ask("\"n\":0").status == 400);
  CHECK(chat.ask("\"n\":129").status == 400);
}

TEST_CASE("thoughts are apart from the answer, whole and in a stream, unless they are wanted raw") {
  Chat chat;
  const std::vector<Event> thinks = {Begun{1, 0},          Text{"<thi", {}},       Text{"nk>\nHm", {}},
                                     Text{"m.\n</th", {}}, Text{"ink>\n\nFo", {}}, Text{"ur", {}},
                                     FakeService::ended()};
  chat.service.script = thinks;
  const Json message = json_of(chat.ask())["choices"][0]["message"];
  CHECK(message["reasoning_content"] == "Hmm.");
  CHECK(message["content"] == "Four");
  const Json raw = json_of(chat.ask("\"reasoning_format\":\"none\""))["choices"][0]["message"];
  CHECK(raw["content"] == "<think>\nHmm.\n</think>\n\nFour");
  CHECK_FALSE(raw.contains("reasoning_content"));
  CHECK(chat.ask("\"reasoning_format\":\"x\"").status == 400);

  const auto chunks = chunks_of(chat, ("\"stream\":true,\"reasoning_format\":\"deepseek\""));
  std::string thoughts, answer;
  for (const Json& chunk : chunks) {
    const Json& delta = chunk["choices"][0]["delta"];
    thoughts += delta.value("reasoning_content", "");
    if (delta.contains("content") && !delta["content"].is_null()) answer += delta["content"];
  }
  CHECK(thoughts == "Hmm.");
  CHECK(answer == "Four");

  chat.service.script = {Begun{1, 0}, Text{"So\n</think>\nYes", {}}, FakeService::ended()};
  const Json open =
      json_of(chat.ask(R"("chat_template_kwargs":{"enable_thinking":true})"))["choices"][0]["message"];
  CHECK(open["reasoning_content"] == "So");
  CHECK(open["content"] == "Yes");
}

TEST_CASE("probabilities follow their text, also while a mark is held back") {
  Chat chat;
  const auto piece = [](TokenId id, const char* bytes, float p) {
    return ScoredPiece{id, p, bytes, {{id, p, bytes, {}}, {9, -INFINITY, "z", {}}}};
  };
  chat.service.script = {Begun{1, 0}, Text{"<", {piece(60, "<", -0.5f)}}, Text{"b", {piece(98, "b", -0.25f)}},
                         FakeService::ended()};
  const auto chunks = chunks_of(chat, ("\"stream\":true,\"logprobs\":true,\"top_logprobs\":2"));
  CHECK(chat.service.jobs[0].scores);
  CHECK(chat.service.jobs[0].top_tokens == 2);
  REQUIRE(chunks.size() == 3);
  const Json& choice = chunks[1]["choices"][0];
  CHECK(choice["delta"]["content"] == "<b");
  REQUIRE(choice["logprobs"]["content"].size() == 2);
  CHECK(choice["logprobs"]["content"][0] ==
        Json::parse(R"({"token":"<","logprob":-0.5,"bytes":[60],"top_logprobs":[
          {"token":"<","logprob":-0.5,"bytes":[60]},{"token":"z","logprob":-9999.0,"bytes":[122]}]})"));
  const Json whole = json_of(chat.ask("\"logprobs\":true"))["choices"][0];
  CHECK(whole["logprobs"]["content"].size() == 2);
  CHECK(chat.ask("\"top_logprobs\":2").status == 400);
  CHECK(chat.ask("\"logprobs\":true,\"top_logprobs\":21").status == 400);
}

TEST_CASE("options reach the job, and defaults are the server's") {
  RouteOptions options;
  options.sampler.temperature = 0.25f;
  options.max_tokens = 99;
  Chat chat(options);
  CHECK(chat.ask().status == 200);
  CHECK(chat.service.jobs[0].sampler.temperature == 0.25f);
  CHECK(chat.service.jobs[0].max_tokens == 99);
  CHECK(
      chat.ask(
              R"("temperature":0,"top_p":0.5,"top_k":-1,"min_p":0.1,"typical_p":0.9,"seed":7,"stop":["a","b"],
    "max_tokens":5,"max_completion_tokens":6,"frequency_penalty":1,"presence_penalty":-1,"repeat_penalty":1.5,
    "repeat_last_n":-1,"mirostat":2,"mirostat_tau":3,"mirostat_eta":0.5,"dry_multiplier":0.75,"dry_base":2,
    "dry_allowed_length":3,"dry_penalty_last_n":16,"dry_sequence_breakers":["ab"],"xtc_probability":0.5,
    "xtc_threshold":0.25,"dynatemp_range":0.5,"dynatemp_exponent":2,"top_n_sigma":1,"ignore_eos":true,
    "logit_bias":{"65":-100,"hi":2},"samplers":["top_k","temperature"],"tools":[],"response_format":{"type":"text"}
  )")
          .status == 200);
  const Job& job = chat.service.jobs[1];
  const sample::SamplerOptions& s = job.sampler;
  CHECK((s.temperature == 0 && s.top_p == 0.5f && s.top_k == 0 && s.min_p == 0.1f && s.typical == 0.9f));
  CHECK((s.seed == 7 && s.frequency_penalty == 1 && s.presence_penalty == -1 && s.repeat_penalty == 1.5f));
  CHECK((s.repeat_last_n == 512 && s.mirostat == 2 && s.mirostat_tau == 3 && s.mirostat_eta == 0.5f));
  CHECK((s.dry.multiplier == 0.75f && s.dry.base == 2 && s.dry.allowed_length == 3 && s.dry.last_n == 16));
  CHECK(s.dry.breakers == std::vector<std::vector<TokenId>>{{'a', 'b'}});
  CHECK((s.xtc_probability == 0.5f && s.xtc_threshold == 0.25f && s.dynatemp_range == 0.5f));
  CHECK((s.dynatemp_exponent == 2 && s.top_n_sigma == 1));
  CHECK(s.order == std::vector{sample::Stage::top_k, sample::Stage::temperature});
  REQUIRE(s.logit_bias.size() == 3);
  CHECK((s.logit_bias[0].id == 65 && s.logit_bias[0].bias == -100));
  CHECK((s.logit_bias[1].id == 'h' && s.logit_bias[2].id == 'i' && s.logit_bias[2].bias == 2));
  CHECK(job.stop == std::vector<std::string>{"a", "b"});
  CHECK(job.max_tokens == 6);
  CHECK_FALSE(job.stop_at_end);

  CHECK(chat.ask(R"("stop":"x","logit_bias":[[66,false],["a",1]],"max_tokens":-1,"seed":-1)").status == 200);
  CHECK(chat.service.jobs[2].stop == std::vector<std::string>{"x"});
  CHECK(std::isinf(chat.service.jobs[2].sampler.logit_bias[0].bias));
  CHECK(chat.service.jobs[2].max_tokens == 0);
  CHECK(chat.ask().status == 200);
  CHECK(chat.service.jobs[2].sampler.seed != chat.service.jobs[3].sampler.seed);
}

TEST_CASE("a request without a seed has that of the server") {
  RouteOptions options;
  options.sampler.seed = 0;
  Chat chat(options);
  for (const char* fields : {"", "\"seed\":7", "\"seed\":-1"}) CHECK(chat.ask(fields).status == 200);
  CHECK(chat.service.jobs[0].sampler.seed == 0);
  CHECK(chat.service.jobs[1].sampler.seed == 7);
  CHECK(chat.service.jobs[2].sampler.seed > 0);
}

TEST_CASE("each option that is wrong or unknown is refused by name, and nothing is submitted") {
  struct Row {
    std::string field;
    int status;
    const char* param;
  };
  const Row rows[] = {
      {"\"temperature\":\"hot\"", 400, "temperature"},
      {"\"temperature\":-2", 400, "temperature"},
      {"\"temperature\":1e300", 400, "temperature"},
      {"\"top_p\":1.5", 400, "top_p"},
      {"\"top_k\":1.5", 400, "top_k"},
      {"\"top_k\":99999999999999999999", 400, "top_k"},
      {"\"seed\":1e300", 400, "seed"},
      {"\"seed\":\"1\"", 400, "seed"},
      {"\"max_tokens\":0", 400, "max_tokens"},
      {"\"max_completion_tokens\":-3", 400, "max_completion_tokens"},
      {"\"stop\":\"\"", 400, "stop"},
      {"\"stop\":[1]", 400, "stop"},
      {"\"stop\":{}", 400, "stop"},
      {R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])", 400, "stop"},
      {"\"stream\":1", 400, "stream"},
      {"\"model\":7", 400, "model"},
      {"\"logit_bias\":7", 400, "logit_bias"},
      {"\"logit_bias\":{\"256\":1}", 400, "logit_bias"},
      {"\"logit_bias\":{\"99999999999999999999999\":1}", 400, "logit_bias"},
      {"\"logit_bias\":{\"1\":\"x\"}", 400, "logit_bias"},
      {"\"logit_bias\":{\"1\":1e10}", 400, "logit_bias"},
      {"\"logit_bias\":[[1]]", 400, "logit_bias"},
      {"\"logit_bias\":[[-1,1]]", 400, "logit_bias"},
      {"\"logit_bias\":[[[],1]]", 400, "logit_bias"},
      {"\"samplers\":[]", 400, "samplers"},
      {"\"samplers\":[\"x\"]", 400, "samplers"},
      {"\"samplers\":[\"top_k\",\"top_k\"]", 400, "samplers"},
      {"\"dry_sequence_breakers\":[\"\"]", 400, "dry_sequence_breakers"},
      {"\"dry_sequence_breakers\":\"x\"", 400, "dry_sequence_breakers"},
      {"\"mirostat\":3", 400, "mirostat"},
      {"\"min_keep\":2", 400, "min_keep"},
      {"\"tools\":[{\"type\":\"function\"}]", 400, "tools[0].name"},
      {"\"tool_choice\":\"required\"", 400, "tool_choice"},
      {"\"response_format\":{\"type\":\"xml\"}", 400, "response_format.type"},
      {"\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"$ref\":\"x\"}}}", 400,
       "response_format.json_schema.schema"},
      {"\"response_format\":{\"type\":\"json_object\"},\"grammar\":\"root ::= [a]\"", 400, "response_format"},
      {"\"modalities\":[\"audio\"]", 400, "modalities"},
      {"\"grammar\":\"root ::= x\"", 400, "grammar"},
      {"\"json_schema\":7", 400, "json_schema"},
      {"\"lora\":[{}]", 400, "lora"},
      {"\"id_slot\":3", 400, "id_slot"},
      {"\"timings_per_token\":true", 400, "timings_per_token"},
      {"\"chat_template_kwargs\":[]", 400, "chat_template_kwargs"},
      {"\"chat_template_kwargs\":{\"enable_thinking\":1}", 400, "chat_template_kwargs.enable_thinking"},
      {"\"reasoning_effort\":\"huge\"", 400, "reasoning_effort"},
      {"\"temprature\":1", 400, "temprature"},
      {"\"web_search_options\":{}", 400, "web_search_options"}};
  const Chat chat;
  for (const Row& row : rows) {
    CAPTURE(row.field);
    const HttpReply reply = chat.ask(row.field);
    CHECK(reply.status == row.status);
    const Json error = json_of(reply)["error"];
    CHECK(error["param"] == row.param);
    CHECK(error["message"].get<std::string>().starts_with(row.param));
  }
  CHECK(chat.service.jobs.empty());
  CHECK(chat.ask("\"model\":\"gpt\"").status == 404);
  CHECK(chat.ask("\"temperature\":null,\"tools\":null,\"unknown\":null").status == 200);
}

TEST_CASE(
    "messages have texts or parts of text, of five roles, and may end with the beginning of the answer") {
  const Chat chat;
  CHECK(
      chat.send(R"([{"role":"system","content":"S"},{"role":"developer","content":[{"type":"text","text":"a"},
    {"type":"text","text":"b"}]},{"role":"user","content":"U","name":"n"},
    {"role":"assistant","content":null,"reasoning_content":"T","tool_calls":[]},
    {"role":"tool","content":"R","tool_call_id":"1"},{"role":"assistant","content":"Begin"}])")
          .status == 200);
  const Conversation& seen = chat.service.tiny().conversations.back();
  REQUIRE(seen.messages.size() == 6);
  CHECK(seen.messages[1].content == "ab");
  CHECK(seen.messages[3].thoughts == "T");
  CHECK(seen.messages[4].role == "tool");
  CHECK(seen.continues);
  CHECK_FALSE(seen.thinking);
  CHECK(chat.ask(R"("chat_template_kwargs":{"enable_thinking":false,"x":[1]},"reasoning_effort":"low")")
            .status == 200);
  const Conversation& variables = chat.service.tiny().conversations.back();
  CHECK(variables.thinking == false);
  CHECK(variables.variables == R"({"x":[1],"reasoning_effort":"low"})");
  CHECK_FALSE(variables.continues);
  CHECK(chat.ask(R"("reasoning_effort":"none")").status == 200);
  CHECK(chat.service.tiny().conversations.back().thinking == false);
  CHECK(chat.ask(R"("reasoning_effort":"high")").status == 200);
  CHECK(chat.service.tiny().conversations.back().thinking == true);

  struct Row {
    std::string messages;
    int status;
    const char* param;
  };
  const Row rows[] = {
      {"[]", 400, "messages"},
      {"{}", 400, "messages"},
      {"7", 400, "messages"},
      {"null", 400, "messages"},
      {"[7]", 400, "messages[0]"},
      {"[[]]", 400, "messages[0]"},
      {R"([{"content":"x"}])", 400, "messages[0].role"},
      {R"([{"role":1,"content":"x"}])", 400, "messages[0].role"},
      {R"([{"role":"wizard","content":"x"}])", 400, "messages[0].role"},
      {R"([{"role":"user"}])", 400, "messages[0].content"},
      {R"([{"role":"assistant"}])", 400, "messages[0].content"},
      {R"([{"role":"user","content":7}])", 400, "messages[0].content"},
      {R"([{"role":"user","content":[7]}])", 400, "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", 400, "messages[0].content[0].text"},
      {R"([{"role":"user","content":[{"type":"text","text":"a","x":1}]}])", 400, "messages[0].content[0].x"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}])", 400,
       "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"input_audio"}]}])", 400, "messages[0].content[0].type"},
      {R"([{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1"}]}])", 400,
       "messages[1].tool_calls[0].function"},
      {R"([{"role":"user","content":"x","tool_call_id":"1"}])", 400, "messages[0].tool_call_id"}};
  for (const Row& row : rows) {
    CAPTURE(row.messages);
    const HttpReply reply = chat.send(row.messages);
    CHECK(reply.status == row.status);
    CHECK(json_of(reply)["error"]["param"] == row.param);
  }
}

TEST_CASE("a client that leaves a stream cancels its answers; a failure is an event, and no [DONE] follows") {
  Chat chat;
  {
    const HttpReply reply = chat.ask("\"stream\":true,\"n\":2");
    Recorder recorder;
    recorder.max_pieces = 1;
    reply.stream(recorder.connection());
    CHECK(recorder.pieces.size() == 1);
    CHECK(chat.service.answers[0]->cancelled());
    CHECK(chat.service.answers[1]->cancelled());
  }
  chat.service.script = {Begun{1, 0}, Text{"a", {}}, Failed{"disk"}};
  const std::string failed = body_of(chat.ask("\"stream\":true"));
  CHECK(failed.ends_with(
      "data: {\"error\":{\"code\":500,\"message\":\"disk\",\"type\":\"server_error\",\"param\":null}}\n\n"));
  CHECK(json_of(chat.ask())["error"]["message"] == "disk");
  CHECK(made(chat.ask()).status == 500);
  chat.service.script = {Begun{1, 0}, FakeService::ended(StopReason::cancelled)};
  CHECK(json_of(chat.ask())["error"]["type"] == "unavailable_error");
}

TEST_CASE("what submit() refuses has its status, also where a stream was asked for") {
  Chat chat;
  chat.service.refusal = Refusal(Cause::busy, "full");
  chat.service.refusal->retry_after = 3;
  for (const char* fields : {"", "\"stream\":true"}) {
    const HttpReply reply = chat.ask(fields);
    CHECK(reply.status == 429);
    CHECK(reply.headers.get("retry-after") == "3");
    CHECK(json_of(reply)["error"]["type"] == "rate_limit_error");
  }
}

TEST_CASE("other kinds of models are answered with 501") {
  const Chat chat;
  for (const char* other : {"/v1/moderations", "/v1/audio/speech"})
    CHECK(json_of(chat.router.handle(post(other, "{}")))["error"]["type"] == "not_supported_error");
}

}  // namespace
}  // namespace mica::test::openai_chat_test
