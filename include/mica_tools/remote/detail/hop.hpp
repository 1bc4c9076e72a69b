// SPDX-License-Identifier: Apache-2.0
//
// One server and one connection to it, for requests of ranges, with the functions of cpp-httplib 0.11.4 and
// later. client.hpp interprets the answers.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica_tools/remote/detail/head.hpp"
#include "mica_tools/remote/detail/watched.hpp"
#include "mica_tools/remote/options.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mica::remote::detail {

/// A connection that can be cut by another thread than the one that reads it. Keeps a second descriptor of
/// the socket, so that the number cannot be reused meanwhile.
class Line {
 public:
  /// Another answer is awaited.
  void begin() {
    const std::lock_guard lock(mutex_);
    cut_ = false;
  }
  /// The socket of a new connection. Closes it at once when the time was over before it was established.
  void set(int socket) {
    const std::lock_guard lock(mutex_);
    socket_ = io::detail::Descriptor(::dup(socket));
    if (cut_) ::shutdown(socket, SHUT_RDWR);
  }
  void cut() {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    if (socket_) ::shutdown(socket_.get(), SHUT_RDWR);
  }
  [[nodiscard]] bool was_cut() const {
    const std::lock_guard lock(mutex_);
    return cut_;
  }

 private:
  mutable std::mutex mutex_;
  io::detail::Descriptor socket_;
  bool cut_ = false;
};

/// Closes a connection after a time, or soon after `stop` becomes true, unless the object is destroyed first.
/// The HTTP library limits the wait for the next byte only, so a thread waits beside each request. It touches
/// no data, and ends with the request.
class Cutoff {
 public:
  /// stop: may be null.
  Cutoff(Line& line, std::chrono::milliseconds after, const std::atomic<bool>* stop) {
    thread_ = std::thread([this, &line, stop, after, end = Clock::now() + after] {
      std::unique_lock lock(mutex_);
      // Cuts more than once: a shutdown before a socket connects has no effect.
      for (Clock::duration wait = std::min(after, look);
           !over_.wait_for(lock, wait, [this] { return done_; });) {
        const Clock::duration left = end - Clock::now();
        if (left <= Clock::duration::zero() || (stop != nullptr && *stop)) line.cut();
        wait = left > Clock::duration::zero() ? std::min<Clock::duration>(left, look) : look;
      }
    });
  }
  Cutoff(const Cutoff&) = delete;
  Cutoff& operator=(const Cutoff&) = delete;
  ~Cutoff() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    over_.notify_one();
    thread_.join();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds look{50};  // between two looks at `stop`

  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

/// During its lifetime a write to a closed connection is an error and sends no signal to this thread. Without
/// it a lost connection ends the program: cpp-httplib and its TLS library do not block SIGPIPE.
class NoPipeSignal {
 public:
  NoPipeSignal() noexcept {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    had_ = is_pending();
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() {
    int number = 0;
    if (!had_ && is_pending()) ::sigwait(&pipe_, &number);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  [[nodiscard]] static bool is_pending() noexcept {
    ::sigset_t all;
    return ::sigpending(&all) == 0 && ::sigismember(&all, SIGPIPE) == 1;
  }

  ::sigset_t pipe_, before_;
  bool had_ = false;
};

/// How an exchange ended.
enum class End : std::uint8_t {
  whole,        ///< with all bytes of the answer
  head,         ///< after the head: its status is not the wanted one, and no body was requested
  unreachable,  ///< no connection
  late,         ///< none in time
  unsafe,       ///< no encrypted connection, or a wrong certificate
  broken,       ///< the connection ended too early, or the answer is no HTTP
  silent,       ///< no bytes for too long
  slow,         ///< the answer took too long
  long_,        ///< more bytes than requested
  stopped,      ///< Options::stop
};

struct Reply {
  End end = End::whole;
  Head head;
  std::size_t bytes = 0;  // of the body
  std::string reason;     // in the words of the library; empty when it gave none
};

/// Fields of a request, by name.
using Fields = std::multimap<std::string, std::string>;

/// The field that names a user, of "name:password" as a URL has it.
[[nodiscard]] inline Fields::value_type basic_authorization(std::string_view credentials) {
  const std::size_t colon = std::min(credentials.find(':'), credentials.size());
  const std::string_view password = credentials.substr(std::min(colon + 1, credentials.size()));
  return httplib::make_basic_authentication_header(decoded(credentials.substr(0, colon)), decoded(password));
}

/// Requires that connections to the server of `url` are allowed; not thread-safe.
class Hop {
 public:
  /// Raises ErrorCode::unsupported for https when cpp-httplib was built without TLS.
  Hop(const Url& url, const Options& options) : options_(options) {
    require_tls(url);
    client_ = make_client(url.encrypted(), url.bare_host(), url.port, head_, options.silence);
    client_->set_connection_timeout(options.connect);
    client_->set_read_timeout(options.silence);
    client_->set_write_timeout(options.silence);
    client_->set_keep_alive(true);
    client_->set_follow_location(false);
    client_->set_decompress(false);
    client_->set_socket_options([this](auto socket) { line_.set(socket); });
    send_as_written(*client_);
  }

  Hop(const Hop&) = delete;
  Hop& operator=(const Hop&) = delete;
  ~Hop() {
    const NoPipeSignal no_signal;  // closing an encrypted connection writes
    client_.reset();
  }

  /// Asks for `target` and fills `to` from the front. A head with the wanted status, 206 or 200, is handed to
  /// observe(head), which may refuse it by an error; the body of any other answer is not read, and the
  /// connection ends.
  template <class Observe>
  [[nodiscard]] Reply get(const std::string& target, const Fields& fields, std::span<std::byte> to,
                          const Observe& observe, int wanted = 206) {
    Reply reply;
    std::exception_ptr refusal;
    Clock::time_point heard = Clock::now();
    const auto on_head = [&](const httplib::Response& response) {
      heard = Clock::now();
      head_.end();
      try {
        reply.head = head_of(response);
        if (reply.head.status == wanted && observe) observe(std::as_const(reply.head));
      } catch (...) {  // not through the library, which would take the connection for open
        refusal = std::current_exception();
      }
      return reply.head.status == wanted && !refusal;
    };
    const auto on_bytes = [&](const char* bytes, std::size_t n) {
      heard = Clock::now();
      if (is_stopped() || n > to.size() - reply.bytes) return false;
      std::memcpy(to.data() + reply.bytes, bytes, n);
      reply.bytes += n;
      return true;
    };
    const NoPipeSignal no_signal;
    line_.begin();
    const Cutoff cutoff(line_, options_.answer, options_.stop);
    const httplib::Result result =
        client_->Get(target, httplib::Headers(fields.begin(), fields.end()), on_head, on_bytes);
    if (refusal) std::rethrow_exception(refusal);
    if (result && reply.head.status == 0) reply.head = head_of(*result);  // of an answer that has no body
    reply.end = end_of(result, reply, heard, wanted);
    if (!result) reply.reason = httplib::to_string(result.error());
    return reply;
  }

 private:
  using Clock = std::chrono::steady_clock;

  static void require_tls(const Url& url) {
#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)
    static_cast<void>(url);
#else
    MICA_CHECK(!url.encrypted(), unsupported, url.shown(),
               ": this program was built without TLS, which https needs; build it with OpenSSL, or download "
               "the file first");
#endif
  }
  /// Later versions have another name for it.
  template <class Client>
  static void send_as_written(Client& client) {
    if constexpr (requires { client.set_path_encode(false); }) {
      client.set_path_encode(false);
    } else {
      client.set_url_encode(false);
    }
  }
  [[nodiscard]] Head head_of(const httplib::Response& response) const {
    const auto field = [&](const char* name) { return response.get_header_value(name); };
    const std::string location = head_.field("location");
    return {response.status,           field("Content-Type"),
            field("Content-Encoding"), field("Content-Length"),
            field("Content-Range"),    field("ETag"),
            field("Last-Modified"),    location.empty() ? field("Location") : location,
            field("Retry-After"),      field("Link")};
  }
  [[nodiscard]] bool is_stopped() const noexcept { return options_.stop != nullptr && *options_.stop; }
  /// The library does not distinguish lost, silent and closed connections.
  [[nodiscard]] End end_of(const httplib::Result& result, const Reply& reply, Clock::time_point heard,
                           int wanted) const {
    if (result) return reply.head.status == wanted ? End::whole : End::head;
    if (is_stopped()) return End::stopped;
    if (line_.was_cut()) return End::slow;
    const httplib::Error error = result.error();
    const bool waited = Clock::now() - heard >= options_.silence;
    if (error == httplib::Error::Canceled) return reply.head.status == wanted ? End::long_ : End::head;
    if (error == httplib::Error::Connection) return End::unreachable;
    if (httplib::to_string(error).starts_with("SSL")) return End::unsafe;
    if (error == httplib::Error::ConnectionTimeout) return End::late;
    return waited ? End::silent : End::broken;
  }

  Options options_;
  Line line_;
  RawHead head_;
  std::unique_ptr<httplib::ClientImpl> client_;
};

}  // namespace mica::remote::detail
