// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/rerank.hpp"

#include "events.hpp"

#include <doctest/doctest.h>

#include <string>

namespace mica::test::rerank_test {
namespace {

using namespace serve;

struct Server {
  FakeService service;
  Router router;

  explicit Server(bool ranks = true) {
    service.tiny().become(false, !ranks, ranks);
    add_rerank(router, service, {});
  }
  [[nodiscard]] HttpReply ask(const std::string& fields, const std::string& path = "/v1/rerank") {
    return made(router.handle(post(path, "{" + fields + "}")));
  }
};

TEST_CASE("documents come in the order of their scores, in Jina's form") {
  Server server;
  // The score of a pair is the number of its tokens.
  const std::string ask = R"("model":"tiny","query":"q","documents":["aa","a",{"text":"aaa"}])";
  for (const char* const path : {"/v1/rerank", "/rerank", "/v1/reranking", "/reranking"})
    CHECK(
        server.ask(ask, path).body ==
        R"({"model":"tiny","object":"list","usage":{"prompt_tokens":18,"total_tokens":18},"results":[)"
        R"({"index":2,"relevance_score":7},{"index":0,"relevance_score":6},{"index":1,"relevance_score":5}]})");
  CHECK(server.service.jobs.back().embed->texts[1] == std::vector<TokenId>{0, 'q', 1, 'a', 1});
  const Json two = json_of(server.ask(ask + R"(,"top_n":2,"return_documents":true)"));
  CHECK(two["results"] == Json::parse(R"([{"index":2,"relevance_score":7,"document":{"text":"aaa"}},
                                          {"index":0,"relevance_score":6,"document":{"text":"aa"}}])"));
  CHECK(json_of(server.ask(ask + R"(,"top_n":99)"))["results"].size() == 3);
}

TEST_CASE("with texts the form is that of TEI") {
  Server server;
  const std::string ask = R"("query":"q","texts":["aa","a"])";
  CHECK(server.ask(ask + R"(,"raw_scores":true)").body == R"([{"index":0,"score":6},{"index":1,"score":5}])");
  CHECK(server.ask(ask + R"(,"top_n":1,"return_text":true)").body ==
        R"([{"index":0,"score":6,"text":"aa"}])");
}

TEST_CASE("of other models the embeddings are multiplied") {
  Server server(false);
  const Json reply = json_of(server.ask(R"("query":"q","documents":["b","c"])"));
  const auto& texts = server.service.jobs.back().embed->texts;
  REQUIRE(texts.size() == 3);
  CHECK(texts[0] == std::vector<TokenId>{0, 'q', ':', 'q', 1});
  CHECK(texts[2] == std::vector<TokenId>{0, 'd', ':', 'c', 1});
  CHECK(reply["results"][0]["index"] == 1);
  CHECK(reply["results"][0]["relevance_score"] == 5 * 5 + 'q' * 'c' + 0.125);
  CHECK(reply["usage"]["total_tokens"] == 15);
}

TEST_CASE("what is wrong is refused by name") {
  const auto refused = [](const std::string& fields, const std::string& words) {
    CAPTURE(fields);
    Server server;
    const HttpReply reply = server.ask(fields);
    CHECK(reply.status == 400);
    const std::string message = json_of(reply)["error"]["message"];
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
    CHECK(server.service.jobs.empty());
  };
  refused(R"("documents":["a"])", "query: is missing");
  refused(R"("query":"q")", "documents: is missing");
  refused(R"("query":"q","documents":null)", "documents: is missing");
  refused(R"("query":"q","documents":[])", "documents: must be an array of 1 to 2048");
  refused(R"("query":"q","documents":123)", "documents: must be an array");
  refused(R"("query":"q","documents":[1,2,3])", "documents[0]: must be a string");
  refused(R"("query":"q","documents":["a"],"top_n":0)", "top_n: ");
  refused(R"("query":["q"],"documents":["a"])", "query: ");
  refused(R"("query":"q","documents":["a","abcdefghijklmnopq"])", "documents[1] is too large");
  refused(R"("query":"q","documents":["a"],"return_text":true)", "return_text: ");
}

}  // namespace
}  // namespace mica::test::rerank_test
