// SPDX-License-Identifier: Apache-2.0
#include "conversation.hpp"

#include "console.hpp"
#include "mica/gguf/append.hpp"
#include "mica/gguf/span_reader.hpp"

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

Conversation::Conversation(const Options& options, Model& model, ChatFormat format)
    : model_(model), format_(std::move(format)), saved_(options, model) {
  if (saved_.resumed()) messages_ = messages_of(options.session, saved_.note().text);
  const std::string system = system_prompt_of(options);
  if (!system.empty() || !saved_.resumed()) set_system(system);
}

void Conversation::save(const Answerer& answerer) { saved_.save(answerer, text_of(messages_)); }

int Conversation::answer(Answerer& answerer) {
  const std::vector<TokenId> wanted = ids();
  const int code = answerer.answer(saved_.session(), bring_in_line(saved_.session(), wanted));
  messages_.push_back({"assistant", answerer.text()});
  return code;
}

std::vector<TokenId> Conversation::ids() const {
  const text::AnyTokenizer& tokenizer = model_.tokenizer();
  auto ids = tokenizer.encode(format_.render(messages_), {.add_special = false, .parse_special = true});
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool lacks_bos = vocabulary.add_bos() && (ids.empty() || ids.front() != *vocabulary.special().bos);
  if (lacks_bos) ids.insert(ids.begin(), *vocabulary.special().bos);  // most templates write it themselves
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

std::string system_prompt_of(const Options& options) {
  return options.system_prompt_file.empty() ? options.system_prompt : read_text(options.system_prompt_file);
}

}  // namespace mica::program
