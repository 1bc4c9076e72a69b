// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 over TCP, by cpp-httplib: include it in one .cpp of a program. The library parses and writes; sockets
// are read here, so that a slow client has a time for each request and not for each byte, and so that a client
// that has disconnected is noticed before something is written to it.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/http/detail/connection_threads.hpp"
#include "mica_tools/http/detail/socket_stream.hpp"
#include "mica_tools/http/listen_options.hpp"

#include <netinet/in.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mica::serve {

namespace detail {

class Listener final : public httplib::Server {
 public:
  Listener(const ListenOptions& options, const HttpHandler& handle) : options_(options), handle_(handle) {
    new_task_queue = [this] { return std::make_unique<Threads>(options_.connections, open_).release(); };
    set_payload_max_length(options_.max_body);
    set_tcp_nodelay(true);
    set_socket_options([](socket_t socket) {
      const int yes = 1;  // a restarted server gets its port; two servers do not share one
      static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes));
    });
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return before_body(request, response);
    });
    const auto handler = [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    };
    constexpr const char* any = "[^]*";
    Get(any, handler).Post(any, handler).Put(any, handler).Patch(any, handler);
    Delete(any, handler).Options(any, handler);
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty() || response.content_length_ != 0) return;  // a route's own
      current_stream->spoil();
      refuse(response, response.status, std::string(why(response.status)));
    });
  }

  /// Many clients may connect at once: the system keeps as many as it can until they are accepted.
  void deepen_queue() { static_cast<void>(::listen(svr_sock_, SOMAXCONN)); }
  /// Takes a socket that listens; returns its port, or -1.
  int adopt(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
    svr_sock_ = socket;
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                               : reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }

  std::atomic<bool> ending{false};

 private:
  /// Why the library refuses a request.
  static std::string_view why(int status) noexcept {
    switch (status) {
      case 404:
        return "there is no such route for this method";
      case 408:
        return "the request was not complete in time";
      case 413:
        return "the body is longer than this server accepts";
      case 414:
        return "the path is too long";
      case 417:
        return "what the header Expect asks for is not done here";
      case 431:
        return "the headers are longer than this server accepts";
      default:
        return status < 500 ? "the request is not HTTP" : "the request could not be answered";
    }
  }
  static void refuse(httplib::Response& response, int status, const std::string& message) {
    response.status = status;
    response.set_content(join("{\"error\":{\"code\":", status, ",\"message\":\"", message,
                              "\",\"type\":\"invalid_request_error\"}}"),
                         "application/json");
  }
  /// Called when the headers were read, before the library looks at them. What is no business of this server is
  /// removed: parts of replies, forms.
  void prepare(httplib::Request& request, SocketStream& stream) {
    RequestBody& body = stream.body;
    body.request = &request;
    request.ranges.clear();
    request.headers.erase("Range");
    request.headers.erase("Content-Type");
    const auto [first, last] = request.headers.equal_range("Content-Length");
    const bool has_length = first != last, chunked = request.has_header("Transfer-Encoding");
    const std::string length = has_length ? first->second : std::string();
    const bool is_number =
        !length.empty() && length.size() < 19 && length.find_first_not_of("0123456789") == std::string::npos;
    body.bytes = is_number ? std::stoull(length) : chunked ? options_.max_body : 0;
    if (has_length && (!is_number || std::next(first) != last || chunked)) {
      body.refuse(400, "Content-Length must be one whole number");
    } else if (request.get_header_value_count("Host") > 1) {  // which one would be checked?
      body.refuse(400, "there must be one header Host");
    } else if (request.has_header("Content-Encoding")) {
      body.refuse(415, "compressed bodies are not read");
    } else if (body.bytes > options_.max_body) {
      body.refuse(413, "the body is longer than this server accepts");
    } else if (!has_length && !chunked && request.method[0] == 'P') {  // POST, PUT, PATCH
      body.refuse(411, "a body needs its length");
    } else if (bodies_.fetch_add(body.bytes) + body.bytes > options_.max_bodies * options_.max_body) {
      bodies_ -= body.bytes;
      open_.end_slow_one();
      body.refuse(503, "the bodies of all requests are too long together; try again");
    } else {
      body.counted = true;
    }
    if (body.status != 0) request.headers.erase("Expect");
    const bool ignored = body.bytes > 0 && request.method[0] != 'P' && request.method != "DELETE";
    if (ignored) stream.spoil();  // bytes that are not read must not count as the next request
    constexpr std::size_t chunk_headers = 65536;
    stream.allow(Clock::now() + options_.body_time, body.bytes + (chunked ? chunk_headers : 0));
  }
  HandlerResponse before_body(const httplib::Request& request, httplib::Response& response) {
    constexpr std::size_t max_path = 1024;  // longer than any route; the library searches paths recursively
    RequestBody& body = current_stream->body;
    if (request.path.size() > max_path) body.refuse(414, "the path is too long");
    if (body.status == 0) return HandlerResponse::Unhandled;
    refuse(response, body.status, std::string(body.why));
    current_stream->spoil();
    return HandlerResponse::Handled;
  }
  void answer(const httplib::Request& from, httplib::Response& to) {
    open_.remove(current_stream->socket());
    RequestBody& body = current_stream->body;
    HttpRequest request{from.method, from.path, {}, {}, std::move(body.request->body)};
    request.open = [its = current_stream] { return its->alive(); };
    for (const auto& [name, value] : from.params) request.query.add(name, value);
    for (const auto& [name, value] : from.headers) request.headers.add(name, value);
    HttpReply reply = handle_(request);
    request.body = {};
    release(body);
    if (reply.later) {
      std::optional<HttpReply> made = reply.later([its = current_stream] { return its->alive(); });
      if (!made) return current_stream->abandon();
      for (const auto& [name, value] : reply.headers.list()) made->headers.add(name, value);
      reply = *std::move(made);
    }
    to.status = reply.status;
    for (const auto& [name, value] : reply.headers.list()) to.set_header(name.c_str(), value);
    if (!reply.stream) return to.set_content(reply.body, reply.type.c_str());
    to.set_chunked_content_provider(reply.type.c_str(), [stream = std::move(reply.stream),
                                                         its = current_stream](std::size_t,
                                                                               httplib::DataSink& sink) {
      bool open = true;
      stream({[&](std::string_view bytes) { return open = open && sink.write(bytes.data(), bytes.size()); },
              [&] { return open = open && its->alive(); }});
      if (open) sink.done();
      return open;
    });
  }

  /// A body is no longer in memory.
  void release(RequestBody& body) {
    if (std::exchange(body.counted, false)) bodies_ -= body.bytes;
  }
  /// One connection, request by request.
  bool process_and_close_socket(socket_t socket) override {
    SocketStream stream(socket, options_.write_time, ending, options_.end_time);
    current_stream = &stream;
    if (too_many) {
      static constexpr std::string_view away =
          "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
          "Content-Length: 92\r\nConnection: close\r\n\r\n"
          "{\"error\":{\"code\":503,\"message\":\"too many connections at a "
          "time\",\"type\":\"unavailable_error\"}}";
      static_cast<void>(::send(socket, away.data(), away.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
      char unread[4096];  // closing with bytes that were not read would take the reply back
      static_cast<void>(::recv(socket, unread, sizeof unread, MSG_DONTWAIT));
    } else {
      bool closed = false, good = true;
      while (good && !closed && !stream.spoilt() && wait_for_request(stream, socket)) {
        stream.allow(Clock::now() + options_.header_time, options_.max_header);
        stream.body = {};
        good = process_one(stream, closed, [&](httplib::Request& request) { prepare(request, stream); });
        open_.remove(socket);
        release(stream.body);
      }
    }
    current_stream = nullptr;
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }
  /// The next request of an idle connection; false: there is none, or the connection was ended for another one.
  bool wait_for_request(SocketStream& stream, int socket) {
    open_.add(socket);
    if (stream.wait(Clock::now() + options_.idle_time)) return open_.begin(socket);
    open_.remove(socket);
    return false;
  }
  /// Newer versions want the addresses of both ends too.
  template <class Stream, class Setup>
  bool process_one(Stream& stream, bool& closed, const Setup& setup) {
    const bool close = ending.load(std::memory_order_relaxed);
    const std::function<void(httplib::Request&)> with = setup;
    if constexpr (requires { this->process_request(stream, close, closed, with); }) {
      return this->process_request(stream, close, closed, with);
    } else {
      return this->process_request(stream, std::string(), 0, std::string(), 0, close, closed, with);
    }
  }

  ListenOptions options_;
  const HttpHandler& handle_;
  OpenConnections open_{options_.max_incomplete_time};
  std::atomic<std::size_t> bodies_{0};  // bytes of the bodies that are read or in use
};

}  // namespace detail

/// Calls on_listening(port, stop), then serves until stop() is called and all replies are written. Raises
/// ErrorCode::failed if it cannot listen on the address.
inline void listen(const ListenOptions& options, const HttpHandler& handle, const OnListening& on_listening) {
  detail::Listener listener(options, handle);
  int port = options.port;
  if (options.socket >= 0) {
    port = listener.adopt(options.socket);
  } else if (port == 0) {
    port = listener.bind_to_any_port(options.host);
  } else if (!listener.bind_to_port(options.host, port)) {
    port = -1;
  }
  MICA_CHECK(port > 0, failed, "cannot listen on ", options.host, ", port ", options.port,
             ": it is in use, or not an address of this machine; choose another one (--host, --port)");
  listener.deepen_queue();
  on_listening(port, [&listener] {
    listener.ending = true;
    listener.stop();
  });
  MICA_CHECK(listener.listen_after_bind() || listener.ending, failed, "port ", port,
             ": the system accepts no further connections");
}

}  // namespace mica::serve
