// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/openai_text.hpp"

#include "fake_service.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::openai_text_test {
namespace {

using namespace serve;

struct Texts {
  FakeService service;
  Router router;

  Texts() { add_openai_text(router, service, {}); }
  /// A stream, whose events arrive one by one.
  std::string stream(const std::string& fields) {
    service.stepwise = true;
    const HttpReply reply = ask(fields + ",\"stream\":true");
    Recorder recorder;
    recorder.between = [&] { service.step(); };
    reply.stream(recorder.connection());
    return recorder.text();
  }
  HttpReply ask(const std::string& fields) const {
    return router.handle(post("/v1/completions", "{" + fields + "}"));
  }
};

TEST_CASE("prompts are texts, tokens or several of them") {
  struct Row {
    std::string prompt;
    std::vector<std::string> texts;
  };
  const Row rows[] = {{"\"ab\"", {"<s>ab"}},  {"[\"a\",\"b\"]", {"<s>a", "<s>b"}},
                      {"[97,98]", {"ab"}},    {"[[97],[98]]", {"a", "b"}},
                      {"[97,\"b\"]", {"ab"}}, {"[[97,\"b\"],\"c\"]", {"ab", "<s>c"}},
                      {"\"\"", {"<s>"}},      {"[97.0]", {"a"}}};
  for (const Row& row : rows) {
    CAPTURE(row.prompt);
    const Texts texts;
    const Json body = json_of(texts.ask("\"prompt\":" + row.prompt));
    REQUIRE(body["choices"].size() == row.texts.size());
    for (std::size_t i = 0; i < row.texts.size(); ++i)
      CHECK(texts.service.tiny().decode(texts.service.jobs[i].prompt.tokens) == row.texts[i]);
  }
}

TEST_CASE("a whole answer and a stream have OpenAI's older form") {
  Texts texts;
  const Json body = json_of(texts.ask("\"prompt\":\"a\",\"max_tokens\":4"));
  CHECK(body["object"] == "text_completion");
  CHECK(body["id"].get<std::string>().starts_with("cmpl-"));
  CHECK(body["choices"] ==
        Json::parse(R"([{"index":0,"text":"Hello world","logprobs":null,"finish_reason":"stop"}])"));
  CHECK(body["usage"]["total_tokens"] == 9);
  CHECK(texts.service.jobs[0].max_tokens == 4);
  const std::string stream = texts.stream("\"prompt\":\"a\",\"echo\":true");
  CHECK(stream.find(R"("choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}]})") !=
        std::string::npos);
  CHECK(stream.find("\"text\":\" world\"") != std::string::npos);
  CHECK(stream.find("\"timings\":{") != std::string::npos);
  CHECK(stream.ends_with("data: [DONE]\n\n"));
}

TEST_CASE("echo puts the prompt before the answer, for each prompt its own") {
  const Texts texts;
  const Json body = json_of(texts.ask("\"prompt\":[\"a\",\"b\"],\"n\":2,\"echo\":true"));
  REQUIRE(body["choices"].size() == 4);
  CHECK(body["choices"][1]["text"] == "aHello world");
  CHECK(body["choices"][3]["text"] == "bHello world");
  CHECK(body["choices"][3]["index"] == 3);
  CHECK(body["usage"]["prompt_tokens"] == 14);
  CHECK(body["usage"]["completion_tokens"] == 8);
}

TEST_CASE("probabilities have the places of their tokens in characters") {
  Texts texts;
  texts.service.script = {Begun{1, 0}, Text{"é", {{1, -0.5f, "\xC3\xA9", {{1, -0.5f, "\xC3\xA9", {}}}}}},
                          Text{"b", {{2, -1, "b", {}}}}, FakeService::ended()};
  const Json logprobs = json_of(texts.ask("\"prompt\":\"a\",\"logprobs\":1"))["choices"][0]["logprobs"];
  CHECK(logprobs ==
        Json::parse(R"({"tokens":["é","b"],"token_logprobs":[-0.5,-1.0],"top_logprobs":[{"é":-0.5},{}],
    "text_offset":[0,1]})"));
  CHECK(texts.stream("\"prompt\":\"a\",\"logprobs\":1").find("\"text_offset\":[1]") != std::string::npos);
}

TEST_CASE("prompts and options that cannot be are refused by name") {
  struct Row {
    std::string fields;
    int status;
    const char* param;
  };
  const Row rows[] = {
      {"", 400, "prompt"},
      {"\"prompt\":7", 400, "prompt"},
      {"\"prompt\":{}", 400, "prompt.prompt_string"},
      {R"("prompt":{"prompt_string":"a","multimodal_data":["b"]})", 400, "prompt.multimodal_data"},
      {"\"prompt\":[]", 400, "prompt"},
      {"\"prompt\":[[]]", 400, "prompt[0]"},
      {"\"prompt\":[true]", 400, "prompt[0]"},
      {"\"prompt\":[97,true]", 400, "prompt"},
      {"\"prompt\":[256]", 400, "prompt"},
      {"\"prompt\":[-1]", 400, "prompt"},
      {"\"prompt\":[1.5]", 400, "prompt"},
      {"\"prompt\":[1e300]", 400, "prompt"},
      {"\"prompt\":\"a\",\"best_of\":2", 400, "best_of"},
      {"\"prompt\":\"a\",\"suffix\":\"b\"", 400, "suffix"},
      {"\"prompt\":\"a\",\"echo\":true,\"logprobs\":1", 400, "logprobs"},
      {"\"prompt\":\"a\",\"logprobs\":21", 400, "logprobs"},
      {"\"prompt\":\"a\",\"logprobs\":true", 400, "logprobs"},
      {"\"prompt\":\"a\",\"messages\":[]", 400, "messages"}};
  const Texts texts;
  for (const Row& row : rows) {
    CAPTURE(row.fields);
    const HttpReply reply = texts.ask(row.fields);
    CHECK(reply.status == row.status);
    CHECK(json_of(reply)["error"]["param"] == row.param);
  }
  CHECK(texts.ask("\"prompt\":[\"a\",\"b\"],\"n\":65").status == 400);
  CHECK(texts.service.jobs.empty());
  CHECK(texts.ask("\"prompt\":\"a\",\"best_of\":1,\"suffix\":\"\"").status == 200);
}

}  // namespace
}  // namespace mica::test::openai_text_test
