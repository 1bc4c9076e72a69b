// SPDX-License-Identifier: Apache-2.0
#include "conversation.hpp"

#include "console.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/gguf/span_reader.hpp"

#include <span>
#include <string_view>
#include <utility>

namespace mica::program {
namespace {

/// The role under which thoughts stand, behind the message of their answer.
constexpr std::string_view thoughts_role = "thoughts";

/// Messages as the note of a saved session: role and content, one after the other.
std::string text_of(const std::vector<text::Message>& messages) {
  std::vector<std::byte> bytes;
  for (const text::Message& message : messages) {
    gguf::append_text(bytes, message.role);
    gguf::append_text(bytes, message.content);
    if (message.thoughts.empty()) continue;
    gguf::append_text(bytes, thoughts_role);
    gguf::append_text(bytes, message.thoughts);
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<text::Message> messages_of(const std::string& path, std::string_view bytes) {
  gguf::SpanReader reader(path, std::as_bytes(std::span(bytes)));
  reader.enter("messages");
  std::vector<text::Message> messages;
  while (reader.remaining() > 0) {
    const auto role = reader.text("a role");
    std::string content(reader.text("a message"));
    if (role == thoughts_role && !messages.empty()) {
      messages.back().thoughts = std::move(content);
    } else {
      messages.push_back({std::string(role), std::move(content)});
    }
  }
  return messages;
}

}  // namespace

Conversation::Conversation(const AnswerVerb& verb, Model& model, ChatFormat format)
    : format_(std::move(format)),
      saved_(verb, model),
      chat_(saved_.session(), model.tokenizer(), format_.renderer()),
      shifts_(verb.on_full == OnFull::shift) {
  if (saved_.resumed()) chat_.messages() = messages_of(verb.session, saved_.note().text);
  MICA_CHECK(
      !saved_.resumed() || !messages().empty() || session().tokens().empty(), usage, verb.session,
      ": this session file holds plain text and no conversation; continue it with mica complete, or give "
      "another file with --session");
  if (!messages().empty())
    note(verb, join("mica: ", escaped(verb.session), ": messages so far: ", messages().size()));
  const std::string system = system_prompt_of(verb);
  if (!system.empty() || !saved_.resumed()) set_system(system);
}

void Conversation::set_thinking(std::optional<bool> thinking) {
  format_.set_thinking(thinking);
  chat_.set_renderer(format_.renderer());
}

/// Tokens of a first message that got no answer are not saved: without messages they would be plain text.
void Conversation::save(const Answerer& answerer) {
  if (messages().empty()) saved_.session().rewind(0);
  saved_.save(answerer, text_of(messages()));
}

int Conversation::say(std::string text, Answerer& answerer) {
  return chat_.with_message({"user", std::move(text)}, [&] { return answer(answerer); });
}

int Conversation::regenerate(Answerer& answerer) {
  return chat_.instead_of_answer([&] { return answer(answerer); });
}

int Conversation::answer(Answerer& answerer) {
  if (answerer.first_prompt() == 0 && saved_.resumed() && is_saved())
    answerer.set_first_prompt(saved_.note().first_prompt);
  const std::size_t before = session().tokens().size();
  const auto write = [&](Session<AnyModel>& session, std::span<const TokenId> tokens, const auto& on_text) {
    if (is_saved()) saved_.note_kept(session.tokens().size(), before);
    answerer.constrain_behind_thoughts(session, tokens);
    answerer.generate(session, tokens, on_text);
    return answerer.result();
  };
  chat_.answer_with(write, {shifts_, answerer.keep_first()},
                    [&](ChatPart part, std::string_view piece) { return answerer.show(part, piece); });
  return answerer.finish();
}

std::string system_prompt_of(const AnswerVerb& verb) {
  return verb.system_prompt_file.empty() ? verb.system_prompt : read_text(verb.system_prompt_file);
}

}  // namespace mica::program
