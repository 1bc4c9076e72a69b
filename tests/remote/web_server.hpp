// SPDX-License-Identifier: Apache-2.0
//
// A web server for tests, on a socket and a thread of its own: it says byte for byte what a test wants, keeps
// what it was asked, and counts what it sent. Nothing in it knows how to be right; files are served by
// serve().

#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/remote/detail/head.hpp"
#include "mica_tools/remote/url.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mica::test {

#if defined(MSG_NOSIGNAL)
inline constexpr int no_signal = MSG_NOSIGNAL;
#else
inline constexpr int no_signal = 0;
#endif

/// One request, as it came.
struct Asked {
  std::string target;
  std::map<std::string, std::string> fields;  // names in lower case
  std::uint64_t first = 0;                    // of the range
  std::uint64_t last = 0;

  [[nodiscard]] std::string field(const std::string& name) const {
    const auto at = fields.find(name);
    return at == fields.end() ? std::string() : at->second;
  }
};

/// The connection, as whoever answers sees it.
class Peer {
 public:
  Peer(int socket, int stop, std::atomic<std::uint64_t>& sent) : socket_(socket), stop_(stop), sent_(sent) {}

  void send(std::string_view text) {
    while (open_ && !text.empty()) {
      const ::ssize_t n = ::send(socket_, text.data(), text.size(), no_signal);
      if (n <= 0) open_ = false;
      if (n <= 0) return;
      sent_ += static_cast<std::uint64_t>(n);
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  /// No more answers on this connection.
  void close() { open_ = false; }
  /// Ends it as a machine does that was switched off: without a word.
  void reset() {
    const ::linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    open_ = false;
  }
  /// Says nothing until the client goes, the server ends, or so many milliseconds are over.
  void wait(int ms = 20'000) {
    ::pollfd both[] = {{socket_, POLLIN, 0}, {stop_, POLLIN, 0}};
    if (::poll(both, 2, ms) > 0) open_ = false;
  }
  [[nodiscard]] bool is_open() const { return open_; }

 private:
  int socket_, stop_;
  std::atomic<std::uint64_t>& sent_;
  bool open_ = true;
};

using Answer = std::function<void(const Asked&, Peer&)>;

/// Answers one connection after the other until it goes, or each on a thread of its own.
class WebServer {
 public:
  enum class Connections : std::uint8_t { one, many };

  explicit WebServer(Answer answer, Connections connections = Connections::one)
      : answer_(std::move(answer)), connections_(connections) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::socklen_t size = sizeof address;
    REQUIRE(::bind(listener_, reinterpret_cast<::sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_, 16) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<::sockaddr*>(&address), &size) == 0);
    REQUIRE(::pipe(stop_) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;
  ~WebServer() {
    stop();
    ::close(stop_[0]);
    ::close(stop_[1]);
  }

  /// Nobody listens any more.
  void stop() {
    if (!thread_.joinable()) return;
    static_cast<void>(::write(stop_[1], "x", 1));
    thread_.join();
    for (std::thread& each : threads_) each.join();
    ::close(listener_);
  }
  [[nodiscard]] std::string origin() const { return join("http://127.0.0.1:", port_); }
  [[nodiscard]] std::string url(std::string_view path) const { return join(origin(), path); }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::vector<Asked> asked() const {
    const std::lock_guard lock(mutex_);
    return requested_;
  }

 private:
  void run() {
    for (;;) {
      ::pollfd both[] = {{listener_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
      if (::poll(both, 2, -1) < 0 || both[1].revents != 0) return;
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) continue;
      if (connections_ == Connections::one) {
        serve_one(socket);
      } else {
        threads_.emplace_back([this, socket] { serve_one(socket); });
      }
    }
  }
  void serve_one(int socket) {
    Peer peer(socket, stop_[0], sent_);
    for (std::string text; peer.is_open() && read_request(socket, text);) {
      const Asked asked = parse(text);
      {
        const std::lock_guard lock(mutex_);
        requested_.push_back(asked);
      }
      answer_(asked, peer);
      text.clear();
    }
    ::close(socket);
  }
  /// Until an empty line; false when the client has gone.
  bool read_request(int socket, std::string& text) {
    while (!text.ends_with("\r\n\r\n")) {
      ::pollfd both[] = {{socket, POLLIN, 0}, {stop_[0], POLLIN, 0}};
      char byte = 0;
      if (::poll(both, 2, -1) < 0 || both[1].revents != 0 || ::recv(socket, &byte, 1, 0) != 1) return false;
      text += byte;
    }
    return true;
  }
  static Asked parse(std::string_view text) {
    Asked asked;
    const std::size_t begin = text.find(' ') + 1;
    asked.target = text.substr(begin, text.find(' ', begin) - begin);
    for (std::size_t at = text.find("\r\n") + 2; text.substr(at) != "\r\n"; at = text.find("\r\n", at) + 2) {
      const std::string_view line = text.substr(at, text.find("\r\n", at) - at);
      const std::size_t colon = line.find(": ");
      asked.fields[remote::detail::lower(line.substr(0, colon))] = line.substr(colon + 2);
    }
    const std::string range = asked.field("range");  // bytes=0-65535
    if (const std::size_t dash = range.find('-'); dash != std::string::npos) {
      asked.first = std::stoull(range.substr(6));
      asked.last = std::stoull(range.substr(dash + 1));
    }
    return asked;
  }

  Answer answer_;
  Connections connections_;
  int listener_ = -1;
  int stop_[2] = {-1, -1};
  std::uint16_t port_ = 0;
  std::atomic<std::uint64_t> sent_ = 0;
  mutable std::mutex mutex_;
  std::vector<Asked> requested_;
  std::vector<std::thread> threads_;  // of connections
  std::thread thread_;
};

/// A file that a server pretends to have: bytes, and zeros after them as far as its size goes.
struct WebFile {
  std::vector<std::byte> bytes;
  std::uint64_t size = 0;
  std::string fields = "ETag: \"one\"\r\n";

  explicit WebFile(std::vector<std::byte> all) : bytes(std::move(all)), size(bytes.size()) {}
  WebFile(std::vector<std::byte> begin, std::uint64_t whole) : bytes(std::move(begin)), size(whole) {}

  [[nodiscard]] std::string part(std::uint64_t first, std::uint64_t last) const {
    std::string out(static_cast<std::size_t>(last - first + 1), '\0');
    if (first >= bytes.size()) return out;
    std::memcpy(out.data(), bytes.data() + first,
                static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), bytes.size() - first)));
    return out;
  }
};

/// An answer of a status with fields, each ended by \r\n, and a body with its length.
inline std::string answer_text(std::string_view status, std::string_view fields, std::string_view body = {}) {
  return join("HTTP/1.1 ", status, "\r\n", fields, "Content-Length: ", body.size(), "\r\n\r\n", body);
}

/// The range that was asked for, as a good server gives it.
inline std::string range_text(const Asked& asked, const WebFile& file) {
  const std::uint64_t last = std::min(asked.last, file.size - 1);
  return answer_text(
      "206 Partial Content",
      join("Content-Range: bytes ", asked.first, "-", last, "/", file.size, "\r\n", file.fields),
      file.part(asked.first, last));
}

/// A good server of files by their paths; everything else is 404.
inline Answer serve(std::map<std::string, WebFile> files) {
  return [files = std::move(files)](const Asked& asked, Peer& peer) {
    const auto at = files.find(asked.target.substr(0, asked.target.find('?')));
    if (at == files.end()) return peer.send(answer_text("404 Not Found", "", "not here"));
    peer.send(range_text(asked, at->second));
  };
}

}  // namespace mica::test
