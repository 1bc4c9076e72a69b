// SPDX-License-Identifier: Apache-2.0
//
// HTTP as clients send it, good ones and bad ones, over real sockets.

#if defined(MICA_HAS_SERVER)
#include "mica_tools/http/listen.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>

#include <atomic>
#include <string>
#include <thread>

namespace mica::test::listen_test {
namespace {

using namespace serve;
using namespace std::chrono_literals;

/// A server on a free port of this machine.
class Served {
 public:
  explicit Served(ListenOptions options, HttpHandler handle) : handle_(std::move(handle)) {
    options.port = 0;
    thread_ = std::thread([this, options] {
      listen(options, handle_, [this](int port, std::function<void()> stop) {
        stop_ = std::move(stop);
        port_ = port;
      });
    });
    while (port_ == 0) std::this_thread::yield();
  }
  ~Served() { finish(); }
  void finish() {
    if (!thread_.joinable()) return;
    stop_();
    thread_.join();
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  HttpHandler handle_;
  std::function<void()> stop_;
  std::atomic<int> port_{0};
  std::thread thread_;
};

/// A connection of a client.
class Client {
 public:
  explicit Client(const Served& server) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(server.port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  Client(const Client&) = delete;
  ~Client() { leave(); }
  bool send(std::string_view text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// All bytes until these came, or the server has closed the connection.
  std::string read_to(std::string_view end) {
    while (read_.find(end) == std::string::npos) {
      char bytes[4096];
      const ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
      if (n <= 0) break;
      read_.append(bytes, static_cast<std::size_t>(n));
    }
    return read_;
  }
  /// Whether the server closes the connection.
  bool closed() {
    char bytes[4096];
    ssize_t n = 0;
    while ((n = ::recv(socket_, bytes, sizeof bytes, 0)) > 0)
      read_.append(bytes, static_cast<std::size_t>(n));
    return n == 0 || errno == ECONNRESET;
  }
  void end_sending() const { ::shutdown(socket_, SHUT_WR); }
  void leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
  std::string read_;
};

HttpReply echo(const HttpRequest& request) {
  HttpReply reply;
  reply.type = "text/plain";
  reply.body = join(request.method, " ", request.path, " ", request.query.get("q"), " ",
                    request.headers.get("X-Thing"), " ", request.body);
  return reply;
}

}  // namespace

TEST_CASE("a request reaches its route whole, and a connection serves several") {
  Served server({}, echo);
  Client client(server);
  CHECK(client.send("GET /a%20b?q=1+2 HTTP/1.1\r\nHost: x\r\nx-thing: y\r\n\r\n"));
  const std::string first = client.read_to("GET /a b 1 2 y ");
  CHECK(first.starts_with("HTTP/1.1 200"));
  CHECK(first.find("Content-Type: text/plain") != std::string::npos);
  CHECK(client.send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"));
  CHECK(client.send("llo"));
  CHECK(client.read_to("POST /p   hello").ends_with("POST /p   hello"));
}

TEST_CASE("a stream is written piece by piece, and a client that leaves is noticed before the next one") {
  std::atomic<int> pieces{0};
  std::atomic<bool> noticed{false};
  Served server({}, [&](const HttpRequest&) {
    HttpReply reply;
    reply.type = "text/event-stream";
    reply.stream = [&](const Connection& connection) {
      for (int i = 0; i < 2000 && connection.open(); ++i) {
        if (pieces < 3) pieces += connection.write(join("data: ", i, "\n\n")) ? 1 : 0;
        std::this_thread::sleep_for(5ms);
      }
      noticed = !connection.open();
    };
    return reply;
  });
  Client client(server);
  CHECK(client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  const std::string text = client.read_to("data: 2");
  CHECK(text.find("Transfer-Encoding: chunked") != std::string::npos);
  CHECK(text.find("data: 0") != std::string::npos);
  client.leave();
  const auto begin = std::chrono::steady_clock::now();
  while (!noticed && std::chrono::steady_clock::now() - begin < 5s) std::this_thread::sleep_for(1ms);
  CHECK(noticed);
  CHECK(pieces == 3);
}

TEST_CASE("requests that are too slow, too long or no HTTP end with an answer or a closed connection") {
  ListenOptions options;
  options.max_body = 1000;
  options.header_time = 1s;
  options.body_time = 1s;
  options.idle_time = 1s;
  Served server(options, echo);
  Client silent(server), slow(server), half(server);
  CHECK(slow.send("GET / HTTP/1.1\r\nHost: x\r\n"));
  CHECK(half.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc"));
  for (int i = 0; i < 30 && slow.send("A: b\r\n"); ++i) std::this_thread::sleep_for(100ms);
  CHECK(slow.closed());
  CHECK(half.closed());
  CHECK(silent.closed());

  const auto reply_to = [&](const std::string& request) {
    Client client(server);
    static_cast<void>(client.send(request));
    return client.read_to("}");
  };
  CHECK(reply_to("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n" + std::string(5000, 'x'))
            .starts_with("HTTP/1.1 413"));
  CHECK(reply_to("GET /" + std::string(3000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n")
            .starts_with("HTTP/1.1 414"));
  CHECK(reply_to("nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
  CHECK(reply_to("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n").starts_with("HTTP/1.1 400"));
  CHECK(reply_to("GET / HTTP/1.1\r\n" + std::string(9000, 'a') + ": b\r\n\r\n").starts_with("HTTP/1.1 400"));
  Client good(server);
  CHECK(good.send("GET /still HTTP/1.1\r\nHost: x\r\n\r\n"));
  CHECK(good.read_to("GET /still").starts_with("HTTP/1.1 200"));
}

TEST_CASE(
    "a connection beyond the limit takes the place of an idle one, and is sent away where none is idle") {
  ListenOptions options;
  options.connections = 3;
  std::atomic<bool> go{false};
  std::atomic<int> waiting{0};
  Served server(options, [&](const HttpRequest& request) {
    if (request.path != "/wait") return echo(request);
    ++waiting;
    while (!go) std::this_thread::sleep_for(1ms);
    return echo(request);
  });
  Client a(server), b(server), c(server);
  for (Client* client : {&a, &b, &c}) CHECK(client->send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"));
  for (Client* client : {&a, &b, &c}) CHECK(client->read_to("GET /x").starts_with("HTTP/1.1 200"));
  Client d(server);
  CHECK(d.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
  const auto wait_for = [&](int n) {
    for (int i = 0; i < 5000 && waiting < n; ++i) std::this_thread::sleep_for(1ms);
    REQUIRE(waiting == n);
  };
  wait_for(1);
  Client e(server), f(server);
  for (Client* client : {&e, &f}) CHECK(client->send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
  wait_for(3);
  for (Client* client : {&a, &b, &c}) CHECK(client->closed());
  Client g(server);
  CHECK(g.read_to("unavailable_error").starts_with("HTTP/1.1 503"));
  go = true;
  for (Client* client : {&d, &e, &f}) CHECK(client->read_to("GET /wait").starts_with("HTTP/1.1 200"));
}

TEST_CASE("a request that is not whole for too long makes room for another connection") {
  ListenOptions options;
  options.connections = 1;
  options.max_incomplete_time = 0ms;
  options.header_time = options.body_time = 600s;
  Served server(options, echo);
  for (const char* part :
       {"GET /x HTTP/1.1\r\nHo", "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"}) {
    Client slow(server);
    CHECK(slow.send(part));
    std::this_thread::sleep_for(50ms);  // it is no longer idle
    Client client(server);
    CHECK(client.send("GET /y HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    CHECK(client.read_to("GET /y").starts_with("HTTP/1.1 200"));
    CHECK(slow.closed());
  }
}

TEST_CASE("headers and bodies are bounded before they are read") {
  ListenOptions options;
  options.max_body = 20000;
  Served server(options, echo);
  const auto status = [&](const std::string& request) {
    Client client(server);
    static_cast<void>(client.send(request));
    return client.read_to("\r\n").substr(9, 3);
  };
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 20000; ++i) many += join("A", i, ": ", std::string(50, 'a'), "\r\n");
  CHECK(status(many + "\r\n") == "400");
  CHECK(status("GET / HTTP/1.1\r\nA: " + std::string(1000000, 'a') + "\r\n\r\n") == "400");
  CHECK(status(post + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc") == "415");
  CHECK(status(post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd") == "400");
  for (const char* const length : {"-1", "+3", "3 a", "0x3", "99999999999999999999"})
    CHECK(status(post + "Content-Length: " + length + "\r\n\r\nabc") == "400");
  CHECK(status(post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n") ==
        "400");
  CHECK(status(post + "Content-Length: 20001\r\nExpect: 100-continue\r\n\r\n") == "413");
  CHECK(status(post + "\r\n") == "411");
  CHECK(status(post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n") == "200");
  // What curl sends with -d, and parts of replies, which no API has.
  CHECK(status(post + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 15000\r\n\r\n" +
               std::string(15000, 'a')) == "200");
  CHECK(status("GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\n\r\n") == "200");
  // Three bodies that are too long together
  Client first(server), second(server);
  for (Client* client : {&first, &second}) CHECK(client->send(post + "Content-Length: 20000\r\n\r\na"));
  std::string third;
  for (int i = 0; i < 100 && third != "503"; ++i) {
    std::this_thread::sleep_for(10ms);
    third = status(post + "Content-Length: 1\r\n\r\na");
  }
  CHECK(third == "503");
  first.leave();
  second.leave();
  for (int i = 0; i < 500 && third != "200"; ++i) {
    std::this_thread::sleep_for(10ms);
    third = status(post + "Content-Length: 1\r\n\r\na");
  }
  CHECK(third == "200");
  Client ignored(server);
  CHECK(ignored.send(
      "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"));
  CHECK(ignored.read_to("GET /b").find("GET /b") == std::string::npos);
}

TEST_CASE("an ending server completes the reply that runs, and closes idle connections") {
  std::atomic<bool> begun{false};
  Served server({}, [&](const HttpRequest&) {
    HttpReply reply;
    reply.stream = [&](const Connection& connection) {
      begun = true;
      std::this_thread::sleep_for(300ms);
      static_cast<void>(connection.write("complete"));
    };
    return reply;
  });
  Client idle(server), client(server);
  CHECK(client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  while (!begun) std::this_thread::yield();
  server.finish();
  CHECK(client.read_to("complete").find("complete") != std::string::npos);
  CHECK(idle.closed());
}

TEST_CASE("a reply that is made later has its own status, and none is written to a client that has left") {
  std::atomic<bool> left{false};
  Served server({}, [&](const HttpRequest& request) {
    HttpReply reply;
    reply.headers.add("X-All", "y");
    reply.later = [&left,
                   path = request.path](const std::function<bool()>& open) -> std::optional<HttpReply> {
      HttpReply made;
      made.status = 500;
      made.body = "late";
      made.headers.add("Retry-After", "7");
      if (path != "/wait") return made;
      for (int i = 0; i < 2000 && open(); ++i) std::this_thread::sleep_for(5ms);
      left = !open();
      return std::nullopt;
    };
    return reply;
  });
  Client client(server);
  CHECK(client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  const std::string text = client.read_to("late");
  CHECK(text.starts_with("HTTP/1.1 500"));
  CHECK(text.find("Content-Length: 4\r\n") != std::string::npos);
  CHECK(text.find("Retry-After: 7\r\n") != std::string::npos);
  CHECK(text.find("X-All: y\r\n") != std::string::npos);
  Client impatient(server);
  CHECK(impatient.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
  impatient.end_sending();
  CHECK(impatient.closed());
  CHECK(impatient.read_to("HTTP").empty());
  CHECK(left);
}

TEST_CASE("a client is seen to have disconnected behind bytes that it sent after its request") {
  std::atomic<bool> left{false};
  Served server({}, [&](const HttpRequest& request) {
    for (int i = 0; i < 400 && request.open(); ++i) std::this_thread::sleep_for(5ms);
    left = !request.open();
    return HttpReply{};
  });
  {
    Client client(server);
    CHECK(client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
    std::this_thread::sleep_for(100ms);
    CHECK(client.send("GET /more HTTP/1.1\r\n"));
    std::this_thread::sleep_for(50ms);
  }
  for (int i = 0; i < 400 && !left; ++i) std::this_thread::sleep_for(5ms);
#ifdef __linux__
  CHECK(left);
#endif
}

TEST_CASE("an ending server waits a short time for the rest of a request, and completes it if it comes") {
  ListenOptions options;
  options.end_time = 2s;
  Served server(options, echo);
  Client body(server), header(server), late(server);
  const std::string post = "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na";
  CHECK(body.send(post));
  CHECK(header.send("GET / HTTP/1.1\r\nHo"));
  CHECK(late.send(post));
  std::this_thread::sleep_for(300ms);  // all three have begun
  const auto begin = std::chrono::steady_clock::now();
  std::thread rest([&] {
    std::this_thread::sleep_for(400ms);
    CHECK(late.send("b"));
  });
  server.finish();
  rest.join();
  CHECK(std::chrono::steady_clock::now() - begin < 8s);  // of 10 for headers and 60 for bodies
  CHECK(late.read_to("ab").starts_with("HTTP/1.1 200"));
  CHECK(body.closed());
  CHECK(header.closed());
}

TEST_CASE("an address that is in use is an error that names it") {
  Served server({}, echo);
  ListenOptions options;
  options.port = server.port();
  std::string message;
  try {
    listen(options, echo, [](int, const std::function<void()>&) {});
  } catch (const Error& error) {
    message = error.message();
  }
  CHECK(message.find(std::to_string(server.port())) != std::string::npos);
}

}  // namespace mica::test::listen_test
#endif
