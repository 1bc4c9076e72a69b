// SPDX-License-Identifier: Apache-2.0
//
// Generates an answer on the console: prints its text piece by piece, or JSON, then the timings, and returns
// the reason of its end as an exit code.
#pragma once

#include "answer_options.hpp"
#include "console.hpp"
#include "draft.hpp"
#include "meter.hpp"
#include "mica/constraint/any.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/runtime/governed.hpp"
#include "mica/runtime/mtp_drafter.hpp"
#include "mica/runtime/ngram.hpp"
#include "mica/runtime/open.hpp"
#include "mica/sample/standard.hpp"
#include "mica_tools/chat/thought_splitter.hpp"
#include "progress.hpp"

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mica::program {

class Answerer {
 public:
  /// Verb, model and draft outlive the answerer. draft: drafts tokens of the model; null: --speculate does,
  /// or nothing. stop: one more text that ends an answer, besides those of the verb.
  Answerer(const AnswerVerb& verb, Model& model, Draft* draft, std::string stop = {});
  Answerer(const Answerer&) = delete;  // its callbacks refer to it
  Answerer& operator=(const Answerer&) = delete;

  /// Gets the text of an answer in pieces; false ends it.
  using OnText = std::function<bool(std::string_view)>;

  /// Feeds the prompt and samples an answer. Its text goes to on_text, which calls show().
  void generate(Session<AnyModel>& session, std::span<const TokenId> prompt, const OnText& on_text);
  /// Where the prompt of the next answer opens thoughts, its constraint begins behind them.
  void constrain_behind_thoughts(const Session<AnyModel>& session, std::span<const TokenId> prompt);
  /// The next answer continues one that has these tokens. Raises ErrorCode::usage where they are no beginning
  /// of a text of the grammar.
  void continue_answer(std::span<const TokenId> tokens);
  /// Prints a piece of it: thoughts to stderr. False if stdout cannot be written to, which ends the answer.
  [[nodiscard]] bool show(ChatPart part, std::string_view piece);
  /// Call it behind the last piece: prints timings or JSON. Returns the exit code.
  int finish();
  /// Whether a write to stdout failed.
  [[nodiscard]] bool undelivered() const noexcept { return undelivered_ != nullptr; }
  /// Whether the model was halted because others took the memory: it answers no more.
  [[nodiscard]] bool halted() const noexcept { return governor_ != nullptr && governor_->halted(); }
  /// The governor of another model acts while this one answers, and its halt ends the answer.
  void share_governor(Answerer& other) noexcept { governor_ = other.governor_; }
  /// The sentence for that.
  [[nodiscard]] std::string halted_text() const;
  /// Whether another rank was lost: the model answers no more.
  [[nodiscard]] bool rank_lost() const noexcept { return result_.reason == StopReason::rank_lost; }
  /// Raises the error of print() again; call it after a session is saved. Raises nothing after SIGHUP and
  /// SIGTERM, which end the program anyway.
  void raise_undelivered() const;

  /// Call it while the session is idle: if memory is short, its keys and values are parked, if their storage
  /// has a file.
  void rest(Session<AnyModel>& session);

  /// Whether the line with timings follows each answer; the default is true.
  void show_timings(bool shown) noexcept { timings_shown_ = shown; }
  /// Whether a terminal shows how much of a prompt is read. False if the cursor is behind text of the same
  /// line.
  void show_reading_line(bool shown) noexcept { reading_shown_ = shown; }
  /// Options of the sampler from the next answer on. Raises ErrorCode::usage for what is out of range.
  void set_sampler(const AnswerOptions& options) { sampler_ = make_sampler(options, model_); }
  /// Tokens of an answer from the next one on, as -n has them: 0: the prompt is read and not answered.
  void set_max_tokens(const AnswerOptions& options) noexcept {
    reads_only_ = options.n_predict == 0;
    generate_.max_tokens = options.limit();
  }

  /// Whether thoughts are shown, from the next answer on.
  void show_thoughts(bool shown) noexcept { thoughts_shown_ = shown; }

  [[nodiscard]] std::string timings_line() const;
  /// Tokens that stay when the context shifts: BOS, and those of --keep; 0 if it does not shift.
  [[nodiscard]] std::size_t keep_first() const noexcept;
  /// Tokens of the first prompt of the session; 0 before it. Set it for a session from a file.
  [[nodiscard]] std::size_t first_prompt() const noexcept { return first_prompt_; }
  void set_first_prompt(std::uint64_t tokens) noexcept { first_prompt_ = static_cast<std::size_t>(tokens); }
  [[nodiscard]] const GenerateResult& result() const noexcept { return result_; }
  /// Tokens that were not fed to the session: usually the last one of the answer.
  [[nodiscard]] std::span<const TokenId> unfed() const noexcept { return unfed_; }
  [[nodiscard]] sample::SamplerState sampler_state() const { return sampler_.save(); }
  void restore_sampler(const sample::SamplerState& state) noexcept { sampler_.restore(state); }

 private:
  [[nodiscard]] static sample::Standard<> make_sampler(const AnswerOptions& options, Model& model);
  void announce_ending();
  void read_only(Session<AnyModel>& session, std::span<const TokenId> prompt);
  [[nodiscard]] std::string continue_text() const;
  void check_room(const Session<AnyModel>& session, std::size_t prompt);
  void show_thought(std::string_view piece);
  void end_thoughts();
  /// Says on the terminal how much of the prompt is read; takes the line away with the last token of it.
  void show_reading(std::size_t tokens);
  /// Writes to stdout; once that fails, no more is written, and the answer ends.
  template <class Write>
  void attempt(const Write& write) noexcept;
  void deliver(std::string_view text) noexcept;
  /// Adds what happened since the last piece; the first one ends the prompt.
  const Costs& count();
  [[nodiscard]] std::string json_object() const;
  [[nodiscard]] bool guesses() const noexcept {
    return draft_ != nullptr || drafter_.max_drafts() > 0 || mtp_.has_value();
  }

  const AnswerVerb& verb_;
  Model& model_;
  sample::Standard<> sampler_;
  Ngram drafter_;
  Draft* draft_;
  std::optional<MtpDrafter<AnyModel>> mtp_;     // once there is a session
  constraint::Any constraint_;                  // of an answer at its beginning
  std::string thoughts_end_;                    // the mark behind which it begins; empty: at once
  std::optional<constraint::Any> continued_;    // of the next one
  std::optional<Governed<AnyModel>> governed_;  // of this model
  Governed<AnyModel>* governor_ = nullptr;      // that, or of another model
  GenerateOptions generate_;
  GenerateResult result_;
  std::string text_, thoughts_;
  DataOutput output_;
  std::optional<ThoughtOutput> thought_output_;  // while thoughts are printed
  std::optional<Waiting> thinking_line_;         // while thoughts are not shown
  std::optional<ReadingLine> reading_line_;      // while a prompt is read
  std::exception_ptr undelivered_;               // what print() raised
  std::vector<TokenId> unfed_;
  std::size_t first_prompt_ = 0;
  std::size_t shortened_ = 0;   // tokens of the context that others left for the answer; 0: all
  std::optional<Meter> meter_;  // with --stats
  Costs lap_, prompt_costs_, answer_costs_;
  bool reading_ = true;      // the prompt
  bool reads_only_ = false;  // prompts are read and not answered
  bool timings_shown_ = true;
  bool thoughts_shown_;
  bool reading_shown_ = true;
};

/// Continues a text, without a template; an empty one begins with BOS, or at the end of a saved session.
/// Returns the exit code.
/// after_text: the terminal's cursor is behind text already.
int complete_text(const AnswerVerb& verb, Model& model, const std::string& prompt, bool after_text = false);

}  // namespace mica::program
