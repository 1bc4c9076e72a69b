// SPDX-License-Identifier: Apache-2.0
//
// The session of --session FILE: opened if the file exists, otherwise new, and written at the end.
// Without --session it is a session like any other.
#pragma once

#include "answer.hpp"
#include "answer_options.hpp"
#include "mica/runtime/open.hpp"

#include <span>
#include <string>
#include <vector>

namespace mica::program {

class SavedSession {
 public:
  /// Verb and model outlive it. Raises as Session::open() for a file that cannot be opened.
  SavedSession(const AnswerVerb& verb, Model& model);

  [[nodiscard]] Session<AnyModel>& session() noexcept { return session_; }
  [[nodiscard]] const Session<AnyModel>& session() const noexcept { return session_; }
  /// Whether it was opened from a file, and the note of that file.
  [[nodiscard]] bool resumed() const noexcept { return resumed_; }
  [[nodiscard]] const SessionNote& note() const noexcept { return note_; }

  /// Removes the tokens of the session after its common beginning with a text. Returns the rest of the text,
  /// at least its last token. The first time, for a session from a file, stderr says how many tokens stay.
  [[nodiscard]] std::span<const TokenId> bring_in_line(std::span<const TokenId> text);

  /// The first time, for a session from a file: stderr says that of `before` tokens `stay` remain.
  void note_kept(std::size_t stay, std::size_t before);

  /// Writes it; text: the text of its note.
  void save(const Answerer& answerer, std::string text = {});

 private:
  [[nodiscard]] Session<AnyModel> take_up(Model& model);

  const AnswerVerb& verb_;
  bool resumed_ = false;
  bool noted_ = false;  // whether stderr has said how many tokens stay
  SessionNote note_;
  Session<AnyModel> session_;
};

/// Whether --session names an existing file.
[[nodiscard]] bool session_waits(const AnswerVerb& verb);

/// Whether the file of --session has tokens and no conversation. The file exists. Raises as
/// Session::open().
[[nodiscard]] bool holds_plain_text(const AnswerVerb& verb, Model& model);

/// Raises ErrorCode::file if the file of --session cannot be written or is not regular: before the answer,
/// not after it.
void check_session_file(const AnswerVerb& verb);

}  // namespace mica::program
