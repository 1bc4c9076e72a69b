// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/ollama_embed.hpp"

#include "events.hpp"
#include "mica_tools/routes/ollama.hpp"

#include <doctest/doctest.h>

#include <string>

namespace mica::test::ollama_embed_test {
namespace {

using namespace serve;
using std::chrono::seconds;

struct Server {
  FakeService service;
  Router router;

  Server() {
    service.tiny().become(false, true, false);
    add_ollama(router, service, {});
  }
  [[nodiscard]] HttpReply ask(const std::string& path, const std::string& fields) {
    return made(router.handle(post(path, R"({"model":"tiny:latest")" + fields + "}")));
  }
  [[nodiscard]] const EmbedTexts& embed() const { return *service.jobs.back().embed; }
};

TEST_CASE("/api/embed embeds a text, or several, with counters") {
  Server server;
  const Json one = json_of(server.ask("/api/embed", R"(,"input":"ab")"));
  CHECK(one["model"] == "tiny");
  CHECK(one["embeddings"] == Json::parse("[[4,98,-0.25,-0.25]]"));
  CHECK(one["prompt_eval_count"] == 4);
  CHECK(one["total_duration"].get<std::int64_t>() >= one["load_duration"].get<std::int64_t>());
  CHECK(server.embed().rows.normalize);
  const Json two = json_of(server.ask(
      "/api/embed", R"(,"input":["ab","c"],"dimensions":2,"keep_alive":"5m","options":{"temperature":0})"));
  CHECK(two["embeddings"] == Json::parse("[[4,98],[3,99]]"));
  CHECK(server.service.kept ==
        std::vector<std::pair<std::string, std::optional<seconds>>>{{"tiny", seconds(300)}});
}

TEST_CASE("long texts are cut, unless the request says otherwise") {
  Server server;
  CHECK(server.ask("/api/embed", R"(,"input":"abcdefghijklmnopq")").status == 200);
  CHECK(server.embed().texts[0].size() == 16);
  const HttpReply reply = server.ask("/api/embed", R"(,"input":"abcdefghijklmnopq","truncate":false)");
  CHECK(reply.status == 400);
  CHECK(json_of(reply)["error"] == "input is too large");
}

TEST_CASE("/api/embeddings gives one embedding as the model has it") {
  Server server;
  CHECK(server.ask("/api/embeddings", R"(,"prompt":"ab")").body == R"({"embedding":[4,98,-0.25,-0.25]})");
  CHECK_FALSE(server.embed().rows.normalize);
}

TEST_CASE("without texts the model is loaded, or unloaded") {
  Server server;
  CHECK(server.ask("/api/embed", "").body == R"({"model":"tiny","embeddings":[]})");
  CHECK(server.ask("/api/embed", R"(,"input":"")").body == R"({"model":"tiny","embeddings":[]})");
  CHECK(server.ask("/api/embed", R"(,"input":[])").body == R"({"model":"tiny","embeddings":[]})");
  CHECK(server.ask("/api/embeddings", R"(,"prompt":"")").body == R"({"embedding":[]})");
  CHECK(server.service.asked.size() == 4);
  CHECK(server.service.loaded);
  CHECK(server.ask("/api/embed", R"(,"keep_alive":0)").status == 200);
  CHECK_FALSE(server.service.loaded);
  CHECK(server.service.jobs.empty());
}

TEST_CASE("what is wrong is refused, and each model does what it can") {
  Server server;
  const auto refused = [&](const std::string& path, const std::string& fields, const std::string& words) {
    CAPTURE(fields);
    const HttpReply reply = server.ask(path, fields);
    CHECK(reply.status == 400);
    const std::string message = json_of(reply)["error"];
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
  };
  refused("/api/embed", R"(,"input":5)", "input: must be a text or an array of texts");
  refused("/api/embed", R"(,"input":[5])", "input: must be a text or an array of texts");
  refused("/api/embed", R"(,"input":"a","dimensions":9)", "dimensions: is 9");
  refused("/api/embed", R"(,"input":"a","mood":9)", "mood: ");
  refused("/api/chat", R"(,"messages":[{"role":"user","content":"a"}])", "is a text encoder");
  server.service.tiny().become(true, false, false);
  refused("/api/embed", R"(,"input":"a")", "--pooling");
  server.service.tiny().become(false, false, true);
  refused("/api/embeddings", R"(,"prompt":"a")", "is a reranker");
}

TEST_CASE("capabilities of a model are named") {
  Server server;
  const auto capabilities = [&] { return json_of(server.ask("/api/show", ""))["capabilities"]; };
  CHECK(capabilities() == Json::array({"embedding"}));
  server.service.tiny().become(true, true, false);
  CHECK(capabilities() == Json::array({"completion", "embedding"}));
  server.service.tiny().become(false, false, true);
  CHECK(capabilities() == Json::array({"rerank"}));
}

}  // namespace
}  // namespace mica::test::ollama_embed_test
