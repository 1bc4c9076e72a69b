// SPDX-License-Identifier: Apache-2.0
//
// Writes conversations as the text that a chat model was trained on: with the model's own template, or with a
// built-in format if there is none that can be used. It does not tokenize; special tokens are in the text as
// they are written. Costs seconds to compile: include it in one .cpp of a program.
#pragma once

#include "mica/base/error.hpp"
#include "mica_jinja/civil_time.hpp"
#include "mica_jinja/limits.hpp"
#include "mica_jinja/template.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"
#include "mica_tools/chat/chat_style.hpp"
#include "mica_tools/chat/message.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::text {

/// The chat format of a model, from its file.
struct ChatHints {
  std::optional<std::string_view> chat_template;  ///< tokenizer.chat_template
  std::string_view architecture;                  ///< general.architecture
  std::string bos;                                ///< text of the BOS token, empty when there is none
  std::string eos;                                ///< text of the EOS token
  std::span<const std::string_view> tokens = {};  ///< texts of the control and user-defined tokens
};

/// The inputs of one rendering besides its messages. The built-in formats use none of them.
struct ChatVariables {
  jinja::Value tools = nullptr;              ///< list of tools as the API of OpenAI describes them, or none
  jinja::Value::Entries others;              ///< more variables, such as enable_thinking
  std::optional<jinja::CivilTime> now = {};  ///< for strftime_now; without it, the local time
};

/// What a template could not do, as an error of mica with the same text; error() has cause, line and detail.
class ChatTemplateError : public Error {
 public:
  /// The code follows from the cause: `file` for bad syntax, `unsupported`, `limit`, else `failed`.
  explicit ChatTemplateError(jinja::TemplateError error)
      : Error(code_of(error.cause()), error.what()), error_(std::move(error)) {}

  /// The error of the template engine.
  [[nodiscard]] const jinja::TemplateError& error() const noexcept { return error_; }

 private:
  static ErrorCode code_of(jinja::TemplateError::Cause cause) noexcept {
    using Cause = jinja::TemplateError::Cause;
    switch (cause) {
      case Cause::syntax:
        return ErrorCode::file;
      case Cause::unsupported:
        return ErrorCode::unsupported;
      case Cause::limit:
        return ErrorCode::limit;
      default:
        return ErrorCode::failed;
    }
  }

  jinja::TemplateError error_;
};

namespace detail {

/// The text of a message's content: itself, or its parts of type text one after the other.
inline std::string content_text(const jinja::Value& content) {
  if (content.is(jinja::Kind::string)) return std::string(content.text());
  if (content.is(jinja::Kind::none) || content.is(jinja::Kind::undefined)) return {};
  if (!content.is(jinja::Kind::sequence))
    raise(ErrorCode::usage, "the content of a message is neither text nor a list");
  std::string out;
  for (const jinja::Value& part : content.items()) {
    const jinja::Value* text = part.find("text");
    if (text == nullptr || !text->is(jinja::Kind::string)) {
      raise(ErrorCode::usage, "the content of a message has a part without text");
    }
    out += text->text();
  }
  return out;
}

inline std::vector<Message> plain_messages(const jinja::Value& messages) {
  if (!messages.is(jinja::Kind::sequence)) raise(ErrorCode::usage, "the messages are not a list");
  std::vector<Message> out;
  for (const jinja::Value& message : messages.items()) {
    const jinja::Value* role = message.find("role");
    const jinja::Value* content = message.find("content");
    if (role == nullptr || !role->is(jinja::Kind::string)) raise(ErrorCode::usage, "a message has no role");
    out.push_back({std::string(role->text()), content == nullptr ? std::string() : content_text(*content)});
  }
  return out;
}

}  // namespace detail

/// A way to write conversations. Immutable: any number of threads may render with one object.
class ChatFormat {
 public:
  /// The model's own template. Raises ChatTemplateError when it cannot be parsed.
  static ChatFormat from_template(std::string_view source, std::string bos, std::string eos,
                                  const jinja::Limits& limits = {}) {
    ChatFormat format(std::move(bos), std::move(eos));
    try {
      format.template_ = jinja::Template::parse(source, limits);
    } catch (const jinja::TemplateError& error) {
      throw ChatTemplateError(error);
    }
    return format;
  }

  /// One of chatml, llama-3, gemma, phi-3, zephyr, llama-2, mistral, plain. Raises Error for any other name.
  static ChatFormat built_in(std::string_view name, std::string bos = {}, std::string eos = {}) {
    ChatFormat format(std::move(bos), std::move(eos));
    format.style_ = &ChatStyle::named(name);
    return format;
  }

  /// The template if it can be parsed, else the built-in format that fits the file best; `plain` if none
  /// fits. Never raises because of the file; note() describes the choice and its reason.
  static ChatFormat detect(const ChatHints& hints) {
    std::string why = "the file has no chat template";
    if (hints.chat_template && !hints.chat_template->empty()) {
      try {
        return from_template(*hints.chat_template, hints.bos, hints.eos);
      } catch (const ChatTemplateError& error) {
        why = join("the file's chat template cannot be used (", error.what(), ")");
      }
    }
    ChatFormat format(hints.bos, hints.eos);
    format.style_ = best_style(hints);
    format.note_ = join(why, "; using the built-in format ", format.style_->name);
    return format;
  }

  /// The conversation as text. Raises ChatTemplateError when the template refuses it or reaches a limit.
  [[nodiscard]] std::string render(std::span<const Message> messages, bool add_generation_prompt = true,
                                   const ChatVariables& variables = {}) const {
    if (style_ != nullptr) return style_->render(messages, add_generation_prompt, bos_, eos_);
    std::vector<jinja::Value> list;
    for (const Message& message : messages) {
      jinja::Value::Entries entries = {{"role", message.role}, {"content", message.content}};
      if (!message.thoughts.empty())  // a template may use either name
        for (const char* const name : {"reasoning_content", "thinking"})
          entries.emplace_back(name, message.thoughts);
      list.push_back(jinja::Value::mapping(std::move(entries)));
    }
    return render_template(jinja::Value::list(std::move(list)), add_generation_prompt, variables);
  }

  /// The same for messages with more than text in them: a list of mappings, as the API of OpenAI has them. A
  /// built-in format takes their role and the texts of their content.
  [[nodiscard]] std::string render(const jinja::Value& messages, bool add_generation_prompt = true,
                                   const ChatVariables& variables = {}) const {
    if (style_ == nullptr) return render_template(messages, add_generation_prompt, variables);
    return style_->render(detail::plain_messages(messages), add_generation_prompt, bos_, eos_);
  }

  /// "template", or the name of the built-in format; and whether it is the former.
  [[nodiscard]] std::string_view name() const noexcept {
    return style_ == nullptr ? "template" : style_->name;
  }
  [[nodiscard]] bool has_template() const noexcept { return style_ == nullptr; }
  /// Why this format was chosen, when it is not the model's own; else empty.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }
  /// Text with which the model ends its turn; empty for a template: there a token of the vocabulary ends it.
  [[nodiscard]] std::string stop() const {
    std::string out;
    if (style_ != nullptr) detail::append_marked(out, style_->stop, bos_, eos_);
    return out;
  }

 private:
  ChatFormat(std::string bos, std::string eos) : bos_(std::move(bos)), eos_(std::move(eos)) {}

  static const ChatStyle* best_style(const ChatHints& hints) {
    const ChatStyle* style = hints.chat_template ? ChatStyle::of_template(*hints.chat_template) : nullptr;
    if (style == nullptr) style = ChatStyle::of_tokens(hints.tokens);
    if (style == nullptr) style = ChatStyle::of_architecture(hints.architecture);
    return style == nullptr ? &ChatStyle::named("plain") : style;
  }
  [[nodiscard]] std::string render_template(const jinja::Value& messages, bool add_generation_prompt,
                                            const ChatVariables& variables) const {
    jinja::Value::Entries globals = {{"messages", messages}, {"tools", variables.tools},
                                     {"documents", nullptr}, {"add_generation_prompt", add_generation_prompt},
                                     {"bos_token", bos_},    {"eos_token", eos_}};
    globals.insert(globals.end(), variables.others.begin(), variables.others.end());
    try {
      return template_->render(jinja::Value::mapping(std::move(globals)), variables.now);
    } catch (const jinja::TemplateError& error) {
      throw ChatTemplateError(error);
    }
  }

  std::optional<jinja::Template> template_;
  const ChatStyle* style_ = nullptr;  ///< a row of a constant table; null when there is a template
  std::string bos_;
  std::string eos_;
  std::string note_;
};

}  // namespace mica::text
