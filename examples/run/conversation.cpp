// SPDX-License-Identifier: Apache-2.0
#include "conversation.hpp"

#include "console.hpp"

#include <algorithm>
#include <utility>

namespace mica::program {

Conversation::Conversation(const Options& options, Model& model, ChatFormat format)
    : model_(model), format_(std::move(format)), session_(model.session()) {
  set_system(system_prompt_of(options));
}

int Conversation::answer(Answerer& answerer) {
  const std::vector<TokenId> wanted = ids();
  const auto held = session_.tokens();
  const auto differs = std::mismatch(wanted.begin(), wanted.end(), held.begin(), held.end()).first;
  const auto common = static_cast<std::size_t>(differs - wanted.begin());
  const std::size_t kept = std::min(common, wanted.size() - 1);  // logits come from a token that is fed
  session_.rewind(kept);
  const int code = answerer.answer(session_, std::span(wanted).subspan(kept));
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
