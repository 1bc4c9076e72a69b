// SPDX-License-Identifier: Apache-2.0
//
// Requests and replies without sockets: routes are functions from one to the other, and a unit of the program
// carries them over the network.
#pragma once

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

/// Names and values in order. The case of names does not matter.
class Headers {
 public:
  /// Also where the name is there already.
  void add(std::string name, std::string value) { list_.emplace_back(std::move(name), std::move(value)); }
  /// The first value of a name; empty where there is none.
  [[nodiscard]] std::string_view get(std::string_view name) const noexcept {
    const auto same = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    };
    for (const auto& [its, value] : list_) {
      if (std::equal(its.begin(), its.end(), name.begin(), name.end(), same)) return value;
    }
    return {};
  }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& list() const noexcept {
    return list_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

/// A request, whole.
struct HttpRequest {
  std::string method;               // "POST"
  std::string path;                 // "/v1/chat/completions", without a query, decoded
  Headers query = {};               // decoded
  Headers headers = {};             // as they came
  std::string body = {};            // without chunks
  std::function<bool()> open = {};  // whether the client is still there; empty: not known
};

/// Where a reply is written, piece by piece. Both functions: the thread of the connection.
struct Connection {
  std::function<bool(std::string_view)> write;  // false: the client has disconnected
  std::function<bool()> open;                   // whether the client is still there
};

/// What a request gets: a body, or a function that writes it.
struct HttpReply {
  int status = 200;                       // of HTTP
  std::string type = "application/json";  // Content-Type
  std::string body = {};                  // whole
  Headers headers = {};                   // beside Content-Type and Content-Length
  /// Writes the body in pieces, in place of `body`; returns when it is complete or the client has disconnected.
  std::function<void(const Connection&)> stream = {};
  /// Makes the reply, which then takes the place of this one; only `headers` of this one are added to it. Called on
  /// the thread of the connection, before anything is written. `open` as in Connection. Empty where the client has
  /// disconnected. Does not throw.
  std::function<std::optional<HttpReply>(const std::function<bool()>& open)> later = {};
};

}  // namespace mica::serve
