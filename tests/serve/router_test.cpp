// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/http/router.hpp"

#include "fake_service.hpp"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mica::test::router_test {
namespace {

using namespace serve;

HttpReply said(std::string text) {
  HttpReply reply;
  reply.body = std::move(text);
  return reply;
}

Router small_router() {
  Router router;
  router.add("GET", "/a", Api::openai, [](const HttpRequest&, const std::string&) { return said("get a"); });
  router.add("POST", "/a", Api::openai,
             [](const HttpRequest&, const std::string&) { return said("post a"); });
  router.add("GET", "/m/{id}", Api::openai,
             [](const HttpRequest&, const std::string& id) { return said("m " + id); });
  router.add("GET", "/r/{id}/items", Api::openai,
             [](const HttpRequest&, const std::string& id) { return said("items " + id); });
  return router;
}

TEST_CASE("a route is found by method and path, with one placeholder") {
  const Router router = small_router();
  struct Row {
    const char *method, *path;
    int status;
    const char* text;
  };
  const Row rows[] = {{"GET", "/a", 200, "get a"},
                      {"HEAD", "/a", 200, "get a"},
                      {"POST", "/a", 200, "post a"},
                      {"DELETE", "/a", 405, ""},
                      {"GET", "/a/", 404, ""},
                      {"GET", "/b", 404, ""},
                      {"GET", "", 404, ""},
                      {"GET", "/m/x", 200, "m x"},
                      {"GET", "/m/a/b:Q4", 200, "m a/b:Q4"},
                      {"GET", "/m/", 404, ""},
                      {"GET", "/m", 404, ""},
                      {"POST", "/m/x", 405, ""},
                      {"GET", "/r/7/items", 200, "items 7"},
                      {"GET", "/r//items", 404, ""},
                      {"GET", "/r/7/8/items", 404, ""},
                      {"get", "/a", 405, ""}};
  for (const Row& row : rows) {
    CAPTURE(row.path);
    CAPTURE(row.method);
    const HttpReply reply = router.handle({row.method, row.path});
    CHECK(reply.status == row.status);
    if (row.status == 200) CHECK(reply.body == row.text);
  }
  CHECK(router.handle({"PUT", "/a"}).headers.get("allow") == "GET, HEAD, POST");
  CHECK(json_of(router.handle({"GET", "/api/x"}))["error"].is_string());
  CHECK(json_of(router.handle({"GET", "/v1/messages/x"}))["type"] == "error");
  CHECK(json_of(router.handle({"GET", "/x"}))["error"]["type"] == "not_found_error");
}

TEST_CASE("each cause has its status and its word in each API") {
  struct Row {
    Cause cause;
    int status;
    std::string_view openai, anthropic;
  };
  const Row rows[] = {{Cause::invalid, 400, "invalid_request_error", "invalid_request_error"},
                      {Cause::too_long, 400, "exceed_context_size_error", "invalid_request_error"},
                      {Cause::too_large, 400, "invalid_request_error", "invalid_request_error"},
                      {Cause::unauthorised, 401, "authentication_error", "authentication_error"},
                      {Cause::forbidden, 403, "permission_error", "permission_error"},
                      {Cause::not_found, 404, "not_found_error", "not_found_error"},
                      {Cause::wrong_method, 405, "invalid_request_error", "invalid_request_error"},
                      {Cause::body_limit, 413, "invalid_request_error", "request_too_large"},
                      {Cause::busy, 429, "rate_limit_error", "rate_limit_error"},
                      {Cause::failed, 500, "server_error", "api_error"},
                      {Cause::unsupported, 501, "not_supported_error", "invalid_request_error"},
                      {Cause::option, 400, "not_supported_error", "invalid_request_error"},
                      {Cause::unavailable, 503, "unavailable_error", "overloaded_error"}};
  for (const Row& row : rows) {
    CAPTURE(row.status);
    Refusal refusal(row.cause, "why");
    refusal.field = "top_k";
    const Json openai = json_of(error_reply(Api::openai, refusal))["error"];
    CHECK(openai["code"] == row.status);
    CHECK(openai["type"] == row.openai);
    CHECK(openai["message"] == "why");
    CHECK(openai["param"] == "top_k");
    CHECK(openai.contains("n_ctx") == (row.cause == Cause::too_long));
    const HttpReply anthropic = error_reply(Api::anthropic, refusal);
    CHECK(anthropic.status == row.status);
    CHECK(json_of(anthropic) ==
          Json{{"type", "error"}, {"error", {{"type", row.anthropic}, {"message", "why"}}}});
    CHECK(error_reply(Api::ollama, refusal).body == "{\"error\":\"why\"}");
  }
}

TEST_CASE("a full queue says when to come again, a long prompt how long it is") {
  Refusal busy(Cause::busy, "full");
  busy.retry_after = 17;
  CHECK(error_reply(Api::openai, busy).headers.get("retry-after") == "17");
  Refusal too_long(Cause::too_long, "long");
  too_long.prompt_tokens = 9000;
  too_long.n_ctx = 4096;
  const Json error = json_of(error_reply(Api::openai, too_long))["error"];
  CHECK(error["n_prompt_tokens"] == 9000);
  CHECK(error["n_ctx"] == 4096);
}

TEST_CASE("whatever a route raises is an error of its API, and foreign texts do not leave") {
  Router router;
  const auto raises = [&](const char* path, auto raise_it) {
    router.add("GET", path, Api::openai, [raise_it](const HttpRequest&, const std::string&) -> HttpReply {
      raise_it();
      return {};
    });
  };
  raises("/usage", [] { raise(ErrorCode::usage, "template says no"); });
  raises("/budget", [] { raise(ErrorCode::budget, "9 GiB"); });
  raises("/unsupported", [] { raise(ErrorCode::unsupported, "images"); });
  raises("/file", [] { raise(ErrorCode::file, "damaged"); });
  raises("/memory", [] { throw std::bad_alloc(); });
  raises("/foreign", [] { throw std::runtime_error("[json.exception.type_error.302]"); });
  raises("/json", [] { (void)Json("x").get<int>(); });
  const auto status = [&](const char* path) { return router.handle({"GET", path}).status; };
  CHECK(status("/usage") == 400);
  CHECK(status("/budget") == 400);
  CHECK(status("/unsupported") == 501);
  CHECK(status("/file") == 500);
  CHECK(status("/memory") == 503);
  for (const char* path : {"/foreign", "/json"}) {
    CHECK(status(path) == 500);
    CHECK(router.handle({"GET", path}).body.find("json.exception") == std::string::npos);
  }
}

TEST_CASE("hostile bodies are refused in a sentence without the JSON library's text") {
  const auto refusal = [](const std::string& body) {
    try {
      const Json parsed = parse_body(post("/", body));
      const Fields fields(parsed);
      return std::string("taken");
    } catch (const Refusal& error) {
      CHECK(error.cause() == Cause::invalid);
      CHECK(error.message().find("exception") == std::string::npos);
      return error.message();
    }
  };
  CHECK(refusal("{}") == "taken");
  CHECK(refusal("") != "taken");
  CHECK(refusal("{\"a\":}").find("line 1, column 6") != std::string::npos);
  CHECK(refusal("[]") == "the body must be an object, not an array");
  CHECK(refusal("7") == "the body must be an object, not a number");
  CHECK(refusal("\"x\"") == "the body must be an object, not a string");
  CHECK(refusal("{\"a\":\"\xFF\"}") != "taken");
  CHECK(refusal("{\"a\":\"\\ud800\"}") != "taken");
  CHECK(refusal("{\"a\":1e999}").find("'a'") != std::string::npos);
  CHECK(refusal("{\"a\":NaN}") != "taken");
  CHECK(refusal(std::string(100'000, '[')).find("64 levels") != std::string::npos);
  std::string numbers = "[0";
  for (int i = 0; i < 300'000; ++i) numbers += ",0";
  CHECK(refusal(numbers + "]").find("262144 numbers") != std::string::npos);
  std::string texts = "[\"\"";
  for (int i = 0; i < 60'000; ++i) texts += ",\"\"";
  CHECK(refusal(texts + "]").find("65536 texts") != std::string::npos);
  CHECK(refusal("{\"a\":" + std::string(64, '[') + std::string(64, ']') + "}") != "taken");
  std::string many = "{\"a\":[";
  for (int i = 0; i < 2000; ++i) many += "{\"b\":1},";
  CHECK(refusal(many + "0]}") == "taken");
  many = "{";
  for (int i = 0; i < 2000; ++i) many += "\"" + std::to_string(i) + "\":\":::\",";
  CHECK(refusal(many + "\"x\":0}").find("1024 members") != std::string::npos);
}

}  // namespace
}  // namespace mica::test::router_test
