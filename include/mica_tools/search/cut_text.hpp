// SPDX-License-Identifier: Apache-2.0
//
// A text cut into passages that a model reads whole: at headings and between paragraphs where these are short
// enough, else between sentences, lines, words, and at last between characters.
//
//   # Heading      <- a passage begins
//   a paragraph
//                  <- the passage ends here if the next paragraph has too many tokens for it
//   a paragraph
//   # Heading      <- and here in any case
#pragma once

#include "mica/base/assert.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mica::search {

/// A part of a text file.
struct Passage {
  std::uint64_t offset = 0;      // of its first byte
  std::uint64_t bytes = 0;       // without white space at its ends
  std::uint64_t first_line = 0;  // from 1 on
  std::uint64_t last_line = 0;

  friend bool operator==(const Passage&, const Passage&) = default;
};

/// How a text is cut.
struct CutOptions {
  std::size_t max_tokens = 256;  // of a passage
  bool markdown = false;         // lines that begin with # are headings
};

/// Bytes of a passage with max_tokens tokens, at most: a text whose words are unknown to the model is cut too.
inline constexpr std::size_t bytes_of_token = 16;

namespace detail {

[[nodiscard]] constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}
/// Of a letter, a digit, or a character that is not ASCII.
[[nodiscard]] constexpr bool is_of_word(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// The first byte behind the line that has `at`.
[[nodiscard]] constexpr std::size_t next_line(std::string_view text, std::size_t at) noexcept {
  const std::size_t end = text.find('\n', at);
  return end == text.npos ? text.size() : end + 1;
}
/// Whether the line from `at` on has white space alone.
[[nodiscard]] constexpr bool is_blank_line(std::string_view text, std::size_t at) noexcept {
  const std::string_view line = text.substr(at, next_line(text, at) - at);
  return std::all_of(line.begin(), line.end(), is_blank);
}
/// "## " to "###### ", and "# ".
[[nodiscard]] constexpr bool is_heading(std::string_view line) noexcept {
  const std::size_t marks = std::min(line.find_first_not_of('#'), line.size());
  return marks >= 1 && marks <= 6 && marks < line.size() && line[marks] == ' ';
}
/// A line that begins or ends a block of code.
[[nodiscard]] constexpr bool is_fence(std::string_view line) noexcept {
  const std::size_t at = std::min(line.find_first_not_of(' '), line.size());
  return line.substr(at).starts_with("```") || line.substr(at).starts_with("~~~");
}

// The functions below give the first place behind `at` at which a text may be cut, or its end.

[[nodiscard]] constexpr std::size_t next_paragraph(std::string_view text, std::size_t at) noexcept {
  at = next_line(text, at);
  while (at < text.size() && !is_blank_line(text, at)) at = next_line(text, at);
  while (at < text.size() && is_blank_line(text, at)) at = next_line(text, at);
  return at;
}
/// Behind . ! ? and the white space after them, and behind the marks of Chinese and Japanese.
[[nodiscard]] constexpr std::size_t next_sentence(std::string_view text, std::size_t at) noexcept {
  constexpr std::string_view ends = ".!?", closers = "\"')]}*_";
  constexpr std::array<std::string_view, 3> wide = {"\xE3\x80\x82", "\xEF\xBC\x81", "\xEF\xBC\x9F"};
  for (; at < text.size(); ++at) {
    if (std::any_of(wide.begin(), wide.end(), [&](auto mark) { return text.substr(at).starts_with(mark); }))
      return at + 3;
    if (ends.find(text[at]) == ends.npos) continue;
    std::size_t end = at + 1;
    while (end < text.size() && closers.find(text[end]) != closers.npos) ++end;
    if (end < text.size() && !is_blank(text[end])) continue;
    while (end < text.size() && is_blank(text[end])) ++end;
    return end;
  }
  return text.size();
}
[[nodiscard]] constexpr std::size_t next_word(std::string_view text, std::size_t at) noexcept {
  while (at < text.size() && is_blank(text[at])) ++at;
  while (at < text.size() && !is_blank(text[at])) ++at;
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}
[[nodiscard]] constexpr std::size_t next_character(std::string_view text, std::size_t at) noexcept {
  return at + std::max<std::size_t>(1, text::utf8_sequence_bytes(text.substr(at)));
}

inline constexpr std::array cuts = {next_paragraph, next_sentence, next_line, next_word, next_character};
inline constexpr std::size_t cuts_of_words = 3;  // from here on lines are divided

/// Where headings of Markdown begin, those directly below another heading left out; and the end.
[[nodiscard]] inline std::vector<std::size_t> section_ends(std::string_view text, bool markdown) {
  std::vector<std::size_t> ends;
  bool code = false, below_heading = true;
  for (std::size_t at = 0; markdown && at < text.size(); at = next_line(text, at)) {
    const std::string_view line = text.substr(at, next_line(text, at) - at);
    if (is_fence(line)) code = !code;
    const bool heading = !code && is_heading(line);
    if (heading && !below_heading) ends.push_back(at);
    if (!is_blank_line(text, at)) below_heading = heading;
  }
  ends.push_back(text.size());
  return ends;
}

/// Cuts one text.
template <class Count>
class Cutter {
 public:
  Cutter(std::string_view text, const CutOptions& options, Count& count)
      : text_(text),
        max_tokens_(options.max_tokens),
        max_bytes_(std::min(options.max_tokens, text.size()) * bytes_of_token),
        markdown_(options.markdown),
        count_(count) {}

  /// Adds the passages up to `end`, where a section ends.
  void add_section(std::size_t end, std::vector<Passage>& out) {
    while (at_ < end) {
      while (at_ < end && is_blank(text_[at_])) ++at_;
      const std::size_t cut = at_ < end ? next_cut(end) : end;
      add(cut, out);
      at_ = cut;
    }
  }

 private:
  /// The end of the longest passage, of the coarsest kind of cut that has one.
  [[nodiscard]] std::size_t next_cut(std::size_t end) {
    // Bytes behind the longest passage are not searched for cuts.
    const std::string_view section = text_.substr(0, at_ + std::min(end - at_, max_bytes_ + 4));
    const std::size_t body = body_of(section);
    for (std::size_t kind = 0; kind < cuts.size(); ++kind) {
      const std::size_t cut = longest(section, cuts[kind]);
      if (cut > body || (cut > at_ && kind >= cuts_of_words)) return cut;
    }
    return next_character(section, at_);  // of more tokens than are allowed
  }
  /// The end of headings that the passage begins with: they are no passage by themselves if a text follows.
  [[nodiscard]] std::size_t body_of(std::string_view section) const noexcept {
    std::size_t at = at_;
    while (markdown_ && at < section.size() && (is_heading(section.substr(at)) || is_blank_line(section, at)))
      at = next_line(section, at);
    return at == section.size() ? at_ : at;
  }
  /// Doubles the number of parts while they fit, then halves the difference.
  template <class Next>
  [[nodiscard]] std::size_t longest(std::string_view section, Next next) {
    places_.assign(1, at_);
    std::size_t fits = 0, misfit = 1;  // indices of places
    for (std::size_t step = 1; places_.back() < section.size(); step *= 2) {
      for (std::size_t i = 0; i < step && places_.back() < section.size(); ++i)
        places_.push_back(next(section, places_.back()));
      const std::size_t last = places_.size() - 1;
      if (fits_until(places_[last])) {
        fits = last;
        misfit = last + 1;
      } else {
        misfit = last;
        break;
      }
    }
    while (misfit - fits > 1) {
      const std::size_t middle = fits + (misfit - fits) / 2;
      (fits_until(places_[middle]) ? fits : misfit) = middle;
    }
    return places_[fits];
  }
  [[nodiscard]] bool fits_until(std::size_t end) {
    const std::string_view text = trimmed(end);
    return text.size() <= max_bytes_ && count_(text) <= max_tokens_;
  }
  /// What is read of the passage that ends there.
  [[nodiscard]] std::string_view trimmed(std::size_t end) const noexcept {
    while (end > at_ && is_blank(text_[end - 1])) --end;
    return text_.substr(at_, end - at_);
  }
  void add(std::size_t cut, std::vector<Passage>& out) {
    const std::string_view text = trimmed(cut);
    if (std::none_of(text.begin(), text.end(), is_of_word)) return;
    const std::uint64_t first = line_of(at_);
    out.push_back({at_, text.size(), first, line_of(at_ + text.size() - 1)});
  }
  /// The line of a byte, which is at or behind that of the call before.
  [[nodiscard]] std::uint64_t line_of(std::size_t at) noexcept {
    const auto from = text_.begin() + static_cast<std::ptrdiff_t>(counted_);
    const auto to = text_.begin() + static_cast<std::ptrdiff_t>(at);
    line_ += static_cast<std::uint64_t>(std::count(from, to, '\n'));
    counted_ = at;
    return line_;
  }

  std::string_view text_;
  std::size_t max_tokens_;
  std::size_t max_bytes_;
  bool markdown_;
  Count& count_;
  std::size_t at_ = 0;               // the text before it is cut
  std::vector<std::size_t> places_;  // cuts of one kind
  std::uint64_t line_ = 1;           // of byte `counted_`
  std::size_t counted_ = 0;
};

}  // namespace detail

/// The passages of a text, in order. count(text) is the number of tokens that the model reads for a text, special
/// ones among them; no passage has more than options.max_tokens of them, unless one character has. A passage
/// without a letter or a digit is left out. Cost: each byte is counted some ten times.
template <class Count>
[[nodiscard]] std::vector<Passage> cut_text(std::string_view text, const CutOptions& options, Count&& count) {
  MICA_CHECK(options.max_tokens > 0, usage, "passages of 0 tokens");
  std::vector<Passage> out;
  detail::Cutter cutter(text, options, count);
  for (const std::size_t end : detail::section_ends(text, options.markdown)) cutter.add_section(end, out);
  return out;
}

}  // namespace mica::search
