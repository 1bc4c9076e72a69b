// SPDX-License-Identifier: Apache-2.0
#include "saved_session.hpp"

#include "console.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/io/file.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace mica::program {

bool session_waits(const AnswerVerb& verb) {
  std::error_code error;
  return !verb.session.empty() && std::filesystem::exists(verb.session, error);
}

bool holds_plain_text(const AnswerVerb& verb, Model& model) {
  SessionNote note;
  const auto session = model.open_session(verb.session, &note);
  return note.text.empty() && !session.tokens().empty();
}

void check_session_file(const AnswerVerb& verb) {
  if (verb.session.empty()) return;
  if (session_waits(verb)) static_cast<void>(io::File::open(verb.session));  // no pipe, no device
  io::AtomicFile can_be_written(verb.session);
}

SavedSession::SavedSession(const AnswerVerb& verb, Model& model)
    : verb_(verb), resumed_(session_waits(verb)), session_(take_up(model)) {
  if (!verb.session.empty()) session_.prepare_save();
}

Session<AnyModel> SavedSession::take_up(Model& model) {
  return resumed_ ? model.open_session(verb_.session, &note_) : model.session();
}

void SavedSession::save(const Answerer& answerer, std::string text) {
  if (verb_.session.empty()) return;
  SessionNote note{answerer.sampler_state(), {}, std::move(text), answerer.first_prompt()};
  note.next.assign(answerer.unfed().begin(), answerer.unfed().end());
  // They will be accepted when they are fed.
  auto& history = note.sampler->history;
  history.resize(history.size() - std::min(history.size(), note.next.size()));
  session_.save(verb_.session, note);
}

std::span<const TokenId> SavedSession::bring_in_line(std::span<const TokenId> text) {
  const std::size_t held = session_.tokens().size();
  // Logits come from a token that is fed.
  const std::size_t stay = session_.rewind_to_common(text.first(text.size() - 1));
  note_kept(stay, held);
  return text.subspan(stay);
}

void SavedSession::note_kept(std::size_t stay, std::size_t before) {
  if (!resumed_ || std::exchange(noted_, true)) return;
  const bool all = stay + 1 >= before;  // a last token may be fed again
  program::note(verb_, join("mica: ", escaped(verb_.session), ": continues after ", stay,
                            all ? " tokens"
                                : join(" of its ", before,
                                       " tokens, which the new text begins with; the "
                                       "others are dropped")));
}

}  // namespace mica::program
