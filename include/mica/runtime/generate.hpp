// SPDX-License-Identifier: Apache-2.0
//
// From a prompt to text: feed, sample, give out pieces at UTF-8 boundaries, stop for a reason that has a
// name.
#pragma once

#include "mica/runtime/session.hpp"
#include "mica/runtime/stats.hpp"
#include "mica/sample/sampler.hpp"
#include "mica/text/concept.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

struct GenerateOptions {
  std::size_t max_tokens = 0;                 // 0: until something else stops it
  bool stop_at_end = true;                    // at a token that ends a text or a turn
  bool show_special = false;                  // control tokens appear as text
  std::vector<std::string> stop = {};         // texts that end the answer and do not appear in it
  const std::atomic<bool>* cancel = nullptr;  // looked at before each token
};

enum class StopReason : std::uint8_t {
  end_of_text,
  length,
  stop_text,
  cancelled,
  context_full,
  no_memory,
  read_failed
};

[[nodiscard]] constexpr std::string_view name(StopReason reason) noexcept {
  constexpr std::string_view names[] = {"end_of_text",  "length",    "stop_text",  "cancelled",
                                        "context_full", "no_memory", "read_failed"};
  return names[static_cast<std::size_t>(reason)];
}

struct GenerateResult {
  StopReason reason = StopReason::length;
  std::vector<text::TokenId> tokens;  // sampled, the ending one included
  Timings timings;
};

namespace detail {

[[nodiscard]] constexpr StopReason reason_of(model::StepStatus status) noexcept {
  switch (status) {
    case model::StepStatus::context_full:
      return StopReason::context_full;
    case model::StepStatus::no_memory:
      return StopReason::no_memory;
    default:
      return StopReason::read_failed;
  }
}

/// Holds back what may be the beginning of a stop text.
class StopTexts {
 public:
  explicit StopTexts(std::span<const std::string> stops) noexcept : stops_(stops) {}

  /// Takes more text and returns what is surely not part of a stop text; sets found() when one is complete.
  [[nodiscard]] std::string take(std::string_view more) {
    held_ += more;
    for (const std::string& stop : stops_) {
      if (const std::size_t at = stop.empty() ? std::string::npos : held_.find(stop);
          at != std::string::npos) {
        found_ = true;
        held_.resize(at);
      }
    }
    const std::size_t keep = found_ ? 0 : longest_beginning();
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
    return out;
  }
  /// What was held back when the text ended otherwise.
  [[nodiscard]] std::string rest() noexcept { return std::exchange(held_, {}); }
  [[nodiscard]] bool found() const noexcept { return found_; }

 private:
  /// Bytes at the end of the held text that begin a stop text.
  [[nodiscard]] std::size_t longest_beginning() const noexcept {
    std::size_t most = 0;
    for (const std::string& stop : stops_) {
      for (std::size_t n = std::min(stop.size(), held_.size()); n > most; --n) {
        if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n)) most = n;
      }
    }
    return most;
  }

  std::span<const std::string> stops_;
  std::string held_;
  bool found_ = false;
};

/// Sampled tokens become text: whole UTF-8 sequences, without control tokens and stop texts.
template <class Tokenizer, class OnText>
class TextWriter {
 public:
  /// at_start: nothing but control tokens stands before the text, so the space that encoding puts before a
  /// first word is not part of it.
  TextWriter(const Tokenizer& tokenizer, const GenerateOptions& options, bool at_start, OnText& on_text)
      : tokenizer_(tokenizer),
        show_special_(options.show_special),
        drop_space_(at_start && tokenizer.vocabulary().add_space_prefix()),
        stops_(options.stop),
        on_text_(on_text) {}

  /// False when a stop text is complete or the reader wants no more.
  [[nodiscard]] bool write(text::TokenId id) {
    std::string piece, whole;
    tokenizer_.append_piece(id, show_special_, piece);
    if (drop_space_ && !piece.empty()) {
      if (piece.front() == ' ') piece.erase(0, 1);
      drop_space_ = false;
    }
    utf8_.append(piece, whole);
    return give(stops_.take(whole)) && !stops_.found();
  }
  /// Gives out what was held back, unless it belongs to a stop text.
  void finish() {
    if (stops_.found()) return;
    std::string whole;
    utf8_.finish(whole);
    std::string last = stops_.take(whole);
    if (!stops_.found()) last += stops_.rest();
    static_cast<void>(give(last));
  }
  [[nodiscard]] bool stopped() const noexcept { return stops_.found(); }

 private:
  [[nodiscard]] bool give(const std::string& text) {
    return text.empty() || on_text_(std::string_view(text));
  }

  const Tokenizer& tokenizer_;
  bool show_special_;
  bool drop_space_;
  StopTexts stops_;
  OnText& on_text_;
  text::Utf8Stream utf8_;
};

[[nodiscard]] inline bool is_set(const std::atomic<bool>* cancel) noexcept {
  return cancel != nullptr && cancel->load(std::memory_order_relaxed);
}

/// Samples until a stop; fills result.tokens and says why it stopped.
template <class Model, class Tokenizer, class Sampler, class Writer>
StopReason sample_all(Session<Model>& session, const Tokenizer& tokenizer, Sampler& sampler,
                      const GenerateOptions& options, Writer& writer, GenerateResult& result) {
  const std::size_t n_tokens = tokenizer.vocabulary().size();  // a head may have more rows, as padding
  while (!is_set(options.cancel)) {
    const auto id = sampler.sample(session.logits().first(n_tokens));
    MICA_CHECK(id, failed, "no token can be sampled after token ", session.tokens().size() - 1,
               ": every logit is -infinity");
    sampler.accept(*id);
    result.tokens.push_back(*id);
    if (options.stop_at_end && tokenizer.vocabulary().is_end(*id)) return StopReason::end_of_text;
    if (!writer.write(*id)) return writer.stopped() ? StopReason::stop_text : StopReason::cancelled;
    if (result.tokens.size() == options.max_tokens) return StopReason::length;
    const auto status = session.feed({&*id, 1}, nullptr);
    if (status != model::StepStatus::ok) return reason_of(status);
  }
  return StopReason::cancelled;
}

}  // namespace detail

/// Feeds the prompt and samples until a stop. on_text(std::string_view) gets whole UTF-8 sequences; false
/// stops (cancelled). An empty prompt goes on from where the session is, which then needs at least one token.
/// The session afterwards holds the prompt and all sampled tokens but the last.
/// Raises ErrorCode::failed for non-finite logits, naming the layer; usage for ids outside the vocabulary.
template <StepModel Model, text::Tokenizer Tokenizer, class Sampler, class OnText>
GenerateResult generate(Session<Model>& session, const Tokenizer& tokenizer, Sampler& sampler,
                        std::span<const text::TokenId> prompt, const GenerateOptions& options,
                        OnText&& on_text) {
  GenerateResult result;
  const Stopwatch reading;
  for (const text::TokenId id : prompt) sampler.accept(id);
  const auto status = session.feed(prompt, options.cancel);
  result.timings.prompt = {prompt.size(), reading.seconds()};
  if (status != model::StepStatus::ok || detail::is_set(options.cancel)) {
    result.reason = status == model::StepStatus::ok ? StopReason::cancelled : detail::reason_of(status);
    return result;
  }
  const Stopwatch writing;
  const bool at_start = std::all_of(session.tokens().begin(), session.tokens().end(), [&](text::TokenId id) {
    return tokenizer.vocabulary().type(id) == text::TokenType::control;
  });
  detail::TextWriter writer(tokenizer, options, at_start, on_text);
  result.reason = detail::sample_all(session, tokenizer, sampler, options, writer, result);
  writer.finish();
  result.timings.predicted = {result.tokens.size(), writing.seconds()};
  return result;
}

}  // namespace mica
