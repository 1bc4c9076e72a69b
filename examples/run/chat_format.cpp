// SPDX-License-Identifier: Apache-2.0
#include "chat_format.hpp"

#include "console.hpp"
#include "mica/text/chat.hpp"

#include <vector>

namespace mica::program {
namespace {

std::string text_of(const text::Vocabulary& vocabulary, std::optional<TokenId> id) {
  return id ? std::string(vocabulary.text(*id)) : std::string();
}

text::ChatHints hints_of(const gguf::Metadata& metadata, const text::Vocabulary& vocabulary) {
  text::ChatHints hints;
  hints.chat_template = metadata.get<std::string_view>("tokenizer.chat_template");
  hints.architecture = metadata.get<std::string_view>("general.architecture").value_or("");
  hints.bos = text_of(vocabulary, vocabulary.special().bos);
  hints.eos = text_of(vocabulary, vocabulary.special().eos);
  return hints;
}

std::vector<std::string_view> special_texts(const text::Vocabulary& vocabulary) {
  std::vector<std::string_view> texts;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const text::TokenType type = vocabulary.type(id);
    if (type == text::TokenType::control || type == text::TokenType::user_defined)
      texts.push_back(vocabulary.text(id));
  }
  return texts;
}

}  // namespace

ChatFormat::ChatFormat(const ChatOptions& options, const gguf::Metadata& metadata,
                       const text::Vocabulary& vocabulary) {
  const auto keep = [this](text::ChatFormat format, std::string source) {
    format_ = std::make_shared<const text::ChatFormat>(std::move(format));
    source_ = std::move(source);
  };
  text::ChatHints hints = hints_of(metadata, vocabulary);
  if (!options.chat_template_file.empty()) {
    std::string source = read_text(options.chat_template_file);
    try {
      keep(text::ChatFormat::from_template(source, hints.bos, hints.eos), source);
    } catch (const Error& error) {
      raise(error.code(), options.chat_template_file, ": ", error.message());
    }
    return;
  }
  if (!options.chat_template.empty()) {
    keep(text::ChatFormat::built_in(options.chat_template, hints.bos, hints.eos), options.chat_template);
    return;
  }
  const std::vector<std::string_view> texts = special_texts(vocabulary);
  hints.tokens = texts;
  text::ChatFormat found = text::ChatFormat::detect(hints);
  sure_ = hints.chat_template && found.name() != "plain";
  std::string source(found.has_template() ? *hints.chat_template : found.name());
  keep(std::move(found), std::move(source));
}

text::ChatText ChatFormat::render(std::span<const text::Message> messages,
                                  const text::Vocabulary& vocabulary) const {
  const text::MarkedMessages marked(messages, vocabulary);
  return marked.unmarked(format_->render(marked.messages()));
}

const std::string& ChatFormat::note() const noexcept { return format_->note(); }

std::string ChatFormat::stop() const { return format_->stop(); }

}  // namespace mica::program
