// SPDX-License-Identifier: Apache-2.0
//
// Passes those parts of a text that a terminal may get: characters, line breaks, tabs, and sequences that set
// colours. All other control sequences are left out: a text cannot move the cursor, change the title, send
// input or fill the clipboard.
//
//   text  -- ESC -->           escape
//   escape -- [ -->            csi      passes, if it is digits, ; and : and ends with m; else left out
//   escape -- ] P X ^ _ -->    string   left out up to BEL, ESC \ or U+009C; CAN, SUB and 4096 bytes end it too
//   escape -- anything else --> text    left out
#pragma once

#include "safe_text.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mica::program {

/// Filters a text that arrives in pieces; the result does not depend on them.
/// CR, BS, BEL and the other control characters are left out, and so are the controls of text direction. A
/// byte that is not UTF-8 becomes U+FFFD. U+0080 to U+009F are equal to ESC and a letter, and are treated
/// like that.
class TerminalFilter {
 public:
  /// colors: whether sequences that set colours pass.
  explicit TerminalFilter(bool colors) : colors_(colors) {}

  /// The part of the text that can be shown now and was not returned before.
  [[nodiscard]] std::string filter(std::string_view piece);
  /// The end of the text: incomplete sequences are left out, and colours are reset.
  [[nodiscard]] std::string finish();

 private:
  enum class State : std::uint8_t { text, escape, csi, string };
  static constexpr std::size_t max_sequence_bytes = 64, max_string_bytes = 4096;

  void take(std::string_view character, bool is_text);
  void take_text(std::string_view character, bool is_control);
  void take_escape(unsigned char byte);
  void take_csi(unsigned char byte);
  /// A control character that counts in any state; returns whether it was one.
  [[nodiscard]] bool restarts(std::string_view character);
  void begin(State state) {
    state_ = state;
    sequence_.clear();
    skipped_ = 0;
  }

  bool colors_;
  bool colored_ = false;  // by the text, and not ended yet
  State state_ = State::text;
  std::string held_;         // the first bytes of a character
  std::string sequence_;     // parameters of a CSI sequence
  std::size_t skipped_ = 0;  // bytes of a string
  std::string out_;
};

inline std::string TerminalFilter::filter(std::string_view piece) {
  held_.append(piece);
  std::string_view rest = held_;
  rest.remove_suffix(text::utf8_unfinished_bytes(rest));
  const std::size_t complete = rest.size();
  while (!rest.empty()) {
    const Character c = first_character(rest);
    take(rest.substr(0, c.bytes), c.is_text);
    rest.remove_prefix(c.bytes);
  }
  held_.erase(0, complete);
  return std::exchange(out_, {});
}

inline std::string TerminalFilter::finish() {
  for (std::size_t i = 0; i < held_.size(); ++i) take(std::string_view(held_).substr(i, 1), false);
  held_.clear();
  begin(State::text);
  if (std::exchange(colored_, false)) out_ += "\x1b[0m";
  return std::exchange(out_, {});
}

inline bool TerminalFilter::restarts(std::string_view character) {
  if (character == "\x1b") {
    // ESC \ ends a string: the backslash is then a sequence of its own.
    begin(State::escape);
  } else if (character == "\x18" || character == "\x1a") {
    begin(State::text);
  } else if (character.size() == 2 && character[0] == '\xC2' &&
             static_cast<unsigned char>(character[1]) < 0xA0) {
    begin(State::escape);
    take_escape(static_cast<unsigned char>(static_cast<unsigned char>(character[1]) - 0x40));
  } else {
    return false;
  }
  return true;
}

inline void TerminalFilter::take(std::string_view character, bool is_text) {
  if (is_text && restarts(character)) return;
  const auto byte = static_cast<unsigned char>(character[0]);
  const bool is_control = is_text && first_character(character).is_control;
  if (state_ == State::string) {
    skipped_ += character.size();
    if (character == "\a" || skipped_ >= max_string_bytes) begin(State::text);
    return;
  }
  // A sequence is of ASCII alone: anything else ends it, and counts.
  if (state_ != State::text && (is_control || byte >= 0x80)) begin(State::text);
  switch (state_) {
    case State::escape:
      return take_escape(byte);
    case State::csi:
      return take_csi(byte);
    default:
      return is_text ? take_text(character, is_control) : void(out_ += text::replacement_character);
  }
}

inline void TerminalFilter::take_text(std::string_view character, bool is_control) {
  if (!is_control || character == "\n" || character == "\t") out_ += character;
}

inline void TerminalFilter::take_escape(unsigned char byte) {
  if (byte == '[') {
    begin(State::csi);
  } else if (byte == ']' || byte == 'P' || byte == 'X' || byte == '^' || byte == '_') {
    begin(State::string);
  } else if (byte > 0x2F) {  // bytes up to 0x2F are followed by more
    begin(State::text);
  }
}

inline void TerminalFilter::take_csi(unsigned char byte) {
  const bool is_final = byte >= 0x40;
  if (!is_final) {
    sequence_ += static_cast<char>(byte);
    if (sequence_.size() > max_sequence_bytes) begin(State::text);
    return;
  }
  const bool sets_colors = byte == 'm' && sequence_.find_first_not_of("0123456789;:") == std::string::npos;
  if (sets_colors && colors_) {
    out_.append("\x1b[").append(sequence_).append("m");
    colored_ = sequence_.find_first_not_of("0;") != std::string::npos;
  }
  begin(State::text);
}

}  // namespace mica::program
