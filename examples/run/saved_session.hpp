// SPDX-License-Identifier: Apache-2.0
//
// The session of --session FILE: taken up where the file is there, begun where it is not, and written back at
// the end.
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
  /// Verb and model outlive it. Raises as Session::open() for a file that cannot be taken up.
  SavedSession(const AnswerVerb& verb, Model& model);

  [[nodiscard]] Session<AnyModel>& session() noexcept { return session_; }
  [[nodiscard]] const Session<AnyModel>& session() const noexcept { return session_; }
  /// Whether it was taken up from a file, and what was beside it there.
  [[nodiscard]] bool resumed() const noexcept { return resumed_; }
  [[nodiscard]] const SessionNote& note() const noexcept { return note_; }

  /// Takes back what the session holds beyond its common beginning with a text. Returns the rest of the text,
  /// at least its last token. The first time, of a session from a file, stderr says how much stays.
  [[nodiscard]] std::span<const TokenId> bring_in_line(std::span<const TokenId> text);

  /// Writes it back; text: what the next one finds in its note.
  void save(const Answerer& answerer, std::string text = {});

 private:
  [[nodiscard]] Session<AnyModel> take_up(Model& model);

  const AnswerVerb& verb_;
  bool resumed_ = false;
  bool requested_ = false;  // how much of a resumed session stays
  SessionNote note_;
  Session<AnyModel> session_;
};

/// Whether --session names a file that is there.
[[nodiscard]] bool session_waits(const AnswerVerb& verb);

/// Raises ErrorCode::file if the file of --session cannot be written or is not regular: before the answer,
/// not after it.
void check_session_file(const AnswerVerb& verb);

}  // namespace mica::program
