// SPDX-License-Identifier: Apache-2.0
//
// Asks servers for ranges of files, or for whole texts: follows redirects, repeats requests that may succeed
// later, and accepts only the requested bytes. Any other answer raises an error, and its body is not read.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/version.hpp"
#include "mica_tools/remote/detail/head.hpp"
#include "mica_tools/remote/detail/hop.hpp"
#include "mica_tools/remote/options.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace mica::remote {

/// A request for a range of a file.
struct Range {
  std::string_view name;     // of the file in error texts
  std::uint64_t first = 0;   // the offset of its first byte
  std::span<std::byte> to;   // memory for it; its size is that of the request
  std::string condition;     // for If-Range; empty
  std::string_view missing;  // the meaning of a missing file; may be empty
  /// Called with the header of an answer before its bytes; may raise an error to refuse it.
  std::function<void(const detail::Head&)> observe;
  /// The whole text behind the URL, which has no more bytes than `to`; not a range.
  bool whole = false;
  std::string_view restricted = {};  // what a refused access may also mean; may be empty
};

namespace detail {

[[nodiscard]] inline bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Whether the same request may succeed later.
[[nodiscard]] inline bool is_transient(const Reply& reply) noexcept {
  if (reply.end != End::head) return reply.end == End::unreachable || reply.end == End::broken;
  return reply.head.status == 429 || reply.head.status >= 500;
}

/// A server sends the whole file in place of a range.
[[noreturn]] inline void refuse_whole_file(const std::string& where, const Head& head, const Range& range) {
  MICA_CHECK(
      !head.type.starts_with("text/html"), file, where, " with a page (", escaped(head.type),
      "), not with a file; a link to a file of Hugging Face has /resolve/ where that to its page has /blob/");
  MICA_CHECK(
      range.condition.empty(), file, where,
      " with another file than the one whose first bytes it gave; it was changed meanwhile, try again");
  raise(ErrorCode::unsupported, where, " to a request for a part: it gives whole files alone, and ",
        escaped(head.length.empty() ? "all" : head.length),
        " bytes are not read for a header; download the file and name that");
}

[[nodiscard]] inline std::string seconds_text(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  return join(tenths / 10, tenths % 10 == 0 ? "" : ".", tenths % 10 == 0 ? "" : std::to_string(tenths % 10),
              " seconds");
}

}  // namespace detail

/// Keeps a connection to each server. Not thread-safe.
class Client {
 public:
  /// Credentials, the token and those in a URL, go to the server of `home` alone.
  Client(const Url& home, Options options) : home_(home), options_(std::move(options)) {}

  /// As they were given.
  [[nodiscard]] const Options& options() const noexcept { return options_; }

  /// Fills range.to as far as the server sends, and returns the number of bytes; `url` becomes the final
  /// address. Raises what range.observe raises, and
  ///   failed       no connection, none that is safe, a time limit, an incomplete answer, no HTTP, too many
  ///                redirects,
  ///   file         no such file, no leave to read it, or a page in its place,
  ///   unsupported  a server that gives no ranges, or a redirect that is not followed.
  std::size_t get(Url& url, const Range& range) {
    for (std::size_t redirects = 0;; ++redirects) {
      const detail::Reply reply = try_often(url, range);
      if (reply.end == detail::End::whole) return reply.bytes;
      if (reply.end != detail::End::head) refuse_end(url, reply, range);
      if (!detail::is_redirect(reply.head.status)) refuse_status(url, reply.head, range);
      MICA_CHECK(redirects < options_.redirects, failed, range.name, ": the server sends on more than ",
                 options_.redirects, " times, at last from ", url.shown(), "; is the link right?");
      url = next(url, reply.head, range);
    }
  }

  /// Ends all connections.
  void hang_up() { hops_.clear(); }

 private:
  [[nodiscard]] detail::Reply try_often(const Url& url, const Range& range) {
    for (std::size_t tries = 1;; ++tries) {
      detail::Reply reply = hop_to(url).get(url.target(), fields_for(url, range), range.to, range.observe,
                                            range.whole ? 200 : 206);
      if (!detail::is_transient(reply) || tries >= options_.tries) return reply;
      const auto pause = pause_after(reply, tries);
      if (pause > options_.longest_pause || !waited(pause)) return reply;
    }
  }
  /// False as soon as Options::stop is true, which is read every 50 ms.
  [[nodiscard]] bool waited(std::chrono::milliseconds pause) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + pause;
    for (;;) {
      if (options_.stop != nullptr && *options_.stop) return false;
      const Clock::duration left = end - Clock::now();
      if (left <= Clock::duration::zero()) return true;
      std::this_thread::sleep_for(std::min<Clock::duration>(left, std::chrono::milliseconds(50)));
    }
  }
  [[nodiscard]] detail::Fields fields_for(const Url& url, const Range& range) const {
    detail::Fields fields = {
        {"Host", url.authority()},
        {"User-Agent", join("mica/", version)},
        {"Accept-Encoding", "identity"},
    };
    if (!range.whole)
      fields.emplace("Range", join("bytes=", range.first, "-", range.first + range.to.size() - 1));
    if (!range.condition.empty()) fields.emplace("If-Range", range.condition);
    if (url.origin() != home_.origin()) return fields;
    if (!home_.credentials.empty()) {
      fields.insert(detail::basic_authorization(home_.credentials));
    } else if (!options_.token.empty()) {
      fields.emplace("Authorization", join("Bearer ", options_.token));
    }
    return fields;
  }

  [[nodiscard]] detail::Hop& hop_to(const Url& url) {
    std::unique_ptr<detail::Hop>& hop = hops_[url.origin()];
    if (!hop) hop = std::make_unique<detail::Hop>(url, options_);
    return *hop;
  }
  /// The pause that the server requests, else twice the last one.
  [[nodiscard]] std::chrono::milliseconds pause_after(const detail::Reply& reply, std::size_t tries) const {
    const auto wanted = detail::whole_number(reply.head.retry_after);
    constexpr std::uint64_t day = 24 * 60 * 60;
    if (wanted) return std::chrono::seconds(std::min(*wanted, day));
    return options_.pause * (1 << std::min<std::size_t>(tries - 1, 10));
  }
  [[nodiscard]] Url next(const Url& url, const detail::Head& head, const Range& range) const {
    MICA_CHECK(!head.location.empty(), failed, name(url, range), ": the server answers ", head.status,
               " and does not say where the file is");
    Url to;
    try {
      to = url.resolved(head.location);
    } catch (const Error& error) {
      raise(error.code() == ErrorCode::unsupported ? ErrorCode::unsupported : ErrorCode::failed,
            name(url, range), ": the server redirects to an address that is not followed: ", error.message());
    }
    MICA_CHECK(to.encrypted() || !url.encrypted(), unsupported, name(url, range), ": the server sends on to ",
               to.shown(), ", which is not encrypted; name that link yourself if it is to be trusted");
    return to;
  }

  [[noreturn]] void refuse_end(const Url& url, const detail::Reply& reply, const Range& range) const {
    using detail::End;
    const std::string where = join(name(url, range), ": ");
    const std::string got = join(reply.bytes, " of ", range.to.size(), " bytes");
    switch (reply.end) {
      case End::unreachable:
        raise(ErrorCode::failed, where, "no connection to ", url.origin(), " in ", options_.tries,
              " tries; is the name right, and is there a network? Proxies are not supported");
      case End::late:
        raise(ErrorCode::failed, where, "no connection to ", url.origin(), " in ",
              detail::seconds_text(options_.connect), "; is there a network? Proxies are not supported");
      case End::unsafe:
        raise(ErrorCode::failed, where, "no safe connection to ", url.origin(), " (", reply.reason,
              "); its certificate is not trusted here, or it does not speak TLS");
      case End::silent:
        raise(ErrorCode::failed, where, "the server was silent for ", detail::seconds_text(options_.silence),
              ", after ", got, "; try again later");
      case End::slow:
        raise(ErrorCode::failed, where, "an answer was not complete after ",
              detail::seconds_text(options_.answer), ", but ", got,
              "; try again later, or download the file");
      case End::long_:
        raise(ErrorCode::failed, where, "the server sends more than the ", range.to.size(),
              " bytes that were requested, from byte ", range.first, "; download the file and name that");
      case End::stopped:
        raise(ErrorCode::failed, where, "stopped after ", got);
      default:
        raise(ErrorCode::failed, where, "the connection broke after ", got, " in ", options_.tries,
              " tries, or the answer is no HTTP; try again later");
    }
  }

  [[noreturn]] void refuse_status(const Url& url, const detail::Head& head, const Range& range) const {
    const int status = head.status;
    const std::string where = join(name(url, range), ": the server answers ", status);
    if (status == 200 && !range.whole) detail::refuse_whole_file(where, head, range);
    if (status == 401 || status == 403) {
      raise(ErrorCode::file, where,
            ": access to the file is restricted; the token in HF_TOKEN is sent only to the site of ",
            "HF_ENDPOINT, which is https://huggingface.co unless set", range.restricted.empty() ? "" : "; ",
            range.restricted);
    }
    if (status == 404 || status == 410) {
      raise(ErrorCode::file, where, ": there is no such file", range.missing.empty() ? "" : "; ",
            range.missing);
    }
    if (status == 416)
      raise(ErrorCode::file, where, ": the file has no byte ", range.first, "; it is empty or cut");
    MICA_CHECK(status == 429 || status >= 500, file, where,
               range.whole ? "; 200, the whole text, is needed" : "; 206, a part of the file, is needed");
    MICA_CHECK(head.retry_after.empty(), failed, where, " and asks to be left alone for ",
               escaped(head.retry_after), " seconds; try again then");
    raise(ErrorCode::failed, where, ", ", options_.tries, " times; try again later");
  }

  /// The address of the request, and that of the answer.
  [[nodiscard]] static std::string name(const Url& url, const Range& range) {
    const std::string there = url.shown();
    return there == range.name ? there : join(range.name, " (sent on to ", there, ")");
  }

  Url home_;
  Options options_;
  std::map<std::string, std::unique_ptr<detail::Hop>> hops_;  // by origin
};

}  // namespace mica::remote
