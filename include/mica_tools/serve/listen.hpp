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

  /// Bytes that come later are not read.
  void set_deadline(Clock::time_point deadline) noexcept { deadline_ = deadline; }
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
    while (Clock::now() < deadline_) {
      const ssize_t n = ::recv(socket_, buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (n > 0) {
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
  char buffer_[4096];
  std::size_t begin_ = 0, end_ = 0;
  bool spoilt_ = false;
};

/// The connection of this thread.
inline thread_local SocketStream* current_stream = nullptr;
/// Set while a connection is to be sent away.
inline thread_local bool too_many = false;

/// Threads for connections, made as they are needed. A connection beyond their number is sent away at once.
class Threads final : public httplib::TaskQueue {
 public:
  explicit Threads(std::size_t max) : max_(max) {}

  void take(std::function<void()> connection) {
    std::unique_lock lock(mutex_);
    if (idle_ <= jobs_.size() && threads_.size() == max_) {
      lock.unlock();
      too_many = true;
      connection();
      too_many = false;
      return;
    }
    jobs_.push_back(std::move(connection));
    if (idle_ < jobs_.size()) threads_.emplace_back([this] { work(); });
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
    new_task_queue = [max = options_.connections] { return std::make_unique<Threads>(max).release(); };
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
  HandlerResponse before_body(const httplib::Request& request, httplib::Response& response) {
    constexpr std::size_t max_path = 1024;  // longer than any route; the library searches paths recursively
    if (current_stream != nullptr) current_stream->set_deadline(Clock::now() + options_.body_time);
    if (request.path.size() <= max_path) return HandlerResponse::Unhandled;
    refuse(response, 414, "the path is too long");
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
      while (good && !closed && !stream.spoilt() && stream.wait(Clock::now() + options_.idle_time, ending)) {
        stream.set_deadline(Clock::now() + options_.header_time);
        good = process_one(stream, closed, [](httplib::Request&) {});
      }
    }
    current_stream = nullptr;
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return true;
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
  on_listening(port, [&listener] {
    listener.ending = true;
    listener.stop();
  });
  listener.listen_after_bind();
}

}  // namespace mica::serve
