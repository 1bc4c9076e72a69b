// SPDX-License-Identifier: Apache-2.0
//
// The built-in chat formats, for models whose file has no chat template or one that cannot be used: what is
// written before and after each turn. A model's own template is always the better choice.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/chat/message.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace mica::text {

/// One format: a row of the table below. `$bos` and `$eos` stand for the model's own tokens.
struct ChatStyle {
  /// The text around a message of one role.
  struct Turn {
    std::string_view before;  // in front of the content
    std::string_view after;   // after it
  };

  std::string_view name;   // "chatml", as command lines spell it
  std::string_view start;  // before everything
  Turn system;             // in front of the next user's content where the format has no system turn
  Turn user;               // a message of the role `tool` has it too
  Turn assistant;          // `before` is also the generation prompt
  bool has_system_turn;    // whether the system message is a turn of its own
  bool trims;              // whether white space around a content is removed
  std::string_view stop;   // text with which the model ends its turn

  /// Throws Error for a name that is not in the table, which it lists.
  static const ChatStyle& named(std::string_view name);
  /// The style whose markers are in the text of a chat template, or null.
  static const ChatStyle* of_template(std::string_view source);
  /// The style whose markers are tokens of their own, or null.
  static const ChatStyle* of_tokens(std::span<const std::string_view> tokens);
  /// The style that most models of this architecture use, or null.
  static const ChatStyle* of_architecture(std::string_view architecture);

  /// The conversation as text. Throws Error for a role that is not known.
  [[nodiscard]] std::string render(std::span<const Message> messages, bool add_generation_prompt,
                                   std::string_view bos, std::string_view eos) const;
};

namespace detail {

// clang-format off
inline constexpr ChatStyle chat_styles[] = {
    {"chatml", "", {"<|im_start|>system\n", "<|im_end|>\n"}, {"<|im_start|>user\n", "<|im_end|>\n"},
     {"<|im_start|>assistant\n", "<|im_end|>\n"}, true, false, "<|im_end|>"},
    {"llama-3", "$bos", {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
     {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
     {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"}, true, true, "<|eot_id|>"},
    {"gemma", "$bos", {"", "\n\n"}, {"<start_of_turn>user\n", "<end_of_turn>\n"},
     {"<start_of_turn>model\n", "<end_of_turn>\n"}, false, true, "<end_of_turn>"},
    {"phi-3", "", {"<|system|>\n", "<|end|>\n"}, {"<|user|>\n", "<|end|>\n"},
     {"<|assistant|>\n", "<|end|>\n"}, true, false, "<|end|>"},
    {"zephyr", "", {"<|system|>\n", "$eos\n"}, {"<|user|>\n", "$eos\n"},
     {"<|assistant|>\n", "$eos\n"}, true, false, "$eos"},
    {"llama-2", "", {"<<SYS>>\n", "\n<</SYS>>\n\n"}, {"$bos[INST] ", " [/INST]"}, {" ", " $eos"}, false, true, "$eos"},
    {"mistral", "$bos", {"", "\n\n"}, {"[INST] ", " [/INST]"}, {" ", "$eos"}, false, true, "$eos"},
    {"plain", "$bos", {"", "\n\n"}, {"User: ", "\n\n"}, {"Assistant:", "\n\n"}, true, true, "\nUser:"},
};
// clang-format on

/// Markers by which a format is recognised; the first row that matches is used.
struct ChatMarkers {
  std::string_view style;
  std::string_view first;
  std::string_view second;  // empty when one is enough
};

inline constexpr ChatMarkers chat_markers[] = {
    {"chatml", "<|im_start|>", ""},   {"llama-3", "<|start_header_id|>", ""},
    {"gemma", "<start_of_turn>", ""}, {"phi-3", "<|end|>", "<|user|>"},
    {"zephyr", "<|user|>", ""},       {"llama-2", "[INST]", "<<SYS>>"},
    {"mistral", "[INST]", ""},
};

inline const ChatStyle* find_chat_style(std::string_view name) {
  const auto* found = std::find_if(std::begin(chat_styles), std::end(chat_styles),
                                   [name](const ChatStyle& style) { return style.name == name; });
  return found == std::end(chat_styles) ? nullptr : found;
}

/// Adds a text of the table, with the tokens that it names.
inline void append_marked(std::string& out, std::string_view text, std::string_view bos,
                          std::string_view eos) {
  for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$')) {
    out.append(text.substr(0, at)).append(text.substr(at, 4) == "$bos" ? bos : eos);
    text.remove_prefix(at + 4);
  }
  out.append(text);
}

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\n\r\v\f";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) + 1 - first);
}

}  // namespace detail

inline const ChatStyle& ChatStyle::named(std::string_view name) {
  if (const ChatStyle* style = detail::find_chat_style(name)) return *style;
  std::string names;
  for (const ChatStyle& style : detail::chat_styles)
    names.append(names.empty() ? "" : ", ").append(style.name);
  raise(ErrorCode::usage, "there is no built-in chat format '", escaped(name), "'; there are ", names);
}

inline const ChatStyle* ChatStyle::of_template(std::string_view source) {
  for (const auto& [style, first, second] : detail::chat_markers) {
    if (source.find(first) != std::string_view::npos && source.find(second) != std::string_view::npos) {
      return detail::find_chat_style(style);
    }
  }
  return nullptr;
}

inline const ChatStyle* ChatStyle::of_tokens(std::span<const std::string_view> tokens) {
  const auto has = [tokens](std::string_view text) {
    return text.empty() || std::find(tokens.begin(), tokens.end(), text) != tokens.end();
  };
  for (const auto& [style, first, second] : detail::chat_markers) {
    if (has(first) && has(second)) return detail::find_chat_style(style);
  }
  return nullptr;
}

inline const ChatStyle* ChatStyle::of_architecture(std::string_view architecture) {
  if (architecture.starts_with("gemma")) return detail::find_chat_style("gemma");
  if (architecture.starts_with("phi")) return detail::find_chat_style("phi-3");
  if (architecture.starts_with("qwen")) return detail::find_chat_style("chatml");
  return nullptr;
}

inline std::string ChatStyle::render(std::span<const Message> messages, bool add_generation_prompt,
                                     std::string_view bos, std::string_view eos) const {
  std::string out;
  std::string waiting;  // system messages of a format that has no turn for them
  const auto add = [&](const Turn& turn, std::string_view content) {
    detail::append_marked(out, turn.before, bos, eos);
    if (&turn == &user) out.append(std::exchange(waiting, {}));
    const bool spaced = &turn == &assistant && turn.before.ends_with(':');
    out.append(spaced ? " " : "").append(trims ? detail::trimmed(content) : content);
    detail::append_marked(out, turn.after, bos, eos);
  };
  detail::append_marked(out, start, bos, eos);
  for (const Message& message : messages) {
    if (message.role == "assistant") {
      add(assistant, message.content);
    } else if (message.role == "user" || message.role == "tool") {
      add(user, message.content);
    } else if (message.role != "system" && message.role != "developer") {
      raise(ErrorCode::usage, "a message has the role '", escaped(message.role),
            "'; the built-in chat formats know system, user, assistant and tool");
    } else if (has_system_turn) {
      add(system, message.content);
    } else {
      const std::string_view content = trims ? detail::trimmed(message.content) : message.content;
      waiting.append(system.before).append(content).append(system.after);
    }
  }
  if (!waiting.empty()) add(user, {});
  // A space before the answer is part of the model's first token, so it must not end the prompt.
  const std::string_view prompt = assistant.before.substr(0, assistant.before.find_last_not_of(' ') + 1);
  if (add_generation_prompt) detail::append_marked(out, prompt, bos, eos);
  return out;
}

}  // namespace mica::text
