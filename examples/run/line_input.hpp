// SPDX-License-Identifier: Apache-2.0
//
// Typed lines: with editing, Tab and a history if there is libedit and stdin is a terminal, plain otherwise.
// Text that is pasted into a terminal is one text, with any number of lines.
#pragma once

#include "answer_options.hpp"
#include "chat_words.hpp"
#include "console.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace mica::program {

class LineInput {
 public:
  /// words: those that Tab completes; they outlive the input.
  LineInput(const AnswerVerb& verb, std::span<const ChatWord> words);
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;
  ~LineInput();

  /// The next line without its end; nothing when the input is over, an empty line after an interrupt. Only
  /// pasted text has line breaks inside.
  [[nodiscard]] std::optional<std::string> read(const std::string& prompt);
  /// Whether the line begins text of many lines: with three quotes.
  [[nodiscard]] static bool is_quoted(const std::string& line) noexcept;
  /// The text of such a line and those after it, up to one that ends with three quotes.
  [[nodiscard]] std::string quoted_text(const std::string& line);
  /// Whether stdin and stderr are terminals.
  [[nodiscard]] bool is_interactive() const noexcept { return prompts_; }

 private:
  struct Editor;

  std::unique_ptr<Editor> editor_;  // null: plain lines
  LineReader lines_;
  bool prompts_;
  bool colors_;
  bool asks_for_paste_;  // whether the terminal marks pasted text
};

}  // namespace mica::program
