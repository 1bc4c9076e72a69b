// SPDX-License-Identifier: Apache-2.0
//
// The chat template of a model's file, or another one, for use in a Chat. Includes the template engine, which
// takes seconds to compile: include it in one .cpp of a program.
#pragma once

#include "mica/gguf/metadata.hpp"
#include "mica/text/vocabulary.hpp"
#include "mica_tools/chat/chat_format.hpp"
#include "mica_tools/chat/chat_renderer.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

/// Replacements for the chat template of a file; by default there are none.
struct ChatTemplateOptions {
  std::string built_in = {};               // the name of a built-in format in place of the file's template
  std::optional<std::string> source = {};  // a template in place of the file's
  /// Whether the model thinks before it answers, where its template has a variable for that; empty: the
  /// template decides.
  std::optional<bool> thinking = {};
  text::ChatVariables variables = {};  // more variables of the template; they take precedence over thinking
};

/// A chat format with its variables. Immutable: any number of threads may render with one object.
class ChatTemplate {
 public:
  /// The format that the options name, else the file's own template, else the built-in format that fits best.
  /// Raises if an option names a template that cannot be used; never because of the file.
  ChatTemplate(const gguf::Metadata& metadata, const text::Vocabulary& vocabulary,
               ChatTemplateOptions options = {})
      : variables_(std::move(options.variables)), thinking_(options.thinking) {
    const auto of_token = [&](std::optional<TokenId> id) {
      return id ? std::string(vocabulary.text(*id)) : std::string();
    };
    text::ChatHints hints;
    hints.chat_template = metadata.get<std::string_view>("tokenizer.chat_template");
    hints.architecture = metadata.get<std::string_view>("general.architecture").value_or("");
    hints.bos = of_token(vocabulary.special().bos);
    hints.eos = of_token(vocabulary.special().eos);
    if (options.source) {
      keep(text::ChatFormat::from_template(*options.source, hints.bos, hints.eos), *options.source);
    } else if (!options.built_in.empty()) {
      keep(text::ChatFormat::built_in(options.built_in, hints.bos, hints.eos), options.built_in);
    } else {
      const std::vector<std::string_view> texts = special_texts(vocabulary);
      hints.tokens = texts;
      text::ChatFormat found = text::ChatFormat::detect(hints);
      sure_ = hints.chat_template && found.name() != "plain";
      std::string source(found.has_template() ? *hints.chat_template : found.name());
      keep(std::move(found), std::move(source));
    }
  }

  /// The conversation, with the beginning of the assistant's next turn. Raises ErrorCode::failed if the
  /// template raises an error, limit if it takes too long.
  [[nodiscard]] std::string render(std::span<const text::Message> messages) const {
    return render(messages, std::nullopt, {}, true);
  }
  /// The same with variables of one conversation, which take precedence; with_answer: with the beginning of
  /// the assistant's next turn. messages: a span of text::Message, or a value as ChatFormat::render() takes
  /// it.
  template <class Messages>
  [[nodiscard]] std::string render(const Messages& messages, std::optional<bool> thinking,
                                   const text::ChatVariables& variables, bool with_answer) const {
    text::ChatVariables all = variables_;
    if (!variables.tools.is(jinja::Kind::none)) all.tools = variables.tools;
    const auto think = thinking ? thinking : thinking_;
    if (think)  // if a name has two values, the last one counts
      all.others.insert(all.others.begin(), {{"enable_thinking", *think},  // Qwen, Gemma, SmolLM, GLM
                                             {"thinking", *think}});       // DeepSeek, Granite
    all.others.insert(all.others.end(), variables.others.begin(), variables.others.end());
    return format_->render(messages, with_answer, all);
  }
  /// Text that ends an answer; empty: a token of the vocabulary ends it.
  [[nodiscard]] std::string stop() const { return format_->stop(); }
  /// The same format with another ChatTemplateOptions::thinking.
  [[nodiscard]] ChatTemplate with_thinking(std::optional<bool> thinking) const {
    ChatTemplate changed = *this;
    changed.thinking_ = thinking;
    return changed;
  }
  /// A renderer for a Chat, which may outlive this object.
  [[nodiscard]] ChatRenderer renderer() const {
    return {[self = *this](std::span<const text::Message> messages) { return self.render(messages); },
            format_->stop()};
  }

  /// Whether an option or a known template of the file names the format.
  [[nodiscard]] bool is_sure() const noexcept { return sure_; }
  /// Why the file's own template is not used; empty when it is used.
  [[nodiscard]] const std::string& note() const noexcept { return format_->note(); }
  /// The template, or the name of the built-in format.
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  /// Whether there is a template. Only templates have variables, built-in formats have none.
  [[nodiscard]] bool has_template() const noexcept { return format_->has_template(); }
  /// Whether the template reads one of the variables that ChatTemplateOptions::thinking sets.
  [[nodiscard]] bool has_thinking_switch() const noexcept {
    const auto has = [this](std::string_view text) { return source_.find(text) != std::string::npos; };
    return has_template() && (has("enable_thinking") || has("if thinking") || has("if not thinking") ||
                              has("thinking is defined"));
  }

 private:
  void keep(text::ChatFormat format, std::string source) {
    format_ = std::make_shared<const text::ChatFormat>(std::move(format));
    source_ = std::move(source);
  }
  [[nodiscard]] static std::vector<std::string_view> special_texts(const text::Vocabulary& vocabulary) {
    std::vector<std::string_view> texts;
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const text::TokenType type = vocabulary.type(id);
      if (type == text::TokenType::control || type == text::TokenType::user_defined)
        texts.push_back(vocabulary.text(id));
    }
    return texts;
  }

  std::shared_ptr<const text::ChatFormat> format_;
  text::ChatVariables variables_;
  std::optional<bool> thinking_;
  std::string source_;
  bool sure_ = true;
};

}  // namespace mica
