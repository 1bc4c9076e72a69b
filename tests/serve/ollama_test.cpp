// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/ollama.hpp"

#include "events.hpp"

#include <doctest/doctest.h>

namespace mica::test::ollama_test {
namespace {

using namespace serve;
using std::chrono::seconds;

struct Server {
  FakeService service;
  Router router;

  Server() {
    RouteOptions options;
    options.version = "1.2.3";
    add_ollama(router, service, options);
  }
  [[nodiscard]] HttpReply ask(const std::string& path, const std::string& fields) {
    return router.handle(post(path, R"({"model":"tiny")" + fields + "}"));
  }
  [[nodiscard]] HttpReply chat(const std::string& fields = "") {
    return ask("/api/chat", R"(,"messages":[{"role":"user","content":"Hi"}])" + fields);
  }
  [[nodiscard]] Json get(const std::string& path) {
    return json_of(router.handle({"GET", path, {}, {}, {}}));
  }
  [[nodiscard]] const Conversation& conversation() const { return service.tiny().conversations.back(); }
};

[[nodiscard]] std::vector<Json> jsons_of(const HttpReply& reply) {
  std::vector<Json> out;
  for (const std::string& line : lines_of(body_of(reply))) out.push_back(Json::parse(line));
  return out;
}

TEST_CASE("a chat is lines of JSON, the last one with counters") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"<think>so</think>", {}}, Begun{7, 3}, Text{"Four", {}},
                           FakeService::ended()};
  const HttpReply reply = server.chat();
  CHECK(reply.type == "application/x-ndjson");
  const auto lines = jsons_of(reply);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["message"] == Json::parse(R"({"role":"assistant","content":"","thinking":"so"})"));
  CHECK(lines[1]["message"] == Json::parse(R"({"role":"assistant","content":"Four"})"));
  for (const Json& line : lines) {
    CHECK(line["model"] == "tiny");
    CHECK(line["created_at"].get<std::string>().ends_with("Z"));
    CHECK(line["done"] == (&line == &lines.back()));
  }
  const Json& last = lines.back();
  CHECK(last["message"]["content"] == "");
  CHECK(last["done_reason"] == "stop");
  CHECK(last["prompt_eval_count"] == 7);
  CHECK(last["prompt_eval_duration"] == 500'000'000);
  CHECK(last["eval_count"] == 2);
  CHECK(last["eval_duration"] == 250'000'000);
  CHECK(last["total_duration"].get<std::int64_t>() >= last["load_duration"].get<std::int64_t>());
  CHECK(last["load_duration"].get<std::int64_t>() >= 0);
}

TEST_CASE("without a stream an answer is one object") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"<think>so</think>Four", {}},
                           FakeService::ended(StopReason::length)};
  const Json chat = json_of(server.chat(R"(,"stream":false)"));
  CHECK(chat["message"] == Json::parse(R"({"role":"assistant","content":"Four","thinking":"so"})"));
  CHECK(chat["done"] == true);
  CHECK(chat["done_reason"] == "length");
  CHECK(chat["eval_count"] == 2);
  const Json text = json_of(
      server.ask("/api/generate", R"(,"prompt":"2+2?","system":"Be brief.","think":false,"stream":false)"));
  CHECK(text["response"] == "Four");
  CHECK(text["thinking"] == "so");
  CHECK_FALSE(text.contains("message"));
  REQUIRE(server.conversation().messages.size() == 2);
  CHECK(server.conversation().messages[0].content == "Be brief.");
  CHECK(server.conversation().thinking == false);
}

TEST_CASE("a raw prompt has no template, and thoughts stay in its answer") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"<think>so</think>Four", {}}, FakeService::ended()};
  const Json r = json_of(server.ask("/api/generate", R"(,"prompt":"[INST]Hi","raw":true,"stream":false)"));
  CHECK(r["response"] == "<think>so</think>Four");
  CHECK(server.service.jobs[0].prompt.tokens.size() == 1 + std::string("[INST]Hi").size());
  CHECK(server.service.tiny().conversations.empty());
}

TEST_CASE("options are those of Ollama") {
  Server server;
  (void)body_of(server.chat(R"(,"options":{"num_predict":5,"num_ctx":512,"stop":["a","b"],"seed":42,
    "temperature":0.25,"top_k":7,"top_p":0.5,"min_p":0.125,"typical_p":0.75,"repeat_last_n":8,
    "repeat_penalty":1.5,"presence_penalty":0.25,"frequency_penalty":0.5,"mirostat":2,"mirostat_tau":4,
    "mirostat_eta":0.25,"penalize_newline":true,"num_gpu":1,"num_thread":4,"use_mmap":true,"num_keep":5})"));
  const Job& job = server.service.jobs.at(0);
  const sample::SamplerOptions& s = job.sampler;
  CHECK(job.max_tokens == 5);
  CHECK(job.stop == std::vector<std::string>{"a", "b"});
  CHECK(s.seed == 42);
  CHECK(s.temperature == 0.25f);
  CHECK(s.top_k == 7);
  CHECK(s.top_p == 0.5f);
  CHECK(s.min_p == 0.125f);
  CHECK(s.typical == 0.75f);
  CHECK(s.repeat_last_n == 8);
  CHECK(s.repeat_penalty == 1.5f);
  CHECK(s.presence_penalty == 0.25f);
  CHECK(s.frequency_penalty == 0.5f);
  CHECK(s.mirostat == 2);
  (void)body_of(server.chat(R"(,"options":{"num_predict":-1},"think":"low")"));
  CHECK(server.service.jobs.at(1).max_tokens == 0);
  CHECK(server.conversation().variables == R"({"reasoning_effort":"low"})");
}

TEST_CASE("a request without a prompt loads or unloads the model") {
  Server server;
  const Json loaded = json_of(server.ask("/api/generate", R"(,"keep_alive":"10m")"));
  CHECK(loaded["response"] == "");
  CHECK(loaded["done"] == true);
  CHECK(loaded["done_reason"] == "load");
  CHECK(server.service.asked == std::vector<std::string>{"tiny"});
  REQUIRE(server.service.kept.size() == 1);
  CHECK(server.service.kept[0].second == seconds(600));
  const Json unloaded = json_of(server.ask("/api/chat", R"(,"messages":[],"keep_alive":0)"));
  CHECK(unloaded["message"]["content"] == "");
  CHECK(unloaded["done_reason"] == "unload");
  CHECK_FALSE(server.service.loaded);
  CHECK(server.service.asked.size() == 1);  // it was not loaded for that
  CHECK(server.service.jobs.empty());
}

TEST_CASE("keep_alive is seconds, or a time as Go writes it") {
  const auto read = [](const char* json) { return read_keep_alive(Json::parse(json)).time; };
  CHECK(read("300") == seconds(300));
  CHECK(read("0.5") == seconds(1));
  CHECK(read(R"("300")") == seconds(300));
  CHECK(read(R"("5m")") == seconds(300));
  CHECK(read(R"("1h30m")") == seconds(5400));
  CHECK(read(R"("1.5h")") == seconds(5400));
  CHECK(read(R"("200ms")") == seconds(1));
  CHECK(read(R"("0")") == seconds(0));
  CHECK(read("0") == seconds(0));
  for (const char* for_ever : {"-1", "-0.5", R"("-1")", R"("-1m")", "1e12"})
    CHECK_FALSE(read(for_ever).has_value());
  for (const char* wrong :
       {R"("")", R"("-")", R"("m")", R"("5 m")", R"("5d")", R"("1.2.3m")", R"("nan")", "true"})
    CHECK_THROWS_AS((void)read(wrong), Refusal);
  Server server;
  (void)body_of(server.chat(R"(,"keep_alive":-1)"));
  REQUIRE(server.service.kept.size() == 1);
  CHECK_FALSE(server.service.kept[0].second.has_value());
}

TEST_CASE("models are listed with what Ollama's clients read") {
  Server server;
  const Json tags = server.get("/api/tags");
  REQUIRE(tags["models"].size() == 2);
  const Json& model = tags["models"][0];
  CHECK(model["name"] == "tiny");
  CHECK(model["model"] == "tiny");
  CHECK(model["modified_at"] == "2023-11-14T22:13:20.000000000Z");
  CHECK(model["size"] == 1000);
  CHECK(model["digest"].get<std::string>().size() == 64);
  CHECK(model["details"] == Json::parse(R"({"parent_model":"","format":"gguf","family":"llama",
    "families":["llama"],"parameter_size":"2.00K","quantization_level":"Q4_0"})"));
  const Json running = server.get("/api/ps");
  REQUIRE(running["models"].size() == 1);
  CHECK(running["models"][0]["context_length"] == 512);
  CHECK(running["models"][0]["expires_at"] == "2999-12-31T00:00:00Z");
  CHECK(running["models"][0]["size_vram"] == 0);
  CHECK(server.get("/api/version") == Json{{"version", "0.12.0+mica.1.2.3"}});
}

TEST_CASE("a model is described") {
  Server server;
  const Json r =
      json_of(server.router.handle(post("/api/show", R"({"model":"tiny:latest","verbose":true})")));
  CHECK(r["template"] == "chatml");
  CHECK(r["details"]["family"] == "llama");
  CHECK(r["capabilities"] == Json::array({"completion"}));
  CHECK(r["model_info"]["general.architecture"] == "llama");
  CHECK(r["model_info"]["llama.context_length"] == 4096);
  CHECK(r["model_info"]["llama.embedding_length"] == 64);
  CHECK(r["parameters"].get<std::string>().find("num_ctx 512") != std::string::npos);
  const HttpReply none = server.router.handle(post("/api/show", R"({"name":"nemo"})"));
  CHECK(none.status == 404);
  CHECK(json_of(none) == Json{{"error", "model 'nemo' not found"}});
}

TEST_CASE("probabilities are in the line of their text") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"Four", {ScoredPiece{5, -0.5f, "Four", {{6, -1.5f, "x"}}}}},
                           FakeService::ended()};
  const auto lines = jsons_of(server.chat(R"(,"logprobs":true,"top_logprobs":1)"));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["logprobs"][0]["token"] == "Four");
  CHECK(lines[0]["logprobs"][0]["logprob"] == -0.5);
  CHECK(lines[0]["logprobs"][0]["top_logprobs"][0]["token"] == "x");
  CHECK_FALSE(lines[1].contains("logprobs"));
  CHECK(server.service.jobs[0].top_tokens == 1);
}

TEST_CASE("what Ollama's API cannot do here is refused by name") {
  const auto refused = [](const std::string& path, const std::string& fields, const std::string& message,
                          int status) {
    CAPTURE(path + fields);
    Server server;
    const HttpReply reply = server.ask(path, fields);
    CHECK(reply.status == status);
    CHECK(json_of(reply)["error"].get<std::string>().starts_with(message));
    CHECK(server.service.jobs.empty());
  };
  const std::string hi = R"(,"messages":[{"role":"user","content":"Hi"}])";
  refused("/api/chat", hi + R"(,"tools":[{}])", "tools[0].name: ", 400);
  refused("/api/chat", hi + R"(,"format":"xml")", "format: ", 400);
  refused("/api/chat", hi + R"(,"options":{"num_ctx":4096})", "options.num_ctx: is 4096; ", 400);
  refused("/api/chat", hi + R"(,"options":{"wishes":1})", "options.wishes: ", 400);
  refused("/api/chat", hi + R"(,"options":{"penalize_newline":false})", "options.penalize_newline: ", 400);
  refused("/api/chat", hi + R"(,"keep_alive":"soon")", "keep_alive: ", 400);
  refused("/api/chat", hi + R"(,"think":"hard")", "think: ", 400);
  refused("/api/chat", hi + R"(,"prompt":"a")", "prompt: ", 400);
  refused("/api/chat", R"(,"messages":[{"role":"user","content":"a","images":["x"]}])",
          "messages[0].images: ", 400);
  refused("/api/chat", R"(,"messages":[{"role":"wizard","content":"a"}])", "messages[0].role: ", 400);
  refused("/api/generate", R"(,"prompt":"a","suffix":"b")", "suffix: ", 400);
  refused("/api/generate", R"(,"prompt":"a","template":"b")", "template: ", 400);
  refused("/api/generate", R"(,"prompt":"a","context":[1])", "context: ", 400);
  refused("/api/generate", R"(,"prompt":"a","images":["x"])", "images: ", 400);
  refused("/api/generate", R"(,"prompt":"a","system":"b","raw":true)", "system: ", 400);
  for (const char* path : {"/api/pull", "/api/push", "/api/create", "/api/copy"})
    refused(path, "", path, 501);
  Server server;
  CHECK(server.router.handle({"DELETE", "/api/delete", {}, {}, "{}"}).status == 501);
  CHECK(json_of(server.router.handle(post("/api/chat", "{}")))["error"] == "model: is missing");
}

TEST_CASE("an answer that fails ends with a line that says so") {
  Server server;
  server.service.script = {Begun{7, 3}, Text{"Hel", {}}, Failed{"the disk is gone"}};
  const auto lines = jsons_of(server.chat());
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] == Json{{"error", "the disk is gone"}});
}

TEST_CASE("a client that leaves ends the lines") {
  for (const char* stream : {"true", "false"}) {
    Server server;
    server.service.script = {Begun{7, 3}};  // goes on
    Recorder client;
    client.max_questions = 1;
    client.read(server.chat(std::string(R"(,"stream":)") + stream));
    CHECK(server.service.answers[0]->cancelled());
  }
  Server server;
  Recorder client;
  client.max_pieces = 0;
  server.chat().stream(client.connection());
  CHECK(server.service.answers[0]->cancelled());
}

}  // namespace
}  // namespace mica::test::ollama_test
