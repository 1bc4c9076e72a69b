// SPDX-License-Identifier: Apache-2.0
#include "conversation.hpp"

#include "console.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/gguf/span_reader.hpp"

#include <algorithm>
#include <utility>

namespace mica::program {
namespace {

/// Messages as the note of a saved session: role and content, one after the other.
std::string text_of(const std::vector<text::Message>& messages) {
  std::vector<std::byte> bytes;
  for (const text::Message& message : messages) {
    gguf::append_text(bytes, message.role);
    gguf::append_text(bytes, message.content);
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<text::Message> messages_of(const std::string& path, std::string_view bytes) {
  gguf::SpanReader reader(path, std::as_bytes(std::span(bytes)));
  reader.enter("messages");
  std::vector<text::Message> messages;
  while (reader.remaining() > 0) {
    const auto role = reader.text("a role");
    messages.push_back({std::string(role), std::string(reader.text("a message"))});
  }
  return messages;
}

}  // namespace

Conversation::Conversation(const AnswerVerb& verb, Model& model, ChatFormat format)
    : model_(model), format_(std::move(format)), saved_(verb, model), shifts_(verb.on_full == OnFull::shift) {
  if (saved_.resumed()) messages_ = messages_of(verb.session, saved_.note().text);
  MICA_CHECK(
      !saved_.resumed() || !messages_.empty() || session().tokens().empty(), usage, verb.session,
      ": this session file holds plain text and no conversation; continue it with mica complete, or give "
      "another file with --session");
  if (!messages_.empty())
    note(verb, join("mica: ", escaped(verb.session), ": messages so far: ", messages_.size()));
  const std::string system = system_prompt_of(verb);
  if (!system.empty() || !saved_.resumed()) set_system(system);
}

void Conversation::save(const Answerer& answerer) { saved_.save(answerer, text_of(messages_)); }

/// Shortens a conversation that has become too long: removes the tokens after the first ones that the context
/// has shifted over. If these are not known or not enough, removes so many that half of the context remains.
void Conversation::leave_out(std::vector<TokenId>& wanted, std::size_t first) {
  const std::size_t n_ctx = session().model().n_ctx();
  const auto differs = std::mismatch(wanted.begin(), wanted.end(), said_.begin(), said_.end()).first;
  if (static_cast<std::size_t>(differs - wanted.begin()) < first + evicted_) evicted_ = 0;
  const bool can_continue = messages_.size() > 2;  // a first question is not shortened; it fits or is refused
  if (shifts_ && can_continue && wanted.size() - evicted_ >= n_ctx) {
    evicted_ = wanted.size() - first - (n_ctx - first) / 2;
  }
  const auto begin = wanted.begin() + static_cast<std::ptrdiff_t>(first);
  wanted.erase(begin, begin + static_cast<std::ptrdiff_t>(evicted_));
}

int Conversation::answer(Answerer& answerer) {
  const std::vector<TokenId> all = ids();
  std::vector<TokenId> wanted = all;
  if (answerer.first_prompt() == 0 && saved_.resumed()) answerer.set_first_prompt(saved_.note().first_prompt);
  leave_out(wanted, std::min(answerer.keep_first(), wanted.size()));
  const int code = answerer.answer(saved_.session(), saved_.bring_in_line(wanted));
  messages_.push_back({"assistant", answerer.text()});
  said_ = all;
  said_.insert(said_.end(), answerer.result().tokens.begin(), answerer.result().tokens.end());
  evicted_ += answerer.result().shifted;
  return code;
}

std::vector<TokenId> Conversation::ids() const {
  const text::AnyTokenizer& tokenizer = model_.tokenizer();
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const text::ChatText chat = format_.render(messages_, vocabulary);
  auto ids =
      tokenizer.encode(chat.text, {.add_special = false, .parse_special = true, .literal = chat.literal});
  const bool lacks_bos = vocabulary.add_bos() && (ids.empty() || ids.front() != *vocabulary.special().bos);
  if (lacks_bos) ids.insert(ids.begin(), *vocabulary.special().bos);  // most templates write it
  MICA_CHECK(!ids.empty(), failed, "the chat format renders nothing");
  return ids;
}

void Conversation::set_system(std::string text) {
  if (has_system()) messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {"system", std::move(text)});
}

bool Conversation::undo_answer() {
  if (messages_.empty() || messages_.back().role != "assistant") return false;
  messages_.pop_back();
  return true;
}

bool Conversation::undo() {
  if (!undo_answer()) return false;
  if (!messages_.empty() && messages_.back().role == "user") messages_.pop_back();
  return true;
}

void Conversation::clear() { messages_.resize(has_system() ? 1 : 0); }

std::string system_prompt_of(const AnswerVerb& verb) {
  return verb.system_prompt_file.empty() ? verb.system_prompt : read_text(verb.system_prompt_file);
}

}  // namespace mica::program
