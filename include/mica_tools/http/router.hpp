// SPDX-License-Identifier: Apache-2.0
//
// Finds the route of a request, and writes what routes raise in the form of their API. No regular expressions: a
// path is a text with at most one placeholder.
//
//   /v1/models/{model}              the rest of the path, slashes included
//   /v1/responses/{id}/input_items  one segment
#pragma once

#include "mica_tools/http/error_reply.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

/// A request, and the text at the place of the placeholder. Raises Refusal, Error or std::exception.
using Handler = std::function<HttpReply(const HttpRequest&, const std::string&)>;

/// All routes. After the last add(): any number of threads.
class Router {
 public:
  /// method: GET also takes HEAD, whose reply is the same; the connection leaves the body out.
  void add(std::string method, std::string path, Api api, Handler handler) {
    routes_.push_back({std::move(method), std::move(path), api, std::move(handler)});
  }

  /// The reply of the route, or an error: 404 for a path without a route, 405 for another method.
  [[nodiscard]] HttpReply handle(const HttpRequest& request) const {
    const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
    std::string allowed;
    for (const Route& route : routes_) {
      const std::optional<std::string> placeholder = match(route.path, request.path);
      if (!placeholder) continue;
      if (route.method == method) return answer(route, request, *placeholder);
      if (allowed.find(route.method) == std::string::npos)
        allowed += join(allowed.empty() ? "" : ", ", route.method, route.method == "GET" ? ", HEAD" : "");
    }
    const Api api = api_of(request.path);
    const std::string asked = join(escaped(request.method, 16), " ", escaped(request.path));
    if (allowed.empty())
      return error_reply(api, Refusal(Cause::not_found, join(asked, ": there is no such route")));
    HttpReply reply = error_reply(api, Refusal(Cause::wrong_method, join(asked, ": allowed is ", allowed)));
    reply.headers.add("Allow", allowed);
    return reply;
  }

 private:
  struct Route {
    std::string method, path;
    Api api;
    Handler handler;
  };

  [[nodiscard]] static HttpReply answer(const Route& route, const HttpRequest& request,
                                        const std::string& placeholder) {
    try {
      return route.handler(request, placeholder);
    } catch (const std::exception& error) {
      return error_reply(route.api, refusal_of(error));
    }
  }
  /// The text of the placeholder; empty text where the route has none.
  [[nodiscard]] static std::optional<std::string> match(std::string_view route, std::string_view path) {
    const std::size_t open = route.find('{');
    if (open == std::string_view::npos) return route == path ? std::optional<std::string>("") : std::nullopt;
    const std::string_view after = route.substr(route.find('}') + 1);
    if (path.size() <= open + after.size() || !path.starts_with(route.substr(0, open)) ||
        !path.ends_with(after))
      return std::nullopt;
    const std::string_view text = path.substr(open, path.size() - open - after.size());
    if (!after.empty() && text.find('/') != std::string_view::npos) return std::nullopt;
    return std::string(text);
  }

  std::vector<Route> routes_;
};

inline constexpr std::size_t max_json_members = 1024;  // of one object in a request
/// Of a request: a comma is one, a text, an array or an object four, by the memory that they take.
inline constexpr std::size_t max_json_values = std::size_t{1} << 18;

namespace detail {

/// Raises ErrorCode::usage for more than max_json_members or max_json_values. An ordered object compares each new
/// name with all before it, and a tree of values takes many times the bytes of its text. What nests too deep is left
/// to parse_json().
inline void check_amount(std::string_view json) {
  std::vector<std::size_t> members;  // of the open arrays and objects
  std::size_t values = 0;
  static_cast<void>(io::detail::any_outside_texts(json, [&](char c) {
    const bool opens = c == '[' || c == '{';
    if (opens) members.push_back(0);
    if ((c == ']' || c == '}') && !members.empty()) members.pop_back();
    if (c == ':' && !members.empty()) ++members.back();
    values += opens || c == '"' ? 4 : c == ',' ? 1 : 0;
    MICA_CHECK(members.empty() || members.back() <= max_json_members, usage,
               "the body: an object has more than ", max_json_members, " members");
    MICA_CHECK(values <= max_json_values, usage, "the body: more than ", max_json_values, " numbers, or ",
               max_json_values / 4, " texts, arrays and objects");
    return members.size() > io::max_json_depth;
  }));
}

}  // namespace detail

/// The body of a request. Raises Refusal (invalid) when it is no JSON, nests too deep, has an object with
/// more than max_json_members, or more than max_json_values. Fields refuses what is no object.
[[nodiscard]] inline Json parse_body(const HttpRequest& request) {
  try {
    detail::check_amount(request.body);
    return io::parse_json<Json>(request.body, "the body", ErrorCode::usage);
  } catch (const Error& error) {
    throw Refusal(Cause::invalid, error.message());
  }
}

/// A reply that is one JSON value.
[[nodiscard]] inline HttpReply json_reply(const Json& value) {
  HttpReply reply;
  reply.body = dump(value);
  return reply;
}

}  // namespace mica::serve
