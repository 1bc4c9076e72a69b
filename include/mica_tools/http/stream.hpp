// SPDX-License-Identifier: Apache-2.0
//
// From the events of answers to replies: the loop that reads events and sees that a client has disconnected,
// server-sent events (WHATWG HTML, section 9.2), and replies that are written when the answer is complete.
// Not here: what an API writes for an event.
#pragma once

#include "mica_tools/http/error_reply.hpp"
#include "mica_tools/serve/service.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

/// Raises Refusal (failed) for an answer that is not complete.
inline void require_complete(const Ended& ended) {
  switch (ended.reason) {
    case StopReason::end_of_text:
    case StopReason::stop_text:
    case StopReason::length:
    case StopReason::context_full:
      return;
    case StopReason::cancelled:
      throw Refusal(Cause::unavailable, "the server has ended the answer, since it is stopping");
    default:
      throw Refusal(Cause::failed, join("the answer could not go on: ", name(ended.reason)));
  }
}

/// The answers of one request. Those that have not ended are cancelled with it. The thread of the connection.
class Answers {
 public:
  /// Submits all jobs; when one is refused, those before it are cancelled. Raises as Service::submit().
  Answers(Service& service, std::vector<Job> jobs) {
    answers_.reserve(jobs.size());
    try {
      for (Job& job : jobs) answers_.push_back(service.submit(std::move(job)));
    } catch (...) {
      cancel();
      throw;
    }
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() { cancel(); }

  [[nodiscard]] std::size_t size() const noexcept { return answers_.size(); }

  /// Calls take(index, event) for each event, in the order of arrival, until all answers have ended, and
  /// idle() whenever no event has come for up to 100 ms. Ends when one of them returns false, which says that
  /// the client has disconnected: all answers are cancelled, and the result is false. Raises Refusal when an
  /// answer fails; Ended has a reason of a complete answer.
  template <class Take, class Idle>
  [[nodiscard]] bool run(Take&& take, Idle&& idle) {
    std::vector<bool> over(answers_.size());
    std::size_t open = answers_.size();
    while (open > 0) {
      bool quiet = true;
      for (std::size_t i = 0; i < answers_.size(); ++i) {
        if (over[i]) continue;
        std::optional<Event> event = answers_[i]->next(max_wait(open));
        if (!event) continue;
        quiet = false;
        if (const auto* failed = std::get_if<Failed>(&*event)) throw refusal_of(*failed);
        if (const auto* ended = std::get_if<Ended>(&*event)) {
          require_complete(*ended);
          over[i] = true;
          --open;
        }
        if (!take(i, std::move(*event))) return leave();
      }
      if (quiet && !idle()) return leave();
    }
    answers_.clear();
    return true;
  }

 private:
  /// One answer is waited for; several are visited in turn.
  [[nodiscard]] static std::chrono::milliseconds max_wait(std::size_t open) noexcept {
    return std::chrono::milliseconds(open == 1 ? 100 : open < 10 ? 10 : 1);
  }
  void cancel() noexcept {
    for (const auto& answer : answers_) answer->cancel();
  }
  [[nodiscard]] bool leave() noexcept {
    cancel();
    return false;
  }

  std::vector<std::shared_ptr<Answer>> answers_;
};

/// An answer that has ended.
struct WholeAnswer {
  std::string text;                 // all of it
  std::vector<ScoredPiece> tokens;  // of Job::scores
  Ended ended;                      // how, and its numbers
};

inline constexpr std::size_t max_whole_scores = std::size_t{1} << 17;  // of a reply that is no stream

/// All answers to their ends; empty when the client has disconnected. Raises as Answers::run().
[[nodiscard]] inline std::optional<std::vector<WholeAnswer>> collect(Answers& answers,
                                                                     const std::function<bool()>& open) {
  std::vector<WholeAnswer> whole(answers.size());
  std::size_t scores = 0;
  const auto take = [&](std::size_t i, Event event) {
    if (auto* const more = std::get_if<Text>(&event)) {
      whole[i].text += more->text;
      for (const ScoredPiece& piece : more->tokens) scores += 1 + piece.top.size();
      if (scores > max_whole_scores)
        throw Refusal(Cause::too_large,
                      join("the reply has more than ", max_whole_scores,
                           " probabilities of tokens; ask for a stream, or for fewer tokens or answers"));
      whole[i].tokens.insert(whole[i].tokens.end(), std::make_move_iterator(more->tokens.begin()),
                             std::make_move_iterator(more->tokens.end()));
    }
    if (const auto* const ended = std::get_if<Ended>(&event)) whole[i].ended = *ended;
    return open();
  };
  if (!answers.run(take, open)) return std::nullopt;
  return whole;
}

/// Writes server-sent events to a connection. Each function returns false when the client has disconnected.
class EventStream {
 public:
  using Clock = std::chrono::steady_clock;  ///< of the time between events

  /// ping: a comment is written after this time without an event. connection outlives it.
  EventStream(const Connection& connection, std::chrono::milliseconds ping)
      : connection_(connection), ping_(ping) {}

  /// data: VALUE
  [[nodiscard]] bool data(const Json& value) { return write(join("data: ", dump(value), "\n\n")); }
  /// event: NAME, with data
  [[nodiscard]] bool event(std::string_view name, const Json& value) {
    return write(join("event: ", name, "\ndata: ", dump(value), "\n\n"));
  }
  /// The last one of OpenAI's streams.
  bool done() { return write("data: [DONE]\n\n"); }
  /// Between events: a comment where nothing was written for the time of a ping.
  [[nodiscard]] bool idle() {
    if (Clock::now() - last_ >= ping_) return write(": \n\n");
    return connection_.open();
  }

 private:
  [[nodiscard]] bool write(std::string_view text) {
    last_ = Clock::now();
    return connection_.write(text);
  }

  const Connection& connection_;
  std::chrono::milliseconds ping_;
  Clock::time_point last_ = Clock::now();
};

/// A reply that is made when all answers have ended. An answer that fails makes it an error, with its status.
[[nodiscard]] inline HttpReply whole_reply(std::shared_ptr<Answers> answers, Api api,
                                           std::function<Json(const std::vector<WholeAnswer>&)> body_of) {
  HttpReply reply;
  reply.later = [answers = std::move(answers), api, body_of = std::move(body_of)](
                    const std::function<bool()>& open) -> std::optional<HttpReply> {
    try {
      const auto whole = collect(*answers, open);
      if (!whole) return std::nullopt;
      HttpReply made;
      made.body = dump(body_of(*whole));
      return made;
    } catch (const std::exception& error) {
      return error_reply(api, refusal_of(error));
    }
  };
  return reply;
}

/// A reply of server-sent events, which `write` writes. An error that it raises becomes an event: of OpenAI
/// `data: {"error":...}`, of Anthropic `event: error`.
[[nodiscard]] inline HttpReply event_reply(std::shared_ptr<Answers> answers, Api api,
                                           std::chrono::milliseconds ping,
                                           std::function<void(Answers&, EventStream&)> write) {
  HttpReply reply;
  reply.type = "text/event-stream";
  reply.headers.add("Cache-Control", "no-cache");
  reply.headers.add("X-Accel-Buffering", "no");
  reply.stream = [answers = std::move(answers), api, ping, write = std::move(write)](const Connection& to) {
    EventStream stream(to, ping);
    try {
      write(*answers, stream);
    } catch (const std::exception& error) {
      const Json body = error_body(api, refusal_of(error));
      (void)(api == Api::anthropic ? stream.event("error", body) : stream.data(body));
    }
  };
  return reply;
}

}  // namespace mica::serve
