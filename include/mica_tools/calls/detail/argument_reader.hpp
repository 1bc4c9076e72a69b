// SPDX-License-Identifier: Apache-2.0
//
// The arguments of one call, in the notation of its format, as pieces of a JSON object. A value between tags
// ends only if a parameter or the end of the call follows its closing mark; thus it may contain that mark.
// Limit: a value that contains the closing marks of a whole call ends there.
#pragma once

#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/detail/json_converter.hpp"
#include "mica_tools/calls/detail/marks.hpp"
#include "mica_tools/calls/tool_types.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::calls::detail {

/// Bytes of text that are held at most until it is known what they are.
inline constexpr std::size_t max_held = 8192;

/// Text from a place on, as far as it is looked at.
inline std::string_view window(std::string_view text, std::size_t at) noexcept {
  return text.substr(0, at + max_held);
}

/// What a comparison in window() says when no more text can help.
inline Match limited(Match here, std::string_view text, std::size_t at, bool is_over) noexcept {
  const bool can_wait = !is_over && text.size() < at + max_held;
  return here == Match::more && !can_wait ? Match::no : here;
}

/// Moves behind the next mark; `value` is the text before it.
inline Match read_until(std::string_view text, std::size_t& at, std::string_view mark,
                        std::string_view& value) {
  for (std::size_t end = at; end < text.size(); ++end) {
    std::size_t behind = end;
    const Match here = is_space(text[end]) ? Match::no : match(text, behind, mark);
    if (here == Match::no) continue;
    if (here == Match::more) return here;
    value = trimmed(text.substr(at, end - at));
    at = behind;
    return Match::yes;
  }
  return Match::more;
}

/// Reads the arguments of one call. The format and the tool must outlive it.
class ArgumentReader {
 public:
  /// tool: may be null.
  ArgumentReader(const CallFormat& format, const ToolTypes* tool)
      : format_(format), tool_(tool), converter_(format.quote) {}

  /// Reads from `at` on and adds JSON. is_over: no text follows. yes: the object is complete; no: it can not
  /// become complete; more: the text ends before that.
  Match read(std::string_view text, std::size_t& at, bool is_over, std::string& json) {
    if (format_.notation != Notation::tags) return convert(text, at, is_over, json);
    if (state_ == State::begin) json += '{', state_ = State::between;
    for (;;) {
      const Match here =
          state_ == State::value ? read_value(text, at, is_over, json) : read_key(text, at, is_over, json);
      if (here != Match::yes || state_ == State::end) return here;
    }
  }

 private:
  enum class State : std::uint8_t { begin, between, value, end };

  Match convert(std::string_view text, std::size_t& at, bool is_over, std::string& json) {
    if (state_ == State::begin && format_.notation == Notation::python) converter_.open_object(json);
    state_ = State::value;
    while (at < text.size() && !converter_.is_done()) converter_.put(text[at++], json);
    return converter_.is_done() ? Match::yes : is_over ? Match::no : Match::more;
  }

  /// Reads the marks around a key, or finds the end of the call.
  Match read_key(std::string_view text, std::size_t& at, bool is_over, std::string& json) {
    const ParameterMarks& marks = format_.parameter;
    const std::string_view view = window(text, at);
    std::size_t next = at;
    std::string_view key, type;
    Match here = match(view, next, marks.open);
    if (here == Match::no) {
      here = is_closed(text, at, is_over);
      if (here == Match::yes) json += '}', state_ = State::end;
      return here;
    }
    const bool is_typed = !marks.type_open.empty();
    if (here == Match::yes) here = read_until(view, next, is_typed ? marks.type_open : marks.key_close, key);
    if (here == Match::yes && is_typed) here = read_until(view, next, marks.key_close, type);
    here = limited(here, text, at, is_over);
    if (here != Match::yes) return here;
    at = next;
    is_string_ = is_typed ? type == marks.string_type : tool_ == nullptr || tool_->is_string(key);
    begin_value(key, json);
    return here;
  }
  void begin_value(std::string_view key, std::string& json) {
    if (has_parameters_) json += ", ";
    has_parameters_ = true;
    json += '"';
    for (const char c : key) append_string_byte(c, json);
    json += is_string_ ? "\": \"" : "\": ";
    converter_ = JsonConverter();
    skips_newline_ = format_.parameter.key_close.ends_with('\n');
    state_ = State::value;
  }

  /// Reads a value as far as it is certain.
  Match read_value(std::string_view text, std::size_t& at, bool is_over, std::string& json) {
    if (skips_newline_ && at < text.size()) at += text[at] == '\n' ? 1 : 0, skips_newline_ = false;
    const std::string_view mark = trimmed(format_.parameter.close);
    const std::size_t found = mark.empty() ? std::string_view::npos : text.find(mark, at);
    if (found == std::string_view::npos) {
      const std::size_t held = is_over ? 0 : beginning_of(mark, text.substr(at));
      add(text, at, is_over ? text.size() : without_newline(text, at, text.size() - held), json);
      return is_over ? Match::no : Match::more;
    }
    const std::size_t behind = found + mark.size();
    const Match here =
        is_over && skip_space(text, behind) == text.size() ? Match::yes : follows(text, behind, is_over);
    add(text, at, here == Match::no ? behind : without_newline(text, at, found), json);
    if (here == Match::no) return Match::yes;  // the value goes on behind a text like its closing mark
    if (here == Match::more) return here;
    if (is_string_) {
      json += '"';
    } else {
      converter_.finish(json);
    }
    at = behind;
    state_ = State::between;
    return here;
  }
  /// Whether a parameter or the end of the call follows.
  [[nodiscard]] Match follows(std::string_view text, std::size_t at, bool is_over) const {
    std::size_t next = at;
    const Match here = limited(match(window(text, at), next, format_.parameter.open), text, at, is_over);
    return here == Match::no ? is_closed(text, at, is_over) : here;
  }
  /// Whether the call ends here. At the end of the answer, the last of its closing marks may be missing.
  [[nodiscard]] Match is_closed(std::string_view text, std::size_t at, bool is_over) const {
    std::size_t next = at;
    const Match here = match_some(window(text, at), next, format_.call_close);
    return here == Match::more && is_over && next > at ? Match::yes : limited(here, text, at, is_over);
  }
  /// The end of a value, before the line break that belongs to its closing mark.
  [[nodiscard]] std::size_t without_newline(std::string_view text, std::size_t at, std::size_t end) const {
    const bool has_newline = format_.parameter.close.starts_with('\n') && end > at && text[end - 1] == '\n';
    return has_newline ? end - 1 : end;
  }
  void add(std::string_view text, std::size_t& at, std::size_t end, std::string& json) {
    for (; at < end; ++at) is_string_ ? append_string_byte(text[at], json) : converter_.put(text[at], json);
  }

  const CallFormat& format_;
  const ToolTypes* tool_;
  JsonConverter converter_;  // of the arguments, or of one value between tags
  State state_ = State::begin;
  bool is_string_ = true, has_parameters_ = false, skips_newline_ = false;
};

}  // namespace mica::calls::detail
