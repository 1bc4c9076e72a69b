// SPDX-License-Identifier: Apache-2.0
//
// The conversation of the program: a mica::Chat over the session of --session, whose answers an Answerer
// prints.
#pragma once

#include "answer.hpp"
#include "chat_format.hpp"
#include "mica_tools/chat/chat.hpp"
#include "saved_session.hpp"

#include <string>
#include <vector>

namespace mica::program {

class Conversation {
 public:
  /// Verb and model outlive the conversation. The system prompt of the options is its first message; with a
  /// saved session the messages are those of its conversation.
  Conversation(const AnswerVerb& verb, Model& model, ChatFormat format);
  Conversation(const Conversation&) = delete;  // the chat refers to the session
  Conversation& operator=(const Conversation&) = delete;

  [[nodiscard]] const std::vector<text::Message>& messages() const noexcept { return chat_.messages(); }
  /// That of the last answer.
  [[nodiscard]] const Session<AnyModel>& session() const noexcept { return chat_.session(); }
  [[nodiscard]] const ChatFormat& format() const noexcept { return format_; }
  /// From the next answer on.
  void set_thinking(std::optional<bool> thinking);

  /// The next answers come from this session, of another model with the same vocabulary, which outlives the
  /// conversation; null: from the session of --session.
  void set_session(Session<AnyModel>* session) {
    chat_.set_session(session != nullptr ? *session : saved_.session());
  }

  /// Answers a message. Returns the exit code of the answer; after an error there is no message.
  int say(std::string text, Answerer& answerer);
  /// Answers the last message once more; after an error the former answer is there.
  int regenerate(Answerer& answerer);

  /// Call it while a line is typed: Answerer::rest().
  void rest(Answerer& answerer) { answerer.rest(saved_.session()); }

  /// Writes the conversation to the file of --session, if there is one.
  void save(const Answerer& answerer);

  /// Sets the system prompt; an empty text removes it.
  void set_system(std::string text) { chat_.set_system(std::move(text)); }
  /// Removes the last answer and the question before it; false if there is none.
  bool undo() { return chat_.undo(); }
  /// Removes all messages but the system prompt.
  void clear() { chat_.clear(); }

 private:
  int answer(Answerer& answerer);
  /// Whether the next answer comes from the session of --session.
  [[nodiscard]] bool is_saved() const noexcept { return &session() == &saved_.session(); }

  ChatFormat format_;
  SavedSession saved_;
  Chat<AnyModel, text::AnyTokenizer> chat_;
  bool shifts_;  // whether the context does, when it is full
};

/// The system prompt of the options, from a flag or a file.
[[nodiscard]] std::string system_prompt_of(const AnswerVerb& verb);

}  // namespace mica::program
