// SPDX-License-Identifier: Apache-2.0
//
// Converts values in the notations of tool calls to JSON, byte by byte: JSON itself, Python's literals, and
// keys without quotes. The result is JSON for any text: a missing value becomes null, an unknown word becomes
// a string, and each closing bracket closes the last open one.
#pragma once

#include "mica_tools/calls/detail/marks.hpp"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mica::calls::detail {

/// Adds one byte of a text, as it is written inside a string of JSON.
inline void append_string_byte(char c, std::string& out) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += {'\\', c};
  } else if (c == '\n') {
    out += "\\n";
  } else if (byte < 0x20) {
    (out += "\\u00") += {digits[byte >> 4], digits[byte & 15]};
  } else {
    out += c;
  }
}

/// Whether the text is a number of JSON.
inline bool is_json_number(std::string_view text) noexcept {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const std::size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - first;
  };
  const bool starts_with_zero = text.substr(at).starts_with('0');
  const std::size_t whole = digits();
  if (whole == 0 || (starts_with_zero && whole > 1)) return false;
  if (text.substr(at).starts_with('.') && (++at, digits() == 0)) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

/// Converts one value. Memory is bounded: brackets deeper than max_depth are left out, longer words are cut.
/// Limit: \u escapes are copied, also half of a surrogate pair.
class JsonConverter {
 public:
  static constexpr std::size_t max_depth = 64, max_word = 1024;

  /// quote: a text around strings, besides " and '; without escapes inside.
  explicit JsonConverter(std::string_view quote = {}) : quote_(quote) {}

  /// Whether the value is complete; what follows is not read.
  [[nodiscard]] bool is_done() const noexcept { return is_done_; }

  /// Begins an object without a bracket in the text; any closing bracket ends it.
  void open_object(std::string& out) { open('{', out); }

  /// Reads one byte; adds JSON to `out`.
  void put(char c, std::string& out) {
    if (is_done_ || (in_ != In::string && takes_quote(c, out))) return;
    in_ == In::nothing ? outside(c, out) : inside(c, out);
  }
  /// The end of the text: completes the value.
  void finish(std::string& out) {
    for (const char c : quote_.substr(0, in_ == In::quote ? matched_ : 0)) append_string_byte(c, out);
    if (in_ != In::nothing) end_string(out);
    end_word(out);
    while (depth_ > 0) close(out);
    if (!std::exchange(is_done_, true)) out += "null";
  }

 private:
  enum class In : std::uint8_t { nothing, string, quote };  // a string between " or ', or between quote_
  enum class Place : std::uint8_t {
    item,
    colon,
    value
  };  // what comes next; item: a key, or in an array a value

  /// Whether a byte belongs to quote_, as far as it is read.
  bool takes_quote(char c, std::string& out) {
    if (quote_.empty()) return false;
    if (c != quote_[matched_]) {
      const std::size_t held = std::exchange(matched_, 0);
      for (const char each : quote_.substr(0, held))
        in_ == In::nothing ? outside(each, out) : inside(each, out);
      if (is_done_ || in_ == In::string) return false;
    }
    if (c != quote_[matched_]) return false;
    if (++matched_ < quote_.size()) return true;
    matched_ = 0;
    in_ == In::quote ? end_string(out) : begin_string(In::quote, out);
    return true;
  }

  void outside(char c, std::string& out) {
    if (is_space(c)) return end_word(out);
    if (std::string_view("\"'{[(}]):=,").find(c) == std::string_view::npos) {
      word_ += c;
      if (word_.size() == max_word) end_word(out);
      return;
    }
    end_word(out);
    if (is_done_) return;
    if (c == '"' || c == '\'') return closer_ = c, begin_string(In::string, out);
    if (c == '{' || c == '[' || c == '(') return open(c, out);
    if (c == '}' || c == ']' || c == ')') return close(out);
    if (c == ',') return end_member(out);
    if (place_ == Place::colon) out += ": ", place_ = Place::value;  // : or =
  }
  void inside(char c, std::string& out) {
    if (in_ == In::quote) return append_string_byte(c, out);
    if (hex_digits_ > 0 && takes_hex(c, out)) return;
    if (std::exchange(is_escape_, false)) return escaped(c, out);
    if (c == '\\') {
      is_escape_ = true;
    } else if (c == closer_) {
      end_string(out);
    } else {
      append_string_byte(c, out);
    }
  }
  void escaped(char c, std::string& out) {
    if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
      out += {'\\', c};
    } else if (c == 'u' || c == 'x') {
      hex_digits_ = c == 'u' ? 4 : 2;
    } else {
      if (c != '\'') out += "\\\\";
      append_string_byte(c, out);
    }
  }
  /// Whether a byte belongs to an escape with digits.
  bool takes_hex(char c, std::string& out) {
    const bool is_digit = std::string_view("0123456789abcdefABCDEF").find(c) != std::string_view::npos;
    if (is_digit) word_ += c;
    if (is_digit && word_.size() < hex_digits_) return true;
    if (is_digit) {
      out += hex_digits_ == 2 ? "\\u00" : "\\u";
    } else {
      out += hex_digits_ == 2 ? "\\\\x" : "\\\\u";
    }
    out += word_;
    word_.clear();
    hex_digits_ = 0;
    return is_digit;
  }

  [[nodiscard]] bool in_object() const { return depth_ > 0 && is_object_[depth_ - 1]; }
  void add_comma(std::string& out) {
    if (has_items_[depth_]) out += ", ";
    has_items_[depth_] = true;
  }
  /// Writes what comes before a key or a value. Returns whether it is a key; only texts can be keys.
  bool begin_item(bool is_text, std::string& out) {
    if (depth_ == 0) return false;
    if (!in_object()) {
      add_comma(out);
    } else if (place_ == Place::item) {
      add_comma(out);
      if (is_text) return place_ = Place::colon, true;
      out += "\"\": ";
    } else if (place_ == Place::colon) {
      out += ": ";
    }
    place_ = Place::item;
    return false;
  }
  void end_item(bool is_key) { is_done_ = !is_key && depth_ == 0; }
  /// A comma or the end of an object: a key without a value gets null.
  void end_member(std::string& out) {
    if (in_object() && place_ != Place::item) out += place_ == Place::colon ? ": null" : "null";
    place_ = Place::item;
  }

  void begin_string(In in, std::string& out) {
    end_word(out);
    if (is_done_) return;
    is_key_ = begin_item(true, out);
    out += '"';
    in_ = in;
  }
  void end_string(std::string& out) {
    out += '"';
    in_ = In::nothing;
    word_.clear();
    hex_digits_ = 0;
    is_escape_ = false;
    end_item(is_key_);
  }
  void end_word(std::string& out) {
    if (word_.empty()) return;
    const std::string word = std::exchange(word_, {});
    const bool is_key = begin_item(true, out);
    std::string_view literal = word;
    if (word == "True") literal = "true";
    if (word == "False") literal = "false";
    if (word == "None") literal = "null";
    if (!is_key &&
        (literal == "true" || literal == "false" || literal == "null" || is_json_number(literal))) {
      out += literal;
    } else {
      out += '"';
      for (const char c : word) append_string_byte(c, out);
      out += '"';
    }
    end_item(is_key);
  }
  void open(char c, std::string& out) {
    if (depth_ == max_depth) return void(++skipped_);
    (void)begin_item(false, out);
    out += c == '{' ? '{' : '[';
    is_object_[depth_++] = c == '{';
    has_items_[depth_] = false;
    place_ = Place::item;
  }
  void close(std::string& out) {
    if (skipped_ > 0) return void(--skipped_);
    if (depth_ == 0) return;
    end_member(out);
    out += in_object() ? '}' : ']';
    --depth_;
    end_item(false);
  }

  std::string_view quote_;
  std::string word_;  // a word so far, or the digits of an escape
  std::bitset<max_depth> is_object_;
  std::bitset<max_depth + 1> has_items_;
  std::size_t depth_ = 0;       // open brackets
  std::size_t skipped_ = 0;     // open brackets that were left out
  std::size_t matched_ = 0;     // bytes of quote_ that were read
  std::size_t hex_digits_ = 0;  // digits of an escape
  In in_ = In::nothing;
  Place place_ = Place::item;
  char closer_ = 0;
  bool is_escape_ = false, is_key_ = false, is_done_ = false;
};

}  // namespace mica::calls::detail
