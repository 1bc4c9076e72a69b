// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the replies of a server to requests for parts of a file; replies follow each other by lines
// with --- alone, and the last one again and again. Refused by an error, or a header within the promised
// memory. The first line is the target of a redirect. No redirect is followed here, so that nothing leaves
// this machine.

#include "fuzz/heap.hpp"
#include "fuzz/input.hpp"
#include "mica_tools/remote/open.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <sys/socket.h>
#include <unistd.h>

namespace mica::fuzz::range_reply_fuzz {
namespace {

/// Listens on this machine, and sends the next reply to each request; the connection then ends.
class Server {
 public:
  Server() {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    require(::bind(socket_, any, size) == 0 && ::listen(socket_, 16) == 0 &&
                ::getsockname(socket_, any, &size) == 0,
            "this machine has a free port");
    port_ = ntohs(address.sin_port);
    std::thread([this] { serve(); }).detach();
  }

  [[nodiscard]] int port() const { return port_; }
  void set(std::string_view replies) {
    const std::lock_guard lock(mutex_);
    replies_ = replies;
  }

 private:
  [[noreturn]] void serve() {
    while (true) {
      const int peer = ::accept(socket_, nullptr, nullptr);
      char request[4096];
      std::string got;
      for (::ssize_t n = 0; got.find("\r\n\r\n") == std::string::npos;
           got.append(request, static_cast<std::size_t>(n))) {
        n = ::recv(peer, request, sizeof request, 0);
        if (n <= 0) break;
      }
      const std::string reply = next();
      static_cast<void>(::send(peer, reply.data(), reply.size(), MSG_NOSIGNAL));
      ::shutdown(peer, SHUT_WR);
      while (::recv(peer, request, sizeof request, 0) > 0) {
      }
      ::close(peer);
    }
  }
  std::string next() {
    const std::lock_guard lock(mutex_);
    const std::size_t end = replies_.find("\n---\n");
    std::string reply = replies_.substr(0, end);
    if (end != std::string::npos) replies_.erase(0, end + 5);
    return reply;
  }

  int socket_ = -1, port_ = 0;
  std::mutex mutex_;
  std::string replies_;
};

void check_redirect(const std::string& location) {
  accepted([&] {
    const remote::Url to = remote::Url::parse("https://user:word@host.org/a/b?c").resolved(location);
    require(to.scheme == "http" || to.scheme == "https", "a redirect leads to a known scheme");
    require(!to.host.empty() && to.port != 0 && to.path.starts_with('/'), "a URL has its parts");
    const std::string written = join(to.origin(), to.target());
    require(remote::Url::parse(written).shown() == to.shown(),
            "a URL that was written is read again: " + written);
    for (const char c : join(to.authority(), to.target()))
      require(c > 0x20 && c < 0x7F, "nothing of a URL breaks the lines of a request");
  });
}

void run(std::string_view text) {
  static Server server;
  const std::size_t line = std::min(text.find('\n'), text.size());
  check_redirect(std::string(text.substr(0, line)));
  text.remove_prefix(std::min(text.size(), line + 1));
  server.set(text);
  remote::Options options;
  options.tries = 1;
  options.redirects = 0;
  options.first_bytes = 256;
  options.piece_bytes = 1024;
  options.silence = options.connect = options.answer = std::chrono::milliseconds(1000);
  accepted_within(text.size(), [&] {
    static_cast<void>(remote::open(join("http://127.0.0.1:", server.port(), "/m.gguf"), options));
  });
}

}  // namespace

MICA_FUZZ_TARGET(range_reply) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}

}  // namespace mica::fuzz::range_reply_fuzz
