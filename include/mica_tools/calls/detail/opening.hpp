// SPDX-License-Identifier: Apache-2.0
//
// The beginning of a call: everything up to its arguments. It is read as a whole, again with each piece of
// text, until it is certain whether it is a call.
#pragma once

#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/detail/marks.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace mica::calls::detail {

/// Whether calls begin with more than brackets. Without a mark, only the beginning of an answer can be a
/// call.
[[nodiscard]] inline bool has_mark(const CallFormat& format) {
  return (format.list_open + format.call_open).find_first_not_of(" \t\r\n[{(") != std::string::npos;
}

/// The first mark of a text that opens a call, or all of it where it begins with none.
[[nodiscard]] inline std::string first_mark(std::string_view opening) {
  const std::string_view whole = trimmed(opening);
  const std::size_t size = whole.empty() ? 0 : unit_size(whole);
  return std::string(size > 1 ? whole.substr(0, size) : whole);
}

/// What was read at a place of the text.
struct Opening {
  Match match = Match::no;    // whether a call begins here
  std::size_t arguments = 0;  // where its arguments begin; where `is_empty`, the end of the object
  bool is_empty = false;      // a JSON object without arguments
  std::string name = {};
  std::string id = {};
};

/// Moves behind a text between quotes and returns what is between them, with its escapes.
inline Match read_string(std::string_view text, std::size_t& at, std::string_view& value) {
  if (at == text.size()) return Match::more;
  if (text[at] != '"') return Match::no;
  for (std::size_t end = at + 1; end < text.size(); ++end) {
    if (text[end] == '\\') {
      ++end;
    } else if (text[end] == '"') {
      value = text.substr(at + 1, end - at - 1);
      at = end + 1;
      return Match::yes;
    }
  }
  return Match::more;
}

/// Moves behind a value of JSON. Only brackets and strings are followed.
inline Match skip_value(std::string_view text, std::size_t& at) {
  std::size_t depth = 0;
  for (std::size_t next = at; next < text.size();) {
    const char c = text[next];
    std::string_view ignored;
    const bool is_end = c == ',' || c == '}' || c == ']';
    if (depth == 0 && is_end) return at = next, Match::yes;
    if (c == '"') {
      if (read_string(text, next, ignored) == Match::more) return Match::more;
      if (depth == 0) return at = next, Match::yes;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    ++next;
    if ((c == '}' || c == ']') && --depth == 0) return at = next, Match::yes;
  }
  return Match::more;
}

/// The members of a call that is a JSON object, one after the other.
class MemberReader {
 public:
  MemberReader(const JsonKeys& keys, std::string_view text, std::size_t at)
      : keys_(keys), text_(text), at_(at) {}

  /// Reads until name and arguments are found, in any order.
  Opening up_to_arguments() {
    Opening out;
    if (!moves_into_object(out)) return out;
    std::size_t arguments = 0;
    while ((out.match = next_member()) == Match::yes) {
      const bool is_end = key_.empty() && text_[at_] == '}';
      if (is_end && name_.empty()) out.match = Match::no;
      if (is_end) break;
      if (key_ == keys_.arguments || key_ == "arguments" || key_ == "parameters") {
        if (text_[at_] != '{') return out.match = Match::no, out;
        arguments = at_;
        if (name_.empty() && (out.match = skip_value(text_, at_)) != Match::yes) return out;
      } else if (!is_known() || (out.match = read_member()) != Match::yes) {
        return out.match = is_known() ? out.match : Match::no, out;
      }
      if (arguments > 0 && !name_.empty()) break;
    }
    out.is_empty = arguments == 0;
    out.arguments = arguments > 0 ? arguments : at_;
    out.name = name_;
    out.id = id_;
    return out;
  }
  /// Reads from behind the arguments to behind the object.
  Match up_to_end(std::size_t& at, std::string& id) {
    for (Match here = next_member();; here = next_member()) {
      if (here != Match::yes) return here;
      if (key_.empty()) return at = at_ + 1, id = id_.empty() ? id : id_, Match::yes;
      if ((here = read_member()) != Match::yes) return here;
    }
  }

 private:
  bool moves_into_object(Opening& out) {
    at_ = skip_space(text_, at_);
    out.match = at_ == text_.size() ? Match::more : text_[at_] == '{' ? Match::yes : Match::no;
    ++at_;
    return out.match == Match::yes;
  }
  /// Moves to the next value and reads its key; at the end of the object the key is empty.
  Match next_member() {
    key_ = {};
    while ((at_ = skip_space(text_, at_)) < text_.size() && text_[at_] == ',') ++at_;
    if (at_ < text_.size() && text_[at_] == '}') return Match::yes;
    if (const Match here = read_string(text_, at_, key_); here != Match::yes) return here;
    if (const Match here = match(text_, at_, ":"); here != Match::yes) return here;
    at_ = skip_space(text_, at_);
    return at_ == text_.size() ? Match::more : key_.empty() ? Match::no : Match::yes;
  }
  /// Whether the current key may stand beside the name. Any other one means that the object is no call.
  [[nodiscard]] bool is_known() const {
    return key_ == keys_.name || key_ == keys_.id || key_ == "name" || key_ == "id" || key_ == "type";
  }
  /// Reads a member that is not the arguments.
  Match read_member() {
    const std::size_t first = at_;
    if (const Match here = skip_value(text_, at_); here != Match::yes) return here;
    std::string_view value = trimmed(text_.substr(first, at_ - first));
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    if (key_ == keys_.name || key_ == "name") name_ = value;
    if (!keys_.id.empty() && key_ == keys_.id) id_ = value;
    return Match::yes;
  }

  const JsonKeys& keys_;
  std::string_view text_;
  std::size_t at_;
  std::string_view key_, name_, id_;
};

/// Whether arguments begin here, which are not in a JSON object with the name.
inline Match begins_arguments(const CallFormat& format, std::string_view text, std::size_t at) {
  const std::size_t first = skip_space(text, at);
  if (first == text.size()) return Match::more;
  if (format.notation == Notation::json || format.notation == Notation::bare)
    return text[first] == '{' ? Match::yes : Match::no;
  if (format.notation == Notation::python) {
    if (text[first] == ')') return Match::yes;
    const std::size_t behind = skip_space(text, skip_name(text, first));
    if (behind == text.size()) return Match::more;
    return behind > first && text[behind] == '=' ? Match::yes : Match::no;
  }
  const Match open = match(text, at, format.parameter.open);
  return open == Match::no ? match_some(text, at, format.call_close) : open;
}

/// Reads the text before the name. In a list other calls come before.
inline Match read_marks(const CallFormat& format, std::string_view text, std::size_t& at, bool in_list) {
  const Match before = match(text, at, in_list ? format.separator : format.list_open);
  if (before == Match::more || (before == Match::no && !in_list)) return before;
  const Match open = match(text, at, format.call_open);
  return open == Match::no && !format.also_opens.empty() ? match(text, at, format.also_opens) : open;
}

/// Reads the id behind a name, where the format has one and it is there.
inline Match read_id(const IdMarks& marks, std::string_view text, std::size_t& at, Opening& out) {
  if (marks.open.empty()) return Match::yes;
  const Match open = match(text, at, marks.open);
  if (open != Match::yes) return open == Match::no ? Match::yes : open;
  const std::size_t first = at;
  at = skip_name(text, at);
  if (at == text.size()) return Match::more;
  const std::string written(text.substr(first, at - first));
  if (!marks.is_number) out.id = written;
  if (marks.is_number && !marks.before_name.empty())
    out.id = marks.before_name + out.name + marks.open + written;
  return Match::yes;
}

/// The call that begins at a place of the text.
inline Opening read_opening(const CallFormat& format, std::string_view text, std::size_t at, bool in_list) {
  Opening out;
  if ((out.match = read_marks(format, text, at, in_list)) != Match::yes) return out;
  if (!format.keys.name.empty()) return MemberReader(format.keys, text, at).up_to_arguments();
  const std::size_t first = skip_space(text, at);
  at = skip_name(text, first);
  out.match = at == text.size() ? Match::more : at == first ? Match::no : Match::yes;
  if (out.match != Match::yes) return out;
  out.name = text.substr(first, at - first);
  if ((out.match = read_id(format.id, text, at, out)) != Match::yes) return out;
  if ((out.match = match(text, at, format.after_name)) != Match::yes) return out;
  out.arguments = at;
  out.match = begins_arguments(format, text, at);
  return out;
}

}  // namespace mica::calls::detail
