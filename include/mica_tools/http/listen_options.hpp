// SPDX-License-Identifier: Apache-2.0
//
// Where a server listens, and what it bears of its clients.
#pragma once

#include "mica_tools/http/request_reply.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace mica::serve {

struct ListenOptions {
  std::string host = "127.0.0.1";               // a name or an address of this machine
  int port = 8080;                              // 0: a free one
  int socket = -1;                              // one that listens already, in place of host and port
  std::size_t connections = 128;                // at a time; each has a thread. More are sent away with 503
  std::size_t max_body = std::size_t{2} << 20;  // bytes of a request; longer ones are refused with 413
  std::size_t max_bodies = 2;  // this multiple of max_body in bodies that are read at a time; more get 503
  std::size_t max_header = std::size_t{64} << 10;  // bytes of all headers of a request
  std::chrono::seconds header_time{10};            // for all headers of a request, from its first byte
  std::chrono::seconds body_time{60};              // for its body
  std::chrono::seconds idle_time{30};              // between two requests of a connection
  /// Where all connections are in use and one more comes, one whose request is not whole after this time is closed.
  std::chrono::milliseconds max_incomplete_time{1000};
  std::chrono::seconds end_time{2};     // once the server ends, for the rest of requests
  std::chrono::seconds write_time{30};  // for a reader that takes no bytes
};

/// Answers a request; does not throw. Several threads call it at a time.
using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

/// Called when the server listens, with the port and a function that ends listen() from any thread: no further
/// connections; replies that run go on.
using OnListening = std::function<void(int port, std::function<void()> stop)>;

}  // namespace mica::serve
