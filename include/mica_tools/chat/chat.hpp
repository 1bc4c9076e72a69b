// SPDX-License-Identifier: Apache-2.0
//
// A conversation: its messages, and a session with their text. The tokens at the beginning that the session
// already has are kept, and only the others are fed, also where a template writes earlier messages in another
// way (many leave out the thoughts of earlier answers).
//
//   messages -> template -> tokens -> session.rewind_to_common() -> generate() -> thoughts | answer
#pragma once

#include "mica/runtime/generate.hpp"
#include "mica_tools/chat/chat_renderer.hpp"
#include "mica_tools/chat/chat_tokens.hpp"
#include "mica_tools/chat/marked_messages.hpp"
#include "mica_tools/chat/thought_splitter.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

/// What is done with a conversation that has become longer than the context.
struct ChatShift {
  bool shifts = false;         // removes tokens after the first ones, until half of the context is free
  std::size_t keep_first = 0;  // first tokens that stay
};

/// The messages of one conversation over a session. Session and tokenizer must outlive it. Other uses of the
/// session cost time and change no answer. One thread at a time; GenerateOptions::cancel may be set from any
/// thread, and ends the answer before the next step.
/// A function that raises leaves the messages as they were, and so does an answer that ends before its first
/// token: say() adds no message then, and regenerate() puts the former answer back.
template <StepModel Model, text::Tokenizer Tokenizer>
class Chat {
 public:
  /// messages: those before the first answer, such as a system prompt; the session may have their tokens.
  Chat(Session<Model>& session, const Tokenizer& tokenizer, ChatRenderer renderer,
       std::vector<text::Message> messages = {})
      : session_(&session),
        tokenizer_(tokenizer),
        renderer_(std::move(renderer)),
        messages_(std::move(messages)) {}

  /// May be changed between two answers.
  [[nodiscard]] std::vector<text::Message>& messages() noexcept { return messages_; }
  [[nodiscard]] const std::vector<text::Message>& messages() const noexcept { return messages_; }
  /// Sets the format from the next answer on.
  void set_renderer(ChatRenderer renderer) { renderer_ = std::move(renderer); }
  /// The session of the next answer.
  [[nodiscard]] const Session<Model>& session() const noexcept { return *session_; }
  /// The next answers are generated on another session, which must outlive the chat. Its model may be another
  /// one of the same vocabulary, such as a smaller quantisation. What the session lacks of the conversation
  /// is fed with the next answer.
  void set_session(Session<Model>& session) noexcept { session_ = &session; }

  /// Adds a message of the user and answers it. on_part(ChatPart, std::string_view) gets whole UTF-8
  /// sequences of thoughts, then of the answer; if it returns false, the answer ends as cancelled. The answer
  /// becomes a message, also one that was stopped after its first token.
  /// Raises what generate() and the renderer raise; ErrorCode::limit if the conversation does not fit the
  /// context (with OnFull::shift: if its first question does not).
  template <Sampler S, class OnPart>
  GenerateResult say(std::string text, S& sampler, const GenerateOptions& options, OnPart&& on_part) {
    return with_message({"user", std::move(text)}, [&] { return answer(sampler, options, on_part); });
  }
  /// Answers the messages as they are.
  template <Sampler S, class OnPart>
  GenerateResult answer(S& sampler, GenerateOptions options, OnPart&& on_part) {
    if (!renderer_.stop.empty()) options.stop.push_back(renderer_.stop);
    const ChatShift shift{options.on_full == OnFull::shift, options.keep_first};
    const auto write = [&](Session<Model>& session, std::span<const TokenId> tokens, auto&& on_text) {
      check_fits(tokens.size());
      return generate(session, tokenizer_, sampler, tokens, options, on_text);
    };
    return answer_with(write, shift, on_part);
  }
  /// Answers the last question once more, in place of the last answer. Raises ErrorCode::usage if there is
  /// none.
  template <Sampler S, class OnPart>
  GenerateResult regenerate(S& sampler, const GenerateOptions& options, OnPart&& on_part) {
    return instead_of_answer([&] { return answer(sampler, options, on_part); });
  }

  /// Answers with a generation of the caller: generate(session, tokens, on_text) feeds the tokens, [1, n],
  /// passes all text to bool on_text(std::string_view), and returns the GenerateResult. For drafts, batches,
  /// and programs with a loop of their own. It must also stop at the renderer's stop text.
  template <class Generate, class OnPart>
  GenerateResult answer_with(Generate&& generate, const ChatShift& shift, OnPart&& on_part) {
    text::Message message{"assistant", {}, {}};
    const text::ChatText chat = rendered();
    const std::vector<TokenId> all = text::chat_tokens(tokenizer_, chat);
    std::vector<TokenId> wanted = all;
    leave_out(wanted, shift);
    // Logits come from a token that is fed.
    const std::size_t stay = session_->rewind_to_common(std::span(wanted).first(wanted.size() - 1));
    ThoughtSplitter splitter(chat.text);
    const auto give = [&](ChatPart part, std::string_view text) {
      (part == ChatPart::thoughts ? message.thoughts : message.content) += text;
      return static_cast<bool>(on_part(part, text));
    };
    const auto on_text = [&](std::string_view text) { return splitter.take(text, give); };
    GenerateResult result = generate(*session_, std::span<const TokenId>(wanted).subspan(stay), on_text);
    splitter.finish(give);
    if (!result.tokens.empty()) messages_.push_back(std::move(message));
    said_ = all;
    said_.insert(said_.end(), result.tokens.begin(), result.tokens.end());
    left_out_ += result.shifted;
    return result;
  }
  /// Adds a message and calls answer(). If that raises or adds no answer, the message is removed again.
  template <class Answer>
  auto with_message(text::Message message, Answer&& answer) {
    const std::size_t before = messages_.size();
    messages_.push_back(std::move(message));
    try {
      auto result = answer();
      if (messages_.size() == before + 1) messages_.pop_back();
      return result;
    } catch (...) {
      messages_.resize(before);
      throw;
    }
  }
  /// Removes the last answer and calls answer(). If that raises or adds no answer, the former one returns.
  template <class Answer>
  auto instead_of_answer(Answer&& answer) {
    MICA_CHECK(has_answer(), usage, "nothing to answer again");
    text::Message former = std::move(messages_.back());
    messages_.pop_back();
    const std::size_t before = messages_.size();
    try {
      auto result = answer();
      if (messages_.size() == before) messages_.push_back(std::move(former));
      return result;
    } catch (...) {
      messages_.push_back(std::move(former));
      throw;
    }
  }

  /// The tokens of the conversation, with the beginning of the next answer. Renders and encodes all messages.
  [[nodiscard]] std::vector<TokenId> tokens() const { return text::chat_tokens(tokenizer_, rendered()); }

  /// Sets the system prompt, the first message; an empty text removes it.
  void set_system(std::string text) {
    if (has_system()) messages_.erase(messages_.begin());
    if (!text.empty()) messages_.insert(messages_.begin(), {"system", std::move(text)});
  }
  /// Removes the last answer, and the question before it; false if there is none.
  bool undo() {
    if (!has_answer()) return false;
    messages_.pop_back();
    if (!messages_.empty() && messages_.back().role == "user") messages_.pop_back();
    return true;
  }
  /// Removes all messages but the system prompt.
  void clear() { messages_.resize(has_system() ? 1 : 0); }

 private:
  [[nodiscard]] bool has_system() const noexcept {
    return !messages_.empty() && messages_.front().role == "system";
  }
  [[nodiscard]] bool has_answer() const noexcept {
    return !messages_.empty() && messages_.back().role == "assistant";
  }
  [[nodiscard]] text::ChatText rendered() const {
    MICA_CHECK(!messages_.empty(), usage, "a conversation needs a message before it is answered");
    const text::MarkedMessages marked(messages_, tokenizer_.vocabulary());
    return marked.unmarked(renderer_.render(marked.messages()));
  }
  /// Shortens a conversation that has become too long. The first tokens stay; the tokens after them that
  /// earlier shifts removed are left out. Where this is not enough, more are left out, until half of the
  /// context is free.
  void leave_out(std::vector<TokenId>& wanted, const ChatShift& shift) {
    const std::size_t n_ctx = session_->model().n_ctx(), first = std::min(shift.keep_first, wanted.size());
    const auto differs = std::mismatch(wanted.begin(), wanted.end(), said_.begin(), said_.end()).first;
    if (static_cast<std::size_t>(differs - wanted.begin()) < first + left_out_) left_out_ = 0;
    const bool has_history =
        messages_.size() > 2;  // a first question is not shortened; it fits or is refused
    if (shift.shifts && has_history && wanted.size() - left_out_ >= n_ctx)
      left_out_ = wanted.size() - first - (n_ctx - first) / 2;
    const auto begin = wanted.begin() + static_cast<std::ptrdiff_t>(first);
    wanted.erase(begin, begin + static_cast<std::ptrdiff_t>(left_out_));
  }
  /// tokens: those to feed; the other tokens of the conversation are in the session.
  void check_fits(std::size_t tokens) const {
    const std::size_t all = session_->tokens().size() + tokens, n_ctx = session_->model().n_ctx();
    MICA_CHECK(all <= n_ctx, limit, "the conversation has ", all, " tokens; the capacity of the context is ",
               n_ctx, "; open the model with a larger n_ctx, shorten the conversation, or use OnFull::shift");
  }

  Session<Model>* session_;
  const Tokenizer& tokenizer_;
  ChatRenderer renderer_;
  std::vector<text::Message> messages_;
  std::vector<TokenId> said_;  // the tokens of the last text and of its answer
  std::size_t left_out_ = 0;   // number of its tokens, after the first ones, that shifts removed
};

}  // namespace mica
