// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/embeddings.hpp"

#include "events.hpp"
#include "mica_tools/routes/llama.hpp"
#include "mica_tools/routes/models.hpp"
#include "mica_tools/routes/openai_chat.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace mica::test::embeddings_test {
namespace {

using namespace serve;

struct Server {
  FakeService service;
  Router router;

  explicit Server(RouteOptions options = {}) {
    service.tiny().become(false, true, false);
    add_embeddings(router, service, options);
    add_openai_chat(router, service, options);
    add_llama(router, service, options);
    add_models(router, service);
  }
  [[nodiscard]] HttpReply ask(const std::string& fields, const std::string& path = "/v1/embeddings") {
    return made(router.handle(post(path, "{" + fields + "}")));
  }
  [[nodiscard]] const EmbedTexts& embed() const { return *service.jobs.back().embed; }
};

std::vector<TokenId> bytes(const std::string& text) {
  std::vector<TokenId> out{0};
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  out.push_back(1);
  return out;
}

TEST_CASE("embeddings have OpenAI's form") {
  Server server;
  const HttpReply reply = server.ask(R"("model":"tiny","input":"ab","user":"me")");
  CHECK(reply.status == 200);
  CHECK(reply.type == "application/json");
  CHECK(reply.body ==
        R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[4,98,-0.25,-0.25]}],)"
        R"("model":"tiny","usage":{"prompt_tokens":4,"total_tokens":4}})");
  CHECK(server.embed().rows.normalize);
  CHECK_FALSE(server.embed().rows.each_token);
  const Json two = json_of(server.ask(R"("input":["ab","c"],"encoding_format":"float","dimensions":2)"));
  CHECK(two["data"][1] == Json::parse(R"({"object":"embedding","index":1,"embedding":[3,99]})"));
  CHECK(two["data"].size() == 2);
  CHECK(two["usage"]["prompt_tokens"] == 7);
  CHECK(server.embed().rows.dims == 2);
}

TEST_CASE("texts come as text, as tokens, and as llama-server has them") {
  struct Row {
    std::string input;
    std::vector<std::vector<TokenId>> texts;
  };
  const Row rows[] = {
      {R"("ab")", {bytes("ab")}},
      {R"("")", {bytes("")}},
      {R"(["ab","c"])", {bytes("ab"), bytes("c")}},
      {"[12,34,56]", {{12, 34, 56}}},
      {"[[12,34],[56]]", {{12, 34}, {56}}},
      {R"(["ab",[12,34]])", {bytes("ab"), {12, 34}}},
      {R"([12,"b",34])", {{12, 'b', 34}}},
      {R"({"prompt_string":"ab"})", {bytes("ab")}},
      {R"({"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})", {bytes("ab")}},
      {R"(["ab",{"prompt_string":"c"}])", {bytes("ab"), bytes("c")}}};
  for (const Row& row : rows) {
    CAPTURE(row.input);
    Server server;
    REQUIRE(server.ask("\"input\":" + row.input).status == 200);
    CHECK(server.embed().texts == row.texts);
  }
}

TEST_CASE("Base64 has the numbers as float32") {
  Server server;
  const Json reply = json_of(server.ask(R"("input":"ab","encoding_format":"base64")"));
  const std::string decoded = base64_decoded(reply["data"][0]["embedding"].get<std::string>()).value();
  std::vector<float> numbers(decoded.size() / sizeof(float));
  std::memcpy(numbers.data(), decoded.data(), decoded.size());
  CHECK(numbers == std::vector<float>{4, 98, -0.25f, -0.25f});
}

TEST_CASE("llama-server's routes reply with an array, and with a row for each token for pooling none") {
  Server server;
  for (const char* const path : {"/embedding", "/embeddings"}) {
    CHECK(server.ask(R"("input":["ab","c"])", path).body ==
          R"([{"index":0,"embedding":[[4,98,-0.25,-0.25]]},{"index":1,"embedding":[[3,99,-0.25,-0.25]]}])");
    CHECK(json_of(server.ask(R"("content":"ab")", path)).size() == 1);
  }
  CHECK(json_of(server.ask(R"("content":"ab")"))[0]["index"] == 0);
  const Json tokens = json_of(server.ask(R"("input":["ab","c"],"pooling":"none")", "/embedding"));
  CHECK(tokens[0]["embedding"].size() == 4);
  CHECK(tokens[1]["embedding"].size() == 3);
  CHECK(server.embed().rows.each_token);
  CHECK(server.ask(R"("input":"ab","pooling":"none")").status == 400);
}

TEST_CASE("options of rows and texts") {
  Server server;
  CHECK(server.ask(R"("input":"ab","embd_normalize":-1,"pooling":"last","input_type":"query")").status ==
        200);
  CHECK_FALSE(server.embed().rows.normalize);
  CHECK(server.embed().rows.pooling == arch::Pooling::last);
  CHECK(server.embed().texts[0] == bytes("q:ab"));
  CHECK(server.ask(R"("input":"ab","input_type":"passage","pooling":"cls")").status == 200);
  CHECK(server.embed().rows.pooling == arch::Pooling::first);
  CHECK(server.embed().texts[0] == bytes("d:ab"));
  CHECK(server.ask(R"("input":"abcdefghijklmnopq","truncate":true)").status == 200);
  CHECK(server.embed().texts[0].size() == 16);
  CHECK(server.ask(R"("input":[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2],"truncate":true)").status == 200);
  CHECK(server.embed().texts[0].size() == 16);
}

TEST_CASE("what is wrong is refused by name") {
  const auto refused = [](const std::string& fields, const std::string& words,
                          const std::string& path = "/v1/embeddings") {
    CAPTURE(fields);
    Server server;
    const HttpReply reply = server.ask(fields, path);
    CHECK(reply.status == 400);
    const std::string message = json_of(reply)["error"]["message"];
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
    CHECK(server.service.jobs.empty());
  };
  refused("", "input: is missing");
  refused(R"("input":[])", "input: has 0 texts");
  refused(R"("input":5)", "input: ");
  refused(R"("input":[null])", "input[0]: ");
  refused(R"("input":[300])", "token 300 is outside");
  refused(R"("input":"abcdefghijklmnopq")", "input is too large");
  refused(R"("input":["a","abcdefghijklmnopq"])", "input[1] is too large");
  refused(R"("input":[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2])", "input: is too large: it has 17 tokens");
  refused(R"("input":{"content":"ab"})", "input.content: must be an array");
  refused(R"("input":{"content":[{"type":"image_url","image_url":{}}]})", "input.content[0].type: ");
  refused(R"("input":"a","encoding_format":"int8")", "encoding_format: ");
  refused(R"("input":"a","encoding_format":"base64")", "encoding_format: ", "/embedding");
  refused(R"("input":"a","dimensions":5)", "dimensions: ");
  refused(R"("input":"a","dimensions":0)", "dimensions: ");
  refused(R"("input":"a","embd_normalize":1)", "embd_normalize: ");
  refused(R"("input":"a","pooling":"max")", "pooling: ");
  refused(R"("input":"a","input_type":"poem")", "input_type: ");
  refused(R"("input":"a","temperature":0)", "temperature: ");
  std::string many = "\"input\":[\"a\"";
  for (int i = 0; i < 2048; ++i) many += ",\"a\"";
  refused(many + "]", "input: has 2049 texts");
  CHECK(Server().ask(R"("model":"gpt","input":"a")").status == 404);
}

TEST_CASE("each model embeds or writes, as it can, and says so in one sentence") {
  Server server;
  const auto error = [&](const std::string& path, const std::string& fields) {
    const HttpReply reply = server.ask(fields, path);
    CHECK(reply.status == 400);
    const Json body = json_of(reply)["error"];
    CHECK(body["type"] == "not_supported_error");
    CHECK(body["param"] == "model");
    return body["message"].get<std::string>();
  };
  const std::string writes_none = "model 'tiny' is a text encoder: it embeds texts, and writes none";
  CHECK(error("/v1/chat/completions", R"("messages":[{"role":"user","content":"a"}])") == writes_none);
  CHECK(error("/completion", R"("prompt":"a")") == writes_none);

  server.service.tiny().become(false, false, true);
  CHECK(error("/v1/embeddings", R"("input":"a")") ==
        "model 'tiny' is a reranker: it has scores and no embeddings; use /v1/rerank");

  server.service.tiny().become(true, false, false);
  CHECK(error("/v1/embeddings", R"("input":"a")").find("--pooling") != std::string::npos);
  CHECK(server.ask(R"("input":"a","pooling":"mean")").status == 200);
  CHECK(server.ask(R"("input":"a","pooling":"none")", "/embedding").status == 200);
  Server with_flag({.pooling = arch::Pooling::last});
  with_flag.service.tiny().become(true, false, false);
  CHECK(with_flag.ask(R"("input":"a")").status == 200);
  CHECK(with_flag.embed().rows.pooling == arch::Pooling::last);
  CHECK(with_flag.ask(R"("input":"a","pooling":"mean")").status == 200);
  CHECK(with_flag.embed().rows.pooling == arch::Pooling::mean);
  with_flag.service.tiny().become(true, true, false);
  CHECK(with_flag.ask(R"("input":"a")").status == 200);
  CHECK_FALSE(with_flag.embed().rows.pooling.has_value());
}

TEST_CASE("the list of models says what they give") {
  Server server;
  const auto outputs = [&] {
    return json_of(server.router.handle(
        {"GET", "/v1/models", {}, {}, {}}))["data"][0]["architecture"]["output_modalities"];
  };
  CHECK(outputs() == Json::array({"embeddings"}));
  server.service.tiny().become(true, true, false);
  CHECK(outputs() == Json::array({"text", "embeddings"}));
  server.service.tiny().become(false, false, true);
  CHECK(outputs() == Json::array({"scores"}));
}

TEST_CASE("texts that fail are an error with its status") {
  Server server;
  server.service.scripts[0] = {Failed{"no memory"}};
  const HttpReply reply = server.ask(R"("input":"a")");
  CHECK(reply.status == 500);
  CHECK(json_of(reply)["error"]["message"] == "no memory");
  server.service.refusal = Refusal(Cause::busy, "full");
  server.service.refusal->retry_after = 3;
  const HttpReply busy = server.ask(R"("input":"a")");
  CHECK(busy.status == 429);
  CHECK(busy.headers.get("retry-after") == "3");
}

}  // namespace
}  // namespace mica::test::embeddings_test
