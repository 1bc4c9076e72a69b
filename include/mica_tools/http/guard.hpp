// SPDX-License-Identifier: Apache-2.0
//
// Which requests reach a route: keys, and the two checks that keep web pages of others away from a server on
// this machine. A page may point a name of its own at 127.0.0.1 (DNS rebinding), which the Host header shows; and
// it may send requests across origins, which the Origin header shows.
#pragma once

#include "mica_tools/http/error_reply.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::serve {

/// Who may use a server.
struct GuardOptions {
  std::vector<std::string> api_keys = {};  // empty: none is needed
  std::string address = "127.0.0.1";       // that the server is bound to; 0.0.0.0 and :: are all
  std::vector<std::string> hosts = {};     // more names of this server; "*": any
  std::vector<std::string> origins =
      {};  // "https://chat.example"; "localhost": pages of this machine; "*": any
};

namespace detail {

using remote::detail::lower;

[[nodiscard]] inline bool has(const std::vector<std::string>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& each) { return each == "*" || lower(each) == text; });
}
/// "LocalHost.:8080" is "localhost", "[::1]:80" is "::1".
[[nodiscard]] inline std::string name_of(std::string_view host) {
  if (host.starts_with('[')) return lower(host.substr(1, host.find(']') - 1));
  if (const std::size_t colon = host.find(':'); colon == host.rfind(':')) host = host.substr(0, colon);
  if (host.ends_with('.')) host.remove_suffix(1);
  return lower(host);
}
/// 192.168.0.7; no other spelling of it.
[[nodiscard]] inline bool is_ipv4(std::string_view name) noexcept {
  int parts = 0, digits = 0, value = 0;
  for (const char c : name) {
    if (c == '.') {
      if (digits == 0 || ++parts > 3) return false;
      digits = value = 0;
    } else {
      if (c < '0' || c > '9' || ++digits > 3) return false;
      value = value * 10 + (c - '0');
      if (value > 255) return false;
    }
  }
  return parts == 3 && digits > 0;
}
[[nodiscard]] inline bool is_address(std::string_view name) noexcept {
  return is_ipv4(name) || (name.find(':') != std::string_view::npos &&
                           name.find_first_not_of("0123456789abcdef:.") == std::string_view::npos);
}
[[nodiscard]] inline bool is_loopback(std::string_view name) noexcept {
  return name == "localhost" || name.ends_with(".localhost") || name == "::1" ||
         (name.starts_with("127.") && is_ipv4(name));
}
[[nodiscard]] inline bool allows_host(const GuardOptions& options, std::string_view host) {
  const std::string name = name_of(host);
  const bool all = options.address.empty() || options.address == "0.0.0.0" || options.address == "::";
  return is_loopback(name) || name == name_of(options.address) || has(options.hosts, name) ||
         (all && is_address(name));
}
[[nodiscard]] inline bool allows_origin(const GuardOptions& options, std::string_view origin,
                                        std::string_view host) {
  if (has(options.origins, lower(origin))) return true;
  const std::size_t at = origin.find("://");
  if (at == std::string_view::npos) return false;  // "null"
  const std::string_view scheme = origin.substr(0, at), place = origin.substr(at + 3);
  if (scheme != "http" && scheme != "https") return false;
  return lower(place) == lower(host) || (has(options.origins, "localhost") && is_loopback(name_of(place)));
}
/// Takes the time of the longer text, wherever they differ.
[[nodiscard]] inline bool same_secret(std::string_view given, std::string_view key) noexcept {
  volatile unsigned different = given.size() != key.size();
  for (std::size_t i = 0; i < std::max(given.size(), key.size()); ++i) {
    const char a = i < given.size() ? given[i] : '\0', b = i < key.size() ? key[i] : '\0';
    different = different | static_cast<unsigned char>(a ^ b);
  }
  return different == 0;
}
[[nodiscard]] inline bool has_key(const GuardOptions& options, const Headers& headers) {
  std::string_view given = headers.get("x-api-key");
  const std::string_view line = headers.get("authorization");
  if (lower(line.substr(0, 7)) == "bearer ") given = line.substr(7);
  bool known = false;
  for (const std::string& key : options.api_keys) known = same_secret(given, key) || known;
  return known;
}
/// Without a key: the page, and the questions by which clients find a server. As llama-server has it.
[[nodiscard]] inline bool is_public(const HttpRequest& request) noexcept {
  constexpr std::array<std::string_view, 6> paths = {"/",          "/index.html", "/health",
                                                     "/v1/health", "/models",     "/v1/models"};
  return (request.method == "GET" || request.method == "HEAD") &&
         std::find(paths.begin(), paths.end(), request.path) != paths.end();
}
[[nodiscard]] inline HttpReply preflight(const HttpRequest& request) {
  HttpReply reply;
  reply.status = 200;
  reply.headers.add("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  reply.headers.add("Access-Control-Allow-Headers", "Authorization, *");  // * does not cover the first
  reply.headers.add("Access-Control-Max-Age", "600");
  if (!request.headers.get("access-control-request-private-network").empty())
    reply.headers.add("Access-Control-Allow-Private-Network", "true");
  return reply;
}

}  // namespace detail

/// The reply to a request that reaches no route: 403, 401, or that to OPTIONS; empty for all others.
[[nodiscard]] inline std::optional<HttpReply> guard(const GuardOptions& options, const HttpRequest& request) {
  const Api api = api_of(request.path);
  const std::string_view host = request.headers.get("host"), origin = request.headers.get("origin");
  if (!host.empty() && !detail::allows_host(options, host))  // a browser always sends it
    return error_reply(api,
                       Refusal(Cause::forbidden, join("host '", escaped(host), "' is not a name of this ",
                                                      "server; --allow-host adds one")));
  if (!origin.empty() && !detail::allows_origin(options, origin, host))
    return error_reply(api,
                       Refusal(Cause::forbidden, join("pages of '", escaped(origin), "' may not use this ",
                                                      "server; --cors-origin allows it")));
  if (request.method == "OPTIONS") return detail::preflight(request);
  if (options.api_keys.empty() || detail::is_public(request) || detail::has_key(options, request.headers))
    return std::nullopt;
  HttpReply reply = error_reply(api, Refusal(Cause::unauthorised,
                                             "no API key, or a wrong one; send Authorization: Bearer KEY, or "
                                             "x-api-key: KEY"));
  reply.headers.add("WWW-Authenticate", "Bearer");
  return reply;
}

/// Lets a page of an allowed origin read a reply; for every reply, those of guard() too.
inline void add_cors_headers(const GuardOptions& options, const HttpRequest& request, HttpReply& reply) {
  const std::string_view origin = request.headers.get("origin");
  if (origin.empty() || !detail::allows_origin(options, origin, request.headers.get("host"))) return;
  reply.headers.add("Access-Control-Allow-Origin", std::string(origin));
  reply.headers.add("Access-Control-Expose-Headers", "Retry-After");
  reply.headers.add("Vary", "Origin");
}

}  // namespace mica::serve
