// SPDX-License-Identifier: Apache-2.0
//
// A conversation with a model: its messages, and a session with their text. The common beginning of the new
// text and the old one stays in the cache.
#pragma once

#include "answer.hpp"
#include "chat_format.hpp"
#include "saved_session.hpp"

#include <string>
#include <vector>

namespace mica::program {

class Conversation {
 public:
  /// Verb and model outlive the conversation. The system prompt of the options is its first message; with a
  /// saved session the messages are those of its conversation.
  Conversation(const AnswerVerb& verb, Model& model, ChatFormat format);

  [[nodiscard]] std::vector<text::Message>& messages() noexcept { return messages_; }
  [[nodiscard]] const Session<AnyModel>& session() const noexcept { return saved_.session(); }
  [[nodiscard]] const ChatFormat& format() const noexcept { return format_; }

  /// Generates the answer of the model and appends it to the messages. Returns the exit code of the answer.
  int answer(Answerer& answerer);

  /// Call it while a line is typed: Answerer::rest().
  void rest(Answerer& answerer) { answerer.rest(saved_.session()); }

  /// Writes the conversation to the file of --session, if there is one.
  void save(const Answerer& answerer);

  /// Sets the system prompt; an empty text removes it.
  void set_system(std::string text);
  /// Removes the last answer and the question before it; false if there is none.
  bool undo();
  /// Removes the last answer alone; false if there is none.
  bool undo_answer();
  /// Removes all messages but the system prompt.
  void clear();

 private:
  [[nodiscard]] bool has_system() const noexcept {
    return !messages_.empty() && messages_.front().role == "system";
  }
  [[nodiscard]] std::vector<TokenId> ids() const;
  void leave_out(std::vector<TokenId>& wanted, std::size_t first);

  Model& model_;
  ChatFormat format_;
  SavedSession saved_;
  std::vector<text::Message> messages_;
  bool shifts_;                // whether the context does, when it is full
  std::vector<TokenId> said_;  // the last text, and its answer
  std::size_t evicted_ = 0;    // tokens of it, after the first ones, that a shift removed
};

/// The system prompt of the options, from a flag or a file.
[[nodiscard]] std::string system_prompt_of(const AnswerVerb& verb);

}  // namespace mica::program
