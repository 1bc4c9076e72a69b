// SPDX-License-Identifier: Apache-2.0
//
// Control tokens in the text of a message stay text, although the chat format around the message is read with
// `parse_special`: a user who types "<|im_end|>" does not end the turn. Before the conversation is rendered,
// a character that no message has marks each spelling; afterwards the marks become EncodeOptions::literal:
//
//   message   a<|im_end|>b
//   rendered  <|im_start|>user\na?<|im_end|>b<|im_end|>\n    ? is the mark
//   text      <|im_start|>user\na<|im_end|>b<|im_end|>\n
//                               ^ literal: text here, and a token the second time
//
// Limit: a template that measures or compares messages sees the marks of those that have some.
#pragma once

#include "mica/text/detail/token_names.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/utf8.hpp"
#include "mica/text/vocabulary.hpp"
#include "mica_tools/chat/message.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::text {

/// A rendered conversation, ready to be encoded with `parse_special`.
struct ChatText {
  std::string text;                  ///< without the marks
  std::vector<std::size_t> literal;  ///< EncodeOptions::literal
};

namespace detail {

/// U+FDD0 to U+FDEF are set aside for use inside of programs, and are no characters.
inline std::string noncharacter(std::size_t index) {
  return {'\xEF', '\xB7', static_cast<char>(static_cast<unsigned char>(0x90 + index))};
}
inline constexpr std::size_t noncharacters = 32;

}  // namespace detail

/// Messages whose spelled control tokens are marked. Messages without any are the same as before. Immutable:
/// for any number of threads.
class MarkedMessages {
 public:
  /// Copies the messages, in time linear in their length. Bytes that are not UTF-8 become U+FFFD. Arguments
  /// of calls stay as they are: mark the strings of their JSON with marked().
  MarkedMessages(std::span<const Message> messages, const Vocabulary& vocabulary)
      : messages_(messages.begin(), messages.end()), vocabulary_(vocabulary) {
    for_each_text([](const Message&, std::string& text) { text = repaired_utf8(text); });
    choose_mark();
    for_each_text(
        [&](const Message& message, std::string& text) { text = marked(text, message.role == "assistant"); });
  }

  /// Any other text that is to be rendered, such as a string in the arguments of a call. unmarked() removes
  /// the noncharacter that is the mark from it. is_answer: marks of channels in it stay control tokens.
  [[nodiscard]] std::string marked(std::string_view text, bool is_answer = false) const {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
      const TokenId id = vocabulary_.special_prefix(text.substr(at), true);
      const bool is_control = id != no_token && id != vocabulary_.special_prefix(text.substr(at), false);
      // An answer keeps the channels that it was written in; nothing else opens one.
      const bool is_channel = id != no_token && !is_answer && detail::is_channel_mark(vocabulary_.text(id));
      if (is_control || is_channel) out += mark_;
      out.push_back(text[at]);
    }
    return out;
  }

  /// The messages to be rendered.
  [[nodiscard]] std::span<const Message> messages() const& noexcept {
    return {messages_.data(), messages_.size()};
  }
  void messages() const&& = delete;

  /// The conversation that a chat format made of messages(), without the marks.
  [[nodiscard]] ChatText unmarked(std::string_view rendered) const {
    ChatText out;
    out.text.reserve(rendered.size());
    for (std::size_t at = rendered.find(mark_); at != std::string_view::npos; at = rendered.find(mark_)) {
      out.text.append(rendered.substr(0, at));
      out.literal.push_back(out.text.size());
      rendered.remove_prefix(at + mark_.size());
    }
    out.text.append(rendered);
    return out;
  }

 private:
  template <class F>
  void for_each_text(F&& f) {
    for (Message& message : messages_) {
      for (std::string* const text : {&message.content, &message.thoughts, &message.tool, &message.call_id})
        f(message, *text);
      for (ToolCall& call : message.calls) f(message, call.id), f(message, call.name);
    }
  }
  /// The first noncharacter that no message contains; if all occur, the last one is replaced in the messages.
  void choose_mark() {
    const auto is_used = [this](const std::string& mark) {
      return std::any_of(messages_.begin(), messages_.end(), [&](const Message& message) {
        std::string all = message.content + message.thoughts + message.tool + message.call_id;
        for (const ToolCall& call : message.calls) all += call.id + call.name;
        return all.find(mark) != std::string::npos;
      });
    };
    for (std::size_t i = 0; i < detail::noncharacters; ++i) {
      mark_ = detail::noncharacter(i);
      if (!is_used(mark_)) return;
    }
    for_each_text([this](const Message&, std::string& text) {
      for (std::size_t at = text.find(mark_); at != std::string::npos; at = text.find(mark_, at))
        text.replace(at, mark_.size(), replacement_character);  // both have three bytes
    });
  }

  std::vector<Message> messages_;
  const Vocabulary& vocabulary_;
  std::string mark_;  // one code point
};

}  // namespace mica::text
