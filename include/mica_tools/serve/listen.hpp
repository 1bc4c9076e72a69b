// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 over TCP, by cpp-httplib: include it in one .cpp of a program. The library parses and writes; sockets
// are read here, so that a slow client has a time for each request and not for each byte, and so that a client
// that has left is noticed before something is written to it.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/serve/listen_options.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mica::serve {

namespace detail {

using Clock = std::chrono::steady_clock;

/// The bytes of one connection. The functions of all supported versions of the library; one that a version does
/// not have overrides nothing.
class SocketStream final : public httplib::Stream {
 public:
  SocketStream(int socket, std::chrono::seconds write_time) : socket_(socket), write_time_(write_time) {}

  /// Bytes that come later, or are more than these, are not read.
  void allow(Clock::time_point deadline, std::size_t bytes) noexcept {
    deadline_ = deadline;
    bytes_ = bytes;
  }
  /// The rest of the connection cannot be read as requests.
  void spoil() noexcept { spoilt_ = true; }
  [[nodiscard]] bool spoilt() const noexcept { return spoilt_; }
  /// Waits for the first byte of a request; false: none came, or the client has left.
  [[nodiscard]] bool wait(Clock::time_point deadline, const std::atomic<bool>& ending) const {
    while (begin_ == end_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0 || ending.load(std::memory_order_relaxed)) return false;
      constexpr std::int64_t ending_is_noticed_ms = 200;
      pollfd waits{socket_, POLLIN, 0};
      const int ready = ::poll(&waits, 1, static_cast<int>(std::min(left.count(), ending_is_noticed_ms)));
      if (ready > 0) return (waits.revents & (POLLERR | POLLNVAL)) == 0 && alive();
      if (ready < 0 && errno != EINTR) return false;
    }
    return true;
  }
  /// Whether the client is still there: it has neither closed nor half closed the connection.
  [[nodiscard]] bool alive() const noexcept {
    char byte = 0;
    const ssize_t n = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
  }

  // Required by httplib::Stream
  bool is_readable() const { return begin_ != end_ || alive(); }
  bool is_writable() const { return alive(); }
  bool wait_readable() const { return true; }
  bool wait_writable() const { return alive(); }
  ssize_t read(char* to, std::size_t size) {
    if (begin_ == end_ && !fill()) return -1;
    const std::size_t n = std::min(size, end_ - begin_);
    std::copy_n(buffer_ + begin_, n, to);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* bytes, std::size_t size) {
    std::size_t done = 0;
    const auto deadline = Clock::now() + write_time_;
    while (done < size) {
      const ssize_t n = ::send(socket_, bytes + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        done += static_cast<std::size_t>(n);
      } else if (!retry(POLLOUT, deadline)) {
        return -1;
      }
    }
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}
  socket_t socket() const { return socket_; }
  time_t duration() const { return 0; }

 private:
  [[nodiscard]] bool fill() {
    while (bytes_ > 0 && Clock::now() < deadline_) {
      const ssize_t n = ::recv(socket_, buffer_, std::min(bytes_, sizeof buffer_), MSG_DONTWAIT);
      if (n > 0) {
        bytes_ -= static_cast<std::size_t>(n);
        begin_ = 0;
        end_ = static_cast<std::size_t>(n);
        return true;
      }
      if (n == 0 || !retry(POLLIN, deadline_)) break;
    }
    spoilt_ = true;
    return false;
  }
  /// After a call that did nothing: whether it may do something now.
  [[nodiscard]] bool retry(short events, Clock::time_point deadline) const {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return false;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return false;
      pollfd waits{socket_, events, 0};
      constexpr std::int64_t max_ms = 1000;
      const int ready = ::poll(&waits, 1, static_cast<int>(std::min(left.count(), max_ms)));
      if (ready > 0) return (waits.revents & POLLNVAL) == 0;
      if (ready < 0 && errno != EINTR) return false;
    }
  }

  int socket_;
  std::chrono::seconds write_time_;
  Clock::time_point deadline_ = {};
  std::size_t bytes_ = 0;  // that may still be read
  char buffer_[4096];
  std::size_t begin_ = 0, end_ = 0;
  bool spoilt_ = false;
};

/// What is known of the body of a request before it is read.
struct Body {
  std::size_t bytes = 0;
  bool counted = false;       // among those of all requests
  int status = 0;             // of a refusal; 0: it is read
  std::string_view why = {};  // it is refused

  void refuse(int with, std::string_view reason) noexcept {
    status = with;
    why = reason;
  }
};
/// That of the request of this thread.
inline thread_local Body* current_body = nullptr;
/// The connection of this thread.
inline thread_local SocketStream* current_stream = nullptr;
/// Set while a connection is to be sent away.
inline thread_local bool too_many = false;

/// Connections between two requests.
class IdleConnections {
 public:
  void add(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
  }
  /// False: it was closed meanwhile.
  [[nodiscard]] bool remove(int socket) {
    const std::lock_guard lock(mutex_);
    return std::erase(sockets_, socket) != 0;
  }
  /// Ends the one that has been idle longest, for another connection; false: there is none.
  bool end_one() {
    const std::lock_guard lock(mutex_);
    if (sockets_.empty()) return false;
    ::shutdown(sockets_.front(), SHUT_RDWR);
    sockets_.erase(sockets_.begin());
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<int> sockets_;  // the longest idle first
};

/// Threads for connections, made as they are needed. A connection beyond their number takes the place of an idle one,
/// or is sent away at once.
class Threads final : public httplib::TaskQueue {
 public:
  Threads(std::size_t max, IdleConnections& idle_connections)
      : max_(max), idle_connections_(idle_connections) {}

  void take(std::function<void()> connection) {
    std::unique_lock lock(mutex_);
    if (idle_ <= jobs_.size() && threads_.size() == max_ && !idle_connections_.end_one()) {
      lock.unlock();
      too_many = true;
      connection();
      too_many = false;
      return;
    }
    jobs_.push_back(std::move(connection));
    if (idle_ < jobs_.size() && threads_.size() < max_) threads_.emplace_back([this] { work(); });
    lock.unlock();
    filled_.notify_one();
  }
  // Required by httplib::TaskQueue; void in older versions, bool in newer ones
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));
  Enqueued enqueue(std::function<void()> connection) override {
    take(std::move(connection));
    return Enqueued(true);
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    filled_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      filled_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
      --idle_;
      if (jobs_.empty()) return;
      const auto connection = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      connection();
      lock.lock();
    }
  }

  std::size_t max_;
  IdleConnections& idle_connections_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ends_ = false;
};

class Listener final : public httplib::Server {
 public:
  Listener(const ListenOptions& options, const HttpHandler& handle) : options_(options), handle_(handle) {
    new_task_queue = [this] { return std::make_unique<Threads>(options_.connections, idle_).release(); };
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
      if (current_stream != nullptr) current_stream->spoil();
      refuse(
          response, response.status,
          response.status == 413 ? "the body is longer than this server accepts" : "the request is not HTTP");
    });
  }

  /// A burst of clients waits in the system and is not sent away by it.
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
  static void refuse(httplib::Response& response, int status, const std::string& message) {
    response.status = status;
    response.set_content(join("{\"error\":{\"code\":", status, ",\"message\":\"", message,
                              "\",\"type\":\"invalid_request_error\"}}"),
                         "application/json");
  }
  /// Called when the headers were read, before the library looks at them. What is no business of this server is
  /// removed: parts of replies, forms.
  void prepare(httplib::Request& request, Body& body) {
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
    } else if (request.has_header("Content-Encoding")) {
      body.refuse(415, "compressed bodies are not read");
    } else if (body.bytes > options_.max_body) {
      body.refuse(413, "the body is longer than this server accepts");
    } else if (!has_length && !chunked && request.method[0] == 'P') {  // POST, PUT, PATCH
      body.refuse(411, "a body needs its length");
    } else if (bodies_.fetch_add(body.bytes) + body.bytes > options_.max_bodies * options_.max_body) {
      bodies_ -= body.bytes;
      body.refuse(503, "the bodies of all requests are too long together; try again");
    } else {
      body.counted = true;
    }
    if (body.status != 0) request.headers.erase("Expect");
    const bool ignored = body.bytes > 0 && request.method[0] != 'P' && request.method != "DELETE";
    if (ignored) current_stream->spoil();  // bytes that nobody reads are not the next request
    constexpr std::size_t chunk_headers = 65536;
    current_stream->allow(Clock::now() + options_.body_time, body.bytes + (chunked ? chunk_headers : 0));
    current_body = &body;
  }
  HandlerResponse before_body(const httplib::Request& request, httplib::Response& response) {
    constexpr std::size_t max_path = 1024;  // longer than any route; the library searches paths recursively
    if (request.path.size() > max_path) current_body->refuse(414, "the path is too long");
    if (current_body->status == 0) return HandlerResponse::Unhandled;
    refuse(response, current_body->status, std::string(current_body->why));
    current_stream->spoil();
    return HandlerResponse::Handled;
  }
  void answer(const httplib::Request& from, httplib::Response& to) const {
    HttpRequest request{from.method, from.path, {}, {}, from.body};
    for (const auto& [name, value] : from.params) request.query.add(name, value);
    for (const auto& [name, value] : from.headers) request.headers.add(name, value);
    HttpReply reply = handle_(request);
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

  /// One connection, request by request.
  bool process_and_close_socket(socket_t socket) override {
    SocketStream stream(socket, options_.write_time);
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
        Body body;
        good = process_one(stream, closed, [&](httplib::Request& request) { prepare(request, body); });
        if (body.counted) bodies_ -= body.bytes;
        current_body = nullptr;
      }
    }
    current_stream = nullptr;
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
  }
  /// The next request of an idle connection; false: there is none, or the connection was ended for another one.
  bool wait_for_request(SocketStream& stream, int socket) {
    idle_.add(socket);
    const bool came = stream.wait(Clock::now() + options_.idle_time, ending);
    return idle_.remove(socket) && came;
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
  IdleConnections idle_;
  std::atomic<std::size_t> bodies_{0};  // bytes of the bodies that are read or in use
};

}  // namespace detail

/// Serves until the function that on_listening gets is called, and then until all replies are written. Raises
/// ErrorCode::failed if the address cannot be had.
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
  listener.listen_after_bind();
}

}  // namespace mica::serve
