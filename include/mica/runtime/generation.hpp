// SPDX-License-Identifier: Apache-2.0
//
// One answer as a state machine that its caller advances: it returns the tokens to run, and receives the
// logits after them. generate() advances one; a Batch advances many, whose tokens share steps.
//
//   next()   prompt, chunk by chunk | then tokens of the answer that have not run, and drafts behind them
//   take()   nothing to do          | sample, row by row, while the drafts are the tokens of the answer
//
// Tokens that have not run: the one that was sampled last, and those that a constraint forces after it.
#pragma once

#include "mica/base/finite.hpp"
#include "mica/constraint/concept.hpp"
#include "mica/kv/eviction.hpp"
#include "mica/runtime/detail/constrained.hpp"
#include "mica/runtime/detail/draft_pace.hpp"
#include "mica/runtime/detail/text_writer.hpp"
#include "mica/runtime/drafter.hpp"
#include "mica/runtime/generate_options.hpp"
#include "mica/runtime/session.hpp"
#include "mica/sample/concept.hpp"
#include "mica/text/concept.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica {

namespace detail {

/// Whether a text that begins here begins the sequence: nothing but control tokens stands before it.
template <class Tokenizer>
[[nodiscard]] bool only_control(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  return std::all_of(ids.begin(), ids.end(), [&](TokenId id) {
    return id < vocabulary.size() && vocabulary.type(id) == text::TokenType::control;
  });
}

}  // namespace detail

/// A running answer. Session, tokenizer, sampler, drafter, constraint and the flag in the options outlive it;
/// until it is over no other code may use the session. OnText: bool(std::string_view), gets whole UTF-8
/// sequences; false stops. One thread at a time.
///
/// The constraint is about the answer alone: it is not advanced by the prompt. To continue a saved answer,
/// advance a new one by the tokens of the answer so far, also by those that are the prompt now.
template <StepModel Model, text::Tokenizer Tokenizer, Sampler S, Drafter D, class OnText,
          Constraint C = NoConstraint>
class Generation {
 public:
  /// Raises ErrorCode::usage for ids outside the vocabulary, and for drafts on a model with too few rows of
  /// logits; ErrorCode::unsupported for drafts on one with a recurrent state that does not take them back.
  Generation(Session<Model>& session, const Tokenizer& tokenizer, S& sampler, D& drafter, C& constraint,
             std::span<const TokenId> prompt, const GenerateOptions& options, OnText on_text)
      : session_(session),
        tokenizer_(tokenizer),
        sampler_(sampler),
        drafter_(drafter),
        constraint_(constraint, tokenizer.vocabulary().size()),
        options_(options),
        on_text_(std::move(on_text)),
        writer_(tokenizer, options_,
                detail::only_control(tokenizer, session.tokens()) && detail::only_control(tokenizer, prompt),
                on_text_),
        prompt_(prompt.begin(), prompt.end()),
        drafts_(drafter.max_drafts()),
        scorer_(options_.on_token ? std::min(options_.top_tokens, tokenizer.vocabulary().size()) : 0) {
    const Model& model = session.model();
    session.check_ids(prompt);
    MICA_CHECK(drafts_.empty() || takes_drafts(model), unsupported,
               "drafts need a model that can take tokens back; ", detail::keeps_state(model.config().arch));
    MICA_CHECK(drafts_.size() <= draft_limit, usage, "a drafter makes ", draft_limit,
               " drafts at most, this one ", drafts_.size());
    MICA_CHECK(drafts_.size() < model.logits_rows(), usage, drafts_.size(), " drafts need ",
               drafts_.size() + 1, " rows of logits; the model was opened with ", model.logits_rows());
    for (const TokenId id : prompt) sampler_.accept(id);
  }
  /// The same without a constraint.
  Generation(Session<Model>& session, const Tokenizer& tokenizer, S& sampler, D& drafter,
             std::span<const TokenId> prompt, const GenerateOptions& options,
             OnText on_text) requires std::same_as<C, NoConstraint>
      : Generation(session, tokenizer, sampler, drafter, unconstrained_, prompt, options,
                   std::move(on_text)) {}
  Generation(const Generation&) = delete;  // the writer refers to other members
  Generation& operator=(const Generation&) = delete;

  /// The objects that it was made with, and whether the answer has ended.
  [[nodiscard]] Session<Model>& session() noexcept { return session_; }
  [[nodiscard]] const Session<Model>& session() const noexcept { return session_; }
  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] const GenerateOptions& options() const noexcept { return options_; }
  /// Whether the prompt is still being read.
  [[nodiscard]] bool reads() const noexcept { return read_ < prompt_.size(); }
  /// The number of tokens of the answer that have not run.
  [[nodiscard]] std::size_t unfed() const noexcept { return result_.unfed; }
  /// The remaining tokens of the prompt.
  [[nodiscard]] std::span<const TokenId> unread() const noexcept { return std::span(prompt_).subspan(read_); }
  /// The session already has the first n tokens of the prompt; some remain.
  void skip(std::size_t n) noexcept {
    MICA_ASSERT(read_ == 0 && n < prompt_.size());
    read_ = skipped_ = n;
  }

  /// The tokens to run next, [1, max]: of the prompt, or those of the answer that have not run, and drafts.
  /// None when the flag is set, which ends the answer. Requires max > 0, and that it is not over.
  [[nodiscard]] std::span<const TokenId> next(std::size_t max) {
    MICA_ASSERT(max > 0 && !over_);
    step_ = {};
    next_.clear();
    if (detail::is_set(options_.cancel)) {
      stop(StopReason::cancelled);
    } else if (reads()) {
      if (options_.on_full == OnFull::shift) max = std::clamp<std::size_t>(session_.remaining(), 1, max);
      const auto part = std::span(prompt_).subspan(read_, std::min(max, prompt_.size() - read_));
      next_.assign(part.begin(), part.end());
      rows_ = read_ + next_.size() == prompt_.size() ? 1 : 0;
    } else {
      if (!std::exchange(several_, true)) max = 1;
      const auto waiting = std::span(result_.tokens).last(result_.unfed);
      const std::size_t n = std::min({max, waiting.size(), std::max<std::size_t>(session_.remaining(), 1)});
      next_.assign(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(n));
      // Drafts follow one token: a drafter sees the text before it as the session has it.
      const auto drafts = std::span(drafts_).first(waiting.size() == 1 ? draft(max - 1) : 0);
      next_.insert(next_.end(), drafts.begin(), drafts.end());
      rows_ = n == waiting.size() ? 1 + drafts.size() : 0;
    }
    return {next_.data(), next_.size()};
  }
  /// The number of these tokens, from the end, whose logits take() needs, and of those that are drafts.
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t drafts() const noexcept { return rows_ == 0 || reads() ? 0 : rows_ - 1; }
  /// How many of the best logits of a row take() looks at; 0: all (logits_of() in runtime/concept.hpp).
  [[nodiscard]] std::size_t best() const noexcept {
    if constexpr (SelectiveSampler<S>) {
      const std::size_t known = tokenizer_.vocabulary().size(), n_vocab = session_.model().config().n_vocab;
      const std::size_t wanted = constraint_.active() || options_.on_token ? known : sampler_.wanted(known);
      if (wanted < known) return wanted + (n_vocab - known);  // rows that are padding may be the best
    }
    return 0;
  }
  /// The session took them. logits: (rows(), n_vocab)
  void take(MatrixView<const float> logits) {
    const double seconds = step_.seconds();
    if (reads()) {
      read_ += next_.size();
      if (rows_ == 0) return;
      end_reading();
      static_cast<void>(sample_rows(logits));
      return;
    }
    const std::size_t drafted = drafts(), ran = next_.size() - drafted;
    result_.unfed -= ran;
    if (rows_ == 0) return;
    const std::size_t before = session_.tokens().size() - drafted;
    const std::size_t accepted = sample_rows(logits);
    if (ran == 1) pace_.count(drafted, accepted, seconds);
    result_.drafts.drafted += drafted;
    result_.drafts.accepted += accepted;
    session_.rewind(before + accepted);
  }
  /// The session took them, and their logits could not be computed: the answer ends, and drafts are taken
  /// back.
  void lose(StopReason reason) {
    const std::size_t drafted = drafts();
    if (reads()) {
      read_ += next_.size();
      if (!reads()) end_reading();
    } else {
      result_.unfed -= next_.size() - drafted;
    }
    if (drafted > 0) session_.rewind(session_.tokens().size() - drafted);
    stop(reason);
  }
  /// The session did not take them. Of several tokens of an answer the first is tried alone; where it is
  /// refused, the context shifts, if it is full and the options allow it, or the answer ends.
  void refuse(model::StepStatus status) {
    const bool several = !reads() && next_.size() > 1;
    if (several && !ends_all(status)) {
      several_ = false;
    } else if (status == model::StepStatus::context_full && options_.on_full == OnFull::shift &&
               session_.tokens().size() > options_.keep_first) {
      result_.shifted += session_.shift(options_.keep_first);
    } else {
      stop(detail::reason_of(status));
    }
  }

  /// In place of a prompt: the logits after the last token of the session.
  void resume(std::span<const float> logits) {
    end_reading();
    static_cast<void>(sample_rows({logits.data(), 1, logits.size()}));
  }
  /// Ends it early.
  void stop(StopReason reason) {
    if (std::exchange(over_, true)) return;
    result_.reason = reason;
    if (reads()) {
      end_reading();
      return;
    }
    writer_.finish();
    result_.timings.predicted = {result_.tokens.size(), watch_.seconds()};
  }
  /// Raises ErrorCode::failed where logits were not finite, naming the layer, or left no token;
  /// ErrorCode::limit where the constraint allowed none. Runs the model: all other results of the last step
  /// must have been taken.
  void raise_if_failed() {
    const std::size_t last = session_.tokens().size() - 1;
    if (failure_ == Failure::not_finite) session_.raise_non_finite(last);
    if (failure_ == Failure::not_allowed) {
      const std::string why = constraint_.why();
      MICA_CHECK(why.empty(), limit, why);
      raise(ErrorCode::limit, "the constraint allows no token after ", result_.tokens.size(),
            " tokens of the answer");
    }
    MICA_CHECK(failure_ == Failure::none, failed, "no token was chosen after token ", last,
               ": the sampler returned none, as sample::Standard does where every logit is -infinity");
  }
  /// The answer so far.
  [[nodiscard]] GenerateResult& result() noexcept { return result_; }

 private:
  enum class Failure : std::uint8_t { none, not_finite, no_token, not_allowed };

  /// Drafts only tokens that can be part of the answer.
  [[nodiscard]] std::size_t draft(std::size_t max) {
    const std::size_t recommended =
        std::max(pace_.choose(drafts_.size()), std::min(options_.min_drafts, drafts_.size()));
    const std::size_t wanted =
        options_.max_tokens == 0 ? max : options_.max_tokens - result_.tokens.size() - 1;
    std::size_t remaining = std::max<std::size_t>(session_.remaining(), 1) - 1;
    if (session_.model().kv_capacity() != 0) {  // an eviction for a draft could not be undone
      remaining = std::min(remaining, kv::eviction_step - 1 - session_.tokens().size() % kv::eviction_step);
    }
    const std::size_t n = std::min({recommended, max, wanted, remaining});
    if (n == 0) {
      if constexpr (FollowingDrafter<D>) drafter_.follow(session_.tokens(), result_.tokens.back());
      return 0;
    }
    const std::size_t drafted =
        drafter_.draft(session_.tokens(), result_.tokens.back(), std::span(drafts_).first(n));
    return constraint_.allowed_drafts(std::span(drafts_).first(drafted));
  }

  void end_reading() {
    result_.timings.prompt = {prompt_.size() - skipped_, watch_.seconds()};
    watch_ = {};
  }
  /// Continues the answer after each row, while its tokens are the drafts of the step; returns the number of
  /// drafts that were accepted.
  [[nodiscard]] std::size_t sample_rows(MatrixView<const float> logits) {
    const std::size_t first = result_.tokens.size();  // the place of the token after row 0
    const auto drafts = std::span(next_).last(logits.rows() - 1);
    for (std::size_t row = 0;;) {
      if (detail::is_set(options_.cancel)) return stop(StopReason::cancelled), row;
      if (!extend(logits[row])) return row;
      const auto made = std::span(result_.tokens).subspan(first);
      for (; row < std::min(drafts.size(), made.size()) && drafts[row] == made[row]; ++row) --result_.unfed;
      if (row < made.size()) return row;  // the session does not have its other tokens
    }
  }

  /// Adds the tokens that are forced here, or else one that is sampled and those that are forced after it.
  /// False when the answer is over.
  [[nodiscard]] bool extend(std::span<const float> logits) {
    if constexpr (C::constrains) {
      const std::size_t before = result_.tokens.size();
      if (!force()) return false;
      if (result_.tokens.size() > before) return true;
      if (!sample(logits)) return false;
      forces_ = true;
      return force();
    } else {
      return sample(logits);
    }
  }
  /// Adds tokens until none is forced, or more than one step may run; the others follow after that step.
  /// False when the answer is over.
  [[nodiscard]] bool force() {
    while (forces_ && result_.unfed < session_.model().chunk()) {
      const auto forced = constraint_.forced();
      forces_ = !forced.empty();
      for (const TokenId id : forced) {
        if (!constraint_.advance(id)) return fail(Failure::not_allowed), false;
        ++result_.forced;
        if (!add(id, {{id, 0}, {}})) return false;
      }
    }
    return true;
  }
  /// False when the answer is over.
  [[nodiscard]] bool sample(std::span<const float> logits) {
    if (!all_finite(logits)) return fail(Failure::not_finite), false;
    // An output matrix may have more rows than the vocabulary has entries, as padding.
    const auto known = logits.first(tokenizer_.vocabulary().size());
    const auto allowed = constraint_.masked(known);
    if (allowed.empty()) return fail(Failure::not_allowed), false;
    const auto id = sampler_.sample(allowed);
    if (!id) return fail(Failure::no_token), false;
    if (!constraint_.advance(*id)) return fail(Failure::not_allowed), false;
    return add(*id, options_.on_token ? scorer_.of(known, *id) : TokenScores());
  }
  /// Adds a token to the answer; false when the answer is over.
  [[nodiscard]] bool add(TokenId id, const TokenScores& scores) {
    sampler_.accept(id);
    result_.tokens.push_back(id);
    ++result_.unfed;
    if (options_.on_token) options_.on_token(scores);
    // Nothing follows an end token that a constraint allowed.
    const bool stops = options_.stop_at_end || constraint_.active();
    if (stops && tokenizer_.vocabulary().is_end(id)) {
      stop(StopReason::end_of_text);
    } else if (!writer_.write(id)) {
      result_.stop = writer_.stop();
      stop(writer_.stopped() ? StopReason::stop_text : StopReason::cancelled);
    } else if (result_.tokens.size() == options_.max_tokens) {
      stop(StopReason::length);
    }
    return !over_;
  }

  void fail(Failure failure) {
    failure_ = failure;
    stop(StopReason::cancelled);
  }

  Session<Model>& session_;
  const Tokenizer& tokenizer_;
  S& sampler_;
  D& drafter_;
  detail::Constrained<C> constraint_;
  GenerateOptions options_;
  OnText on_text_;
  detail::TextWriter<Tokenizer, OnText> writer_;
  std::vector<TokenId> prompt_;
  std::size_t read_ = 0;         // tokens of the prompt that the session took
  std::size_t skipped_ = 0;      // or had, without a step
  std::vector<TokenId> next_;    // what next() answered
  std::size_t rows_ = 0;         // of its tokens
  std::vector<TokenId> drafts_;  // (drafter.max_drafts())
  detail::TokenScorer scorer_;   // for on_token
  bool several_ = true;          // whether the next step may have several tokens of the answer
  bool forces_ = C::constrains;  // whether the constraint may force a token here
  DraftPace pace_;
  Stopwatch step_;  // since next()
  Failure failure_ = Failure::none;
  bool over_ = false;
  GenerateResult result_;
  Stopwatch watch_;                           // of reading, then of writing
  static inline NoConstraint unconstrained_;  // has no state
};

}  // namespace mica
