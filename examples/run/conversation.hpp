// SPDX-License-Identifier: Apache-2.0
//
// A conversation with a model: its messages, and a session that is brought in line with them. Whatever the
// new text has in common with the old one stays in the cache.
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

  /// Lets the model answer the messages; the answer becomes a message. Returns the exit code of the answer.
  int answer(Answerer& answerer);

  /// Somebody is typing: Answerer::rest().
  void rest(Answerer& answerer) { answerer.rest(saved_.session()); }

  /// Writes the conversation to the file of --session, if there is one.
  void save(const Answerer& answerer);

  /// The system's words; an empty text takes them away.
  void set_system(std::string text);
  /// Takes the last answer and the question before it back; false when there is none.
  bool undo();
  /// Takes the last answer back alone; false when there is none.
  bool undo_answer();
  /// Forgets everything but the system's words.
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
  std::vector<TokenId> said_;  // what was wanted last, and the answer
  std::size_t evicted_ = 0;    // tokens of it, behind the first ones, that the session has no more
};

/// The system prompt of the options, from a flag or a file.
[[nodiscard]] std::string system_prompt_of(const AnswerVerb& verb);

}  // namespace mica::program
