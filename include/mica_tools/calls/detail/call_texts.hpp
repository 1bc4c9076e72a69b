// SPDX-License-Identifier: Apache-2.0
//
// Expressions of what is around calls: marks, thoughts and free text. Free text is what a CallParser reads as
// text: no call and no thoughts begin in it. Since the parser ignores white space within marks, text must not
// have a mark with white space either.
#pragma once

#include "mica/base/error.hpp"
#include "mica/constraint/code_points.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/call_language_options.hpp"
#include "mica_tools/calls/call_parts.hpp"
#include "mica_tools/calls/detail/marks.hpp"
#include "mica_tools/calls/detail/opening.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls::detail {

using constraint::ByteSet;
using constraint::Expressions;
using constraint::ExprId;

/// Bytes that names have where the parser reads them without quotes.
[[nodiscard]] inline ByteSet name_bytes() {
  ByteSet out;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (is_name_byte(static_cast<char>(byte))) out.insert(static_cast<std::uint8_t>(byte));
  }
  return out;
}

/// Makes expressions of the texts of one format.
class CallTexts {
 public:
  static constexpr std::uint32_t max_spaces = 8;  // between thoughts and a call

  CallTexts(const CallFormat& format, const CallLanguageOptions& options, Expressions& expressions)
      : format_(format), options_(options), x_(expressions) {
    ByteSet spaces;
    for (const char c : space) spaces.insert(static_cast<std::uint8_t>(c));
    space_ = x_.set(spaces);
    character_ = constraint::encode_utf8(x_, constraint::CodePoints::all());
  }

  /// A text in which each token has its bytes.
  [[nodiscard]] std::string bytes(std::string_view text) const {
    std::string out;
    for (const CallPart& part : PartWriter(options_.tokens).text(text).take()) out += bytes(part);
    return out;
  }
  [[nodiscard]] std::string bytes(const CallPart& part) const {
    const bool is_token = part.kind == CallPart::Kind::token && options_.token_bytes;
    return is_token ? options_.token_bytes(part.text) : part.text;
  }
  [[nodiscard]] ExprId mark(std::string_view text) { return x_.literal(bytes(text)); }
  [[nodiscard]] ExprId spaces() { return x_.repeat(space_, 0, max_spaces); }

  /// Thoughts behind their opening mark, and the closing one.
  [[nodiscard]] ExprId thoughts() {
    return x_.cat(text_without({found(format_.thoughts.close)}), mark(format_.thoughts.close));
  }
  /// Free text. has_tools: calls are possible, so that text must not have what begins one.
  [[nodiscard]] ExprId text(bool has_tools) {
    std::vector<ExprId> never, first;
    if (has_tools && has_mark(format_)) {
      never.push_back(call_begins(first_mark(format_.list_open + format_.call_open)));
      if (!trimmed(format_.also_opens).empty()) never.push_back(call_begins(trimmed(format_.also_opens)));
    } else if (has_tools) {
      first.push_back(call_without_mark());
    }
    if (!trimmed(format_.thoughts.open).empty()) first.push_back(loose(format_.thoughts.open));
    std::vector<ExprId> ignored = {space_};
    for (const std::string& each : format_.around_text) ignored.push_back(x_.alt(loose(each), mark(each)));
    if (!first.empty()) never.push_back(x_.cat({x_.repeat(x_.alt(ignored), 0), x_.alt(first), ExprId::any}));
    return text_without(never, true);
  }
  /// Marks around free text, behind the part of them that the prompt has.
  [[nodiscard]] ExprId rest_of_marks(std::string_view prompt_end) {
    std::vector<ExprId> parts;
    for (const std::string_view each : format_.around_text) {
      if (each.starts_with(prompt_end)) parts.push_back(mark(each.substr(prompt_end.size())));
    }
    return x_.alt(std::move(parts));
  }
  /// Marks that may stand before a call which has no mark itself.
  [[nodiscard]] ExprId before_unmarked_call() {
    std::vector<ExprId> parts = {ExprId::empty};
    for (const std::string& each : format_.around_text) parts.push_back(mark(each));
    return x_.cat(spaces(), x_.alt(std::move(parts)));
  }
  /// Of gpt-oss: a message of a channel, from its header to its end.
  [[nodiscard]] ExprId message(std::string_view channel) {
    return x_.cat(mark("<|channel|>" + std::string(channel) + "<|message|>"),
                  text_without({found("<|channel|>"), found("<|start|>")}));
  }

 private:
  /// UTF-8, and the tokens around text if has_marks, but none of the texts of `never`.
  [[nodiscard]] ExprId text_without(const std::vector<ExprId>& never, bool has_marks = false) {
    std::vector<ExprId> units = {character_};
    for (const std::string& each : format_.around_text) {
      const std::string written = bytes(each);
      if (has_marks && written != each) units.push_back(x_.literal(written));
    }
    std::vector<ExprId> parts = {x_.repeat(x_.alt(std::move(units)), 0)};
    for (const ExprId each : never) parts.push_back(x_.complement(each));
    return x_.both(std::move(parts));
  }
  /// A mark as the parser reads it: with any white space between its characters.
  [[nodiscard]] ExprId loose(std::string_view text) {
    ExprId out = ExprId::empty;
    for (std::size_t i = text.size(); i-- > 0;) {
      if (is_space(text[i])) continue;
      if (out != ExprId::empty) out = x_.cat(x_.repeat(space_, 0), out);
      out = x_.cat(x_.literal(text.substr(i, 1)), out);
    }
    return out;
  }
  [[nodiscard]] ExprId found(std::string_view mark) {
    return x_.cat({ExprId::any, loose(mark), ExprId::any});
  }

  /// Texts in which the opening mark is found. It may be the beginning of a mark around text.
  [[nodiscard]] ExprId call_begins(std::string_view opening) {
    std::vector<ExprId> rests;
    for (const std::string_view each : format_.around_text) {
      if (trimmed(each).starts_with(opening))
        rests.push_back(
            x_.cat({x_.repeat(space_, 0), loose(trimmed(each).substr(opening.size())), ExprId::any}));
    }
    return x_.cat({ExprId::any, loose(opening), x_.complement(x_.alt(std::move(rests)))});
  }
  /// What a call of a format without a mark begins with: its object up to the first key, or the name.
  [[nodiscard]] ExprId call_without_mark() {
    const ExprId spaces = x_.repeat(space_, 0);
    const ExprId before = x_.cat(loose(format_.list_open + format_.call_open), spaces);
    if (format_.keys.name.empty()) {
      const ExprId name = x_.repeat(x_.set(name_bytes()), 1);
      return x_.cat(
          {before, name, spaces, loose(format_.id.open.empty() ? format_.after_name : format_.id.open)});
    }
    std::vector<constraint::Branch> keys;
    for (const std::string_view key :
         {std::string_view(format_.keys.name), std::string_view(format_.keys.arguments),
          std::string_view(format_.keys.id), std::string_view("name"), std::string_view("arguments"),
          std::string_view("parameters"), std::string_view("id"), std::string_view("type")}) {
      if (!key.empty()) keys.push_back({join("\"", key, "\"")});
    }
    const ExprId commas = x_.repeat(x_.alt(space_, x_.literal(",")), 0);
    return x_.cat({before, x_.literal("{"), commas, x_.table(std::move(keys))});
  }

  const CallFormat& format_;
  const CallLanguageOptions& options_;
  Expressions& x_;
  ExprId space_, character_;
};

}  // namespace mica::calls::detail
