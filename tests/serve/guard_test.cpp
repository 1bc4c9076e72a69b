// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/http/guard.hpp"

#include "fake_service.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>

namespace mica::test::guard_test {
namespace {

using namespace serve;

HttpRequest request(const char* method, const char* path,
                    std::vector<std::pair<const char*, const char*>> headers) {
  HttpRequest out{method, path};
  for (const auto& [name, value] : headers) out.headers.add(name, value);
  return out;
}
/// 0: it reaches its route.
int status(const GuardOptions& options, const HttpRequest& of) {
  const auto reply = guard(options, of);
  return reply ? reply->status : 0;
}

TEST_CASE("a server on this machine has its own names and no others") {
  struct Row {
    const char *address, *host;
    bool allowed;
  };
  const Row rows[] = {{"127.0.0.1", "localhost", true},
                      {"127.0.0.1", "LOCALHOST:8080", true},
                      {"127.0.0.1", "localhost.", true},
                      {"127.0.0.1", "chat.localhost:1", true},
                      {"127.0.0.1", "127.0.0.1:8080", true},
                      {"127.0.0.1", "127.9.9.9", true},
                      {"127.0.0.1", "[::1]:8080", true},
                      {"127.0.0.1", "[::1]", true},
                      {"127.0.0.1", "evil.example", false},
                      {"127.0.0.1", "localhost.evil.example", false},
                      {"127.0.0.1", "evillocalhost", false},
                      {"127.0.0.1", "127.0.0.1.evil.example", false},
                      {"127.0.0.1", "127.evil.example", false},
                      {"127.0.0.1", "192.168.0.7", false},
                      {"127.0.0.1", "mica.lan:80", true},
                      {"127.0.0.1", "MICA.LAN", true},
                      {"192.168.0.7", "192.168.0.7:80", true},
                      {"192.168.0.7", "192.168.0.8", false},
                      {"192.168.0.7", "localhost", true},
                      {"0.0.0.0", "10.0.0.1:80", true},
                      {"0.0.0.0", "evil.example", false},
                      {"0.0.0.0", "1.2.3", false},
                      {"0.0.0.0", "1.2.3.256", false},
                      {"0.0.0.0", "1.2.3.4.5", false},
                      {"0.0.0.0", "1..2.3", false},
                      {"::", "[2001:db8::7]:80", true},
                      {"::", "[evil]", false},
                      {"::", "fe80::1", true},
                      {"0.0.0.0", "[", false},
                      {"0.0.0.0", ":80", false}};
  for (const Row& row : rows) {
    CAPTURE(row.address);
    CAPTURE(row.host);
    GuardOptions options;
    options.address = row.address;
    options.hosts = {"Mica.lan"};
    CHECK(status(options, request("GET", "/props", {{"Host", row.host}})) == (row.allowed ? 0 : 403));
  }
  CHECK(status({}, request("GET", "/props", {})) == 0);
  GuardOptions any;
  any.hosts = {"*"};
  CHECK(status(any, request("GET", "/", {{"Host", "evil.example"}})) == 0);
}

TEST_CASE("pages of other origins are refused, with their preflights") {
  struct Row {
    const char *allowed, *origin;
    int status;
  };
  const Row rows[] = {{"", "http://localhost:8080", 0},
                      {"", "https://localhost:8080", 0},
                      {"", "http://localhost:3000", 403},
                      {"", "http://localhost", 403},
                      {"", "https://evil.example", 403},
                      {"", "null", 403},
                      {"", "file://", 403},
                      {"", "vscode-webview://localhost:8080", 403},
                      {"https://chat.example", "https://chat.example", 0},
                      {"https://chat.example", "https://Chat.example", 0},
                      {"https://chat.example", "https://chat.example.evil", 403},
                      {"https://chat.example", "http://chat.example", 403},
                      {"localhost", "http://localhost:3000", 0},
                      {"localhost", "https://127.0.0.1", 0},
                      {"localhost", "http://localhost.evil.example", 403},
                      {"*", "null", 0},
                      {"*", "https://evil.example", 0}};
  for (const Row& row : rows) {
    CAPTURE(row.allowed);
    CAPTURE(row.origin);
    GuardOptions options;
    options.api_keys = {"k"};
    if (*row.allowed != 0) options.origins = {row.allowed};
    const auto with = [&](const char* method) {
      return request(method, "/v1/chat/completions",
                     {{"Host", "localhost:8080"}, {"Origin", row.origin}, {"Authorization", "Bearer k"}});
    };
    CHECK(status(options, with("POST")) == row.status);
    CHECK(status(options, with("OPTIONS")) == (row.status == 0 ? 200 : row.status));
    HttpReply reply;
    add_cors_headers(options, with("POST"), reply);
    CHECK(reply.headers.get("access-control-allow-origin") == (row.status == 0 ? row.origin : ""));
  }
  const auto preflight =
      guard({}, request("OPTIONS", "/x", {{"Access-Control-Request-Private-Network", "true"}}));
  REQUIRE(preflight);
  CHECK(preflight->headers.get("access-control-allow-methods") == "GET, POST, DELETE, OPTIONS");
  CHECK(preflight->headers.get("access-control-allow-headers") == "Authorization, *");
  CHECK(preflight->headers.get("access-control-allow-private-network") == "true");
  HttpReply plain;
  add_cors_headers({}, request("GET", "/", {}), plain);
  CHECK(plain.headers.list().empty());
}

TEST_CASE("a key is needed but for the page, health and the list of models") {
  GuardOptions options;
  options.api_keys = {"first", "second"};
  const auto with = [&](const char* name, const char* value) {
    return status(options, request("POST", "/v1/chat/completions", {{name, value}}));
  };
  CHECK(with("Authorization", "Bearer first") == 0);
  CHECK(with("authorization", "bearer second") == 0);
  CHECK(with("X-Api-Key", "second") == 0);
  for (const char* wrong :
       {"Bearer ", "Bearer firs", "Bearer firstt", "Bearer First", "first", "Basic first", ""})
    CHECK(with("Authorization", wrong) == 401);
  CHECK(with("x-api-key", "") == 401);
  CHECK(status(options, request("POST", "/completion", {})) == 401);
  for (const char* path : {"/", "/health", "/v1/health", "/v1/models", "/models"}) {
    CHECK(status(options, request("GET", path, {})) == 0);
    CHECK(status(options, request("HEAD", path, {})) == 0);
    CHECK(status(options, request("POST", path, {})) == 401);
  }
  for (const char* path : {"/props", "/slots", "/metrics", "/v1/models/tiny", "/health/", "/api/tags"})
    CHECK(status(options, request("GET", path, {})) == 401);
  CHECK(json_of(*guard(options, request("POST", "/api/chat", {})))["error"].is_string());
  CHECK(json_of(*guard(options, request("POST", "/v1/messages", {})))["type"] == "error");
  CHECK(guard(options, request("GET", "/props", {}))->headers.get("www-authenticate") == "Bearer");
}

}  // namespace
}  // namespace mica::test::guard_test
