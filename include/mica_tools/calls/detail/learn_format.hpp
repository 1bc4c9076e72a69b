// SPDX-License-Identifier: Apache-2.0
//
// Reads a CallFormat from a text with calls of known names and arguments: the text around them is the format.
// Marks are compared as units, so that <tool_call> and <tool_response> have no beginning in common.
//
//   head             call                              middle                           call   tail
//   <tool_call>\n    {"name": "N", "arguments": A}     \n</tool_call>\n<tool_call>\n    ...    \n</tool_call>
#pragma once

#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/detail/marks.hpp"
#include "mica_tools/calls/detail/opening.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::calls::detail {

/// The words of the conversation that templates render.
struct Sample {
  static constexpr std::string_view question = "micaquestion", answer = "micaanswer", key = "mica_key",
                                    number_key = "mica_number", value = "micavalue", number = "90714",
                                    result = "micaresult";
  static constexpr std::array<std::string_view, 2> names = {"mica_first", "mica_second"};
  static constexpr std::string_view arguments = R"({"mica_key": "micavalue", "mica_number": 90714})";
};

/// Bytes at the beginning of two texts that are the same marks and bytes.
inline std::size_t common_begin(std::string_view a, std::string_view b) {
  std::size_t size = 0;
  while (size < a.size() && size < b.size()) {
    const std::string_view unit = a.substr(size, unit_size(a.substr(size)));
    if (unit != b.substr(size, unit_size(b.substr(size)))) break;
    size += unit.size();
  }
  return size;
}

/// Bytes at the end of two texts that are the same marks and bytes.
inline std::size_t common_end(std::string_view a, std::string_view b) {
  const auto first = units_of(a), second = units_of(b);
  std::size_t size = 0;
  for (auto x = first.rbegin(), y = second.rbegin(); x != first.rend() && y != second.rend() && *x == *y;
       ++x, ++y)
    size += x->size();
  return size;
}

/// One call in a text: where it begins and ends, and what is between name and arguments.
struct CallCut {
  std::size_t begin = 0, end = 0;  // of the JSON object, or of name and arguments
  std::string_view after_name;
};

/// Cuts calls out of a text. Functions return false if the notation is not known here.
class FormatLearner {
 public:
  explicit FormatLearner(std::string_view text) : text_(text) {}

  /// Cuts the call of the sample's name; sets what the format says of one call.
  bool cut(std::string_view name, std::size_t from, CallCut& out) {
    out.begin = text_.find(name, from);
    if (out.begin == std::string_view::npos) return false;
    const std::size_t behind = out.begin + name.size();
    const std::size_t key = text_.find(Sample::key, behind), value = text_.find(Sample::value, key);
    const std::size_t number = text_.find(Sample::number, value);
    if (number == std::string_view::npos) return false;
    const std::string_view between = slice(key + Sample::key.size(), value);
    const std::string_view mark = trimmed(between);
    format.keys = {};
    std::size_t begin = text_.rfind('{', key);
    out.end = text_.find('}', number) + 1;
    if (mark == "=\"" || mark == "='") {
      format.notation = Notation::python;
      begin = text_.rfind('(', key) + 1;
      out.end = text_.find(')', number) + 1;
    } else if (mark.size() > 3 && mark.starts_with(':')) {
      format.notation = Notation::bare;
      format.quote = mark.substr(1);
    } else if (!mark.starts_with("\":") && !mark.starts_with("\" :")) {
      return cut_tags(behind, key, value, number, out);
    }
    if (begin < behind || begin > key || out.end == 0) return false;
    out.after_name = slice(behind, begin);
    if (format.notation == Notation::json) find_object(out);
    return true;
  }

  CallFormat format;

 private:
  [[nodiscard]] std::string_view slice(std::size_t begin, std::size_t end) const {
    return text_.substr(begin, end - begin);
  }

  bool cut_tags(std::size_t behind, std::size_t key, std::size_t value, std::size_t number, CallCut& out) {
    ParameterMarks& marks = format.parameter;
    format.notation = Notation::tags;
    const std::size_t next_key = text_.find(Sample::number_key, value);
    if (next_key > number) return false;
    const std::string_view before = slice(behind, key);
    const std::string_view middle = slice(value + Sample::value.size(), next_key);
    const std::size_t open = common_end(before, middle);
    marks.open = before.substr(before.size() - open);
    marks.close = middle.substr(0, middle.size() - open);
    set_key_close(slice(key + Sample::key.size(), value),
                  slice(next_key + Sample::number_key.size(), number));
    out.after_name = before.substr(0, before.size() - open);
    out.end = number + Sample::number.size();
    const std::string_view close = trimmed(marks.close);
    if (trimmed(marks.open).empty() || close.empty()) return false;
    if (text_.substr(out.end).starts_with(marks.close)) return out.end += marks.close.size(), true;
    marks.close = close;  // the space behind it does not follow the last value
    out.end = text_.find(close, out.end);
    if (out.end == std::string_view::npos) return false;
    out.end += close.size();
    return true;
  }
  /// The marks between a key and its value, of a string and of a number.
  void set_key_close(std::string_view string, std::string_view number) {
    ParameterMarks& marks = format.parameter;
    marks.key_close = string;
    if (string == number) return;
    std::size_t begin = common_begin(string, number);
    while (begin > 0 && is_name_byte(string[begin - 1])) --begin;
    const std::size_t type = skip_name(string, begin), other = skip_name(number, begin);
    marks.type_open = string.substr(0, begin);
    marks.string_type = string.substr(begin, type - begin);
    marks.other_type = number.substr(begin, other - begin);
    if (marks.other_type == "number" || marks.other_type == "integer") marks.other_type.clear();
    marks.key_close = string.substr(type);
  }

  /// Whether the name is a member of a JSON object around the arguments.
  void find_object(CallCut& out) {
    std::string_view before = text_.substr(0, out.begin);
    if (!before.ends_with('"')) return;
    before = trimmed_end(before.substr(0, before.size() - 1));
    const std::size_t open = text_.rfind('{', out.begin), comma = out.after_name.find(',');
    if (!before.ends_with(':') || open == std::string_view::npos || comma == std::string_view::npos) return;
    format.keys.name = last_string(before);
    format.keys.arguments = last_string(out.after_name);
    const std::size_t close = text_.find('}', out.end);
    set_id_key(slice(open, out.begin), true);
    set_id_key(slice(out.end, close), false);
    out.begin = open;
    out.end = close + 1;
  }
  /// A member whose key ends with "id".
  void set_id_key(std::string_view members, bool is_first) {
    const std::size_t end = members.find("id\"");
    if (end == std::string_view::npos) return;
    format.keys.id = last_string(members.substr(0, end + 3));
    format.keys.id_first = is_first;
  }
  [[nodiscard]] static std::string_view trimmed_end(std::string_view text) {
    return text.substr(0, text.find_last_not_of(space) + 1);
  }
  /// The last text between quotes.
  [[nodiscard]] static std::string last_string(std::string_view text) {
    const std::size_t end = text.rfind('"');
    if (end == std::string_view::npos || end == 0) return {};
    const std::size_t begin = text.rfind('"', end - 1);
    return begin == std::string_view::npos ? std::string()
                                           : std::string(text.substr(begin + 1, end - begin - 1));
  }

  std::string_view text_;
};

/// What differs between the texts behind two names is the id.
inline void set_id(CallFormat& format, std::string_view first, std::string_view second) {
  format.after_name = format.keys.name.empty() ? first : "";
  if (first == second || format.after_name.empty()) return;
  const std::size_t at = static_cast<std::size_t>(
      std::mismatch(first.begin(), first.end(), second.begin(), second.end()).first - first.begin());
  if (at == first.size()) return;
  format.id.open = first.substr(0, at);
  format.id.is_number = first[at] >= '0' && first[at] <= '9';
  format.after_name = first.substr(skip_name(first, at));
  constexpr std::string_view before_name = "functions.";
  if (format.id.is_number && format.call_open.ends_with(before_name)) format.id.before_name = before_name;
}

/// head, middle, tail: around the calls. end: behind an answer without calls. An empty middle: one call.
inline void set_marks(CallFormat& format, std::string_view head, std::string_view middle,
                      std::string_view tail, std::string_view end) {
  const std::size_t open = format.is_parallel ? common_end(head, middle) : head.size();
  format.call_open = head.substr(head.size() - open);
  format.list_open = head.substr(0, head.size() - open);
  if (format.is_parallel) {
    middle.remove_suffix(open);
    const std::size_t close = common_begin(middle, tail);
    format.call_close = middle.substr(0, close);
    format.separator = middle.substr(close);
    tail.remove_prefix(close);
  }
  std::string_view rest = tail.substr(0, tail.size() - common_end(tail, end));
  if (trimmed(rest).empty() || (format.is_parallel && format.list_open.empty())) rest = {};
  (format.is_parallel ? format.list_close : format.call_close) = rest;
  if (!format.is_parallel) format.separator.clear();
  format.turn_end = trimmed(tail.substr(rest.size()));
}

/// The format of a text with one or two calls behind the question. plain: a text with an answer and no calls.
/// Empty: the calls are not in the text, or not in a notation that is known here. turn_end is all of the text
/// behind the calls.
inline std::optional<CallFormat> learn_format(std::string_view text, std::string_view plain,
                                              const ThoughtMarks& thoughts) {
  const auto behind = [](std::string_view whole, std::string_view word) {
    const std::size_t at = whole.rfind(word);
    return at == std::string_view::npos ? std::string_view() : whole.substr(at + word.size());
  };
  text = behind(text, Sample::question);
  const std::string_view end = behind(plain, Sample::answer);
  FormatLearner learner(text);
  CallCut first, second;
  if (!learner.cut(Sample::names[0], 0, first)) return std::nullopt;
  CallFormat& format = learner.format;
  format.is_parallel = learner.cut(Sample::names[1], first.end, second);
  if (!format.is_parallel) second = first;
  std::string_view head = text.substr(0, first.begin);
  const std::size_t answer = head.find(Sample::answer);
  head.remove_prefix(answer != std::string_view::npos ? answer + Sample::answer.size()
                                                      : common_begin(head, behind(plain, Sample::question)));
  const std::size_t thought = thoughts.close.empty() ? std::string_view::npos : head.rfind(thoughts.close);
  if (thought != std::string_view::npos) head.remove_prefix(thought + thoughts.close.size());
  head.remove_prefix(skip_space(head, 0));
  const bool has_text_behind = text.find(Sample::answer, second.end) != std::string_view::npos;
  if (has_text_behind) return std::nullopt;
  const std::string_view middle = format.is_parallel ? text.substr(first.end, second.begin - first.end) : "";
  set_marks(format, head, middle, text.substr(second.end), end);
  set_id(format, first.after_name, second.after_name);
  format.family = "template";
  return format;
}

}  // namespace mica::calls::detail
