// SPDX-License-Identifier: Apache-2.0
//
// Connections of cpp-httplib before version 0.19 (Debian 12 has 0.11.4), whose own ones have two faults.
// Before 0.12.4 header fields are decoded, which changes the signed links of redirects; and before 0.20 lines
// of any length are read and matched, which can overflow the stack. So the bytes of a header are checked,
// limited and stored as they arrive.
//
// Limit: in 0.16 to 0.18 the encrypted ones, and in 0.19 all, cannot be replaced: there a malicious server
// can end the program.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

namespace mica::remote::detail {

/// N of cpp-httplib 0.N.
[[nodiscard]] constexpr int httplib_version() noexcept {
  constexpr std::string_view text = CPPHTTPLIB_VERSION;
  int n = 0;
  for (const char c : text.substr(text.find('.') + 1)) {
    if (c < '0' || c > '9') break;
    n = 10 * n + (c - '0');
  }
  return text.starts_with("0.") ? n : 1000;
}

/// A header, unchanged. Empty where the library's own reader is used.
class RawHead {
 public:
  void begin() {
    text_.clear();
    line_ = 0;
    over_ = false;
  }
  /// The rest is the body.
  void end() noexcept { over_ = true; }
  [[nodiscard]] bool is_over() const noexcept { return over_; }
  /// False when a line or the header is longer than allowed.
  [[nodiscard]] bool add(std::string_view bytes) {
    if (over_) return true;
    for (const char c : bytes) {
      line_ = c == '\n' ? 0 : line_ + 1;
      text_ += c;
      const bool is_status = text_.size() == line_;
      if (line_ > (is_status ? 1024u : 8192u) || text_.size() > (1u << 16)) return false;
    }
    return true;
  }
  /// The value of a field, not decoded. Requires a name in lower case.
  [[nodiscard]] std::string field(std::string_view name) const {
    const auto same = [](char c, char wanted) {
      return std::tolower(static_cast<unsigned char>(c)) == wanted;
    };
    for (std::size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1)) {
      const std::string_view line = std::string_view(text_).substr(at + 1, text_.find("\r\n", at) - at - 1);
      if (line.size() <= name.size() || line[name.size()] != ':') continue;
      if (!std::equal(name.begin(), name.end(), line.begin(), [&](char n, char c) { return same(c, n); }))
        continue;
      const std::string_view said = line.substr(name.size() + 1);
      const std::size_t first = said.find_first_not_of(" \t"), last = said.find_last_not_of(" \t");
      return first == std::string_view::npos ? std::string()
                                             : std::string(said.substr(first, last - first + 1));
    }
    return {};
  }

 private:
  std::string text_;
  std::size_t line_ = 0;  // bytes since its beginning
  bool over_ = false;
};

#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)
using Tls = SSL;
#else
using Tls = void;
#endif

/// A connection, plain or encrypted, whose reads end after a silence. `Stream` is httplib::Stream, of a
/// version that has these members.
template <class Stream>
class WatchedStream final : public Stream {
 public:
  WatchedStream(socket_t socket, Tls* tls, RawHead& head, std::chrono::milliseconds silence)
      : socket_(socket), tls_(tls), head_(head), silence_(silence) {
    head_.begin();
  }

  // Required by httplib::Stream
  bool is_readable() const override { return is_ready(POLLIN); }
  bool is_writable() const override { return is_ready(POLLOUT); }
  ssize_t read(char* to, std::size_t size) override {
    if (at_ == end_) {
      const ssize_t got = receive();
      if (got <= 0) return head_.is_over() ? got : -1;
      at_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    const std::size_t n = std::min(size, end_ - at_);
    if (!head_.add({buffer_.data() + at_, n})) return -1;
    std::memcpy(to, buffer_.data() + at_, n);
    at_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, std::size_t size) override {
    if (!is_writable()) return -1;
#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)
    if (tls_ != nullptr) return SSL_write(tls_, from, static_cast<int>(size));
#endif
    return ::send(socket_, from, size, 0);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  [[nodiscard]] bool is_ready(short what) const {
    ::pollfd one{socket_, what, 0};
    return ::poll(&one, 1, static_cast<int>(silence_.count())) > 0;
  }
  [[nodiscard]] ssize_t receive() {
#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)
    if (tls_ != nullptr) {
      if (SSL_pending(tls_) == 0 && !is_readable()) return -1;
      return SSL_read(tls_, buffer_.data(), static_cast<int>(buffer_.size()));
    }
#endif
    return is_readable() ? ::recv(socket_, buffer_.data(), buffer_.size(), 0) : -1;
  }

  socket_t socket_;
  Tls* tls_;  // null: not encrypted
  RawHead& head_;
  std::chrono::milliseconds silence_;
  std::array<char, 16384> buffer_;
  std::size_t at_ = 0, end_ = 0;  // of what was received and not read
};

/// A client of the library that reads by such streams.
template <class Base, class Stream>
class Watched final : public Base {
 public:
  Watched(const std::string& host, int port, RawHead& head, std::chrono::milliseconds silence)
      : Base(host, port), head_(head), silence_(silence) {}

 private:
  bool process_socket(const typename Base::Socket& socket, std::function<bool(Stream&)> callback) override {
#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)
    WatchedStream<Stream> stream(socket.sock, socket.ssl, head_, silence_);
#else
    WatchedStream<Stream> stream(socket.sock, nullptr, head_, silence_);
#endif
    return callback(stream);
  }

  RawHead& head_;
  std::chrono::milliseconds silence_;
};

/// A client of a server, of whichever kind the version needs. Requires that the library has TLS if it is to
/// be encrypted.
template <int Version = httplib_version()>
[[nodiscard]] std::unique_ptr<httplib::ClientImpl> make_client(bool encrypted, const std::string& host,
                                                               int port, RawHead& head,
                                                               std::chrono::milliseconds silence) {
  const auto make = [&]<class Base>(std::type_identity<Base>) -> std::unique_ptr<httplib::ClientImpl> {
    if constexpr (Version < 19 && !std::is_final_v<Base>) {
      return std::make_unique<Watched<Base, httplib::Stream>>(host, port, head, silence);
    } else {
      return std::make_unique<Base>(host, port);
    }
  };
#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)
  if (encrypted) return make(std::type_identity<httplib::SSLClient>());
#endif
  static_cast<void>(encrypted);
  return make(std::type_identity<httplib::ClientImpl>());
}

}  // namespace mica::remote::detail
