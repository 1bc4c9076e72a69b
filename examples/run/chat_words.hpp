// SPDX-License-Identifier: Apache-2.0
//
// The text that Tab adds to a line of the chat: the rest of a command, of a word that a command takes, or of
// a file's name.
#pragma once

#include "mica/base/error.hpp"
#include "mica/io/detail/path.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <sys/stat.h>

namespace mica::program {

/// A command and its arguments.
struct ChatWord {
  std::string_view name;  // "/show"
  std::string_view
      arguments;  // words with blanks between them; "FILE": a file's name; "TEXT": anything; empty: nothing
};

/// The text that Tab adds, and the candidates if there are several.
struct Completion {
  std::string added;
  std::vector<std::string> candidates;
};

/// Calls f with each word of a text that has single blanks between them.
template <class F>
void for_each_word(std::string_view text, F&& f) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    f(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
}

[[nodiscard]] inline std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

namespace detail {

/// The longest text that all candidates have in common after `typed` bytes; of a single one all of it, and
/// `after`.
[[nodiscard]] inline Completion completion_of(std::vector<std::string> candidates, std::size_t typed,
                                              std::string_view after) {
  Completion out;
  if (candidates.empty()) return out;
  std::sort(candidates.begin(), candidates.end());
  const std::string &first = candidates.front(), &last = candidates.back();
  const auto differs = std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first;
  auto common = static_cast<std::size_t>(differs - first.begin());
  while (common > typed && common < last.size() && (static_cast<unsigned char>(last[common]) & 0xC0) == 0x80)
    --common;  // not half a character
  out.added = first.substr(typed, common - typed);
  if (candidates.size() == 1) {
    if (!first.ends_with('/')) out.added += after;
  } else {
    out.candidates = std::move(candidates);
  }
  return out;
}

/// Files whose names begin as `path` does, folders with a slash behind them; of the first 4,096 of a folder.
[[nodiscard]] inline std::vector<std::string> files_like(const std::string& path) {
  const std::string folder(io::detail::folder_part(path));
  const std::string_view begin = io::detail::name_part(path);
  std::vector<std::string> found;
  io::detail::for_each_beside(path, [&, seen = 0](int at, const char* entry) mutable {
    const std::string_view name = entry;
    const bool is_hidden = name.starts_with('.') && !begin.starts_with('.');
    if (!is_hidden && !io::detail::has_controls(name) && name.starts_with(begin)) {
      struct ::stat status {};
      const bool is_folder = ::fstatat(at, entry, &status, 0) == 0 && S_ISDIR(status.st_mode);
      found.push_back(join(folder, name, is_folder ? "/" : ""));
    }
    return ++seen < 4096;
  });
  return found;
}

}  // namespace detail

/// Completes a line up to its end, where the cursor is. A line that is no command stays as it is.
[[nodiscard]] inline Completion complete_line(std::string_view line, std::span<const ChatWord> words) {
  if (!line.starts_with('/')) return {};
  std::vector<std::string> candidates;
  const std::size_t space = line.find(' ');
  const std::string name = in_lower_case(line.substr(0, space));
  if (space == std::string_view::npos) {
    bool takes_more = false;
    for (const ChatWord& word : words) {
      if (!word.name.starts_with(name)) continue;
      candidates.emplace_back(word.name);
      takes_more = !word.arguments.empty();
    }
    return detail::completion_of(std::move(candidates), name.size(), takes_more ? " " : "");
  }
  const auto word =
      std::find_if(words.begin(), words.end(), [&](const ChatWord& w) { return w.name == name; });
  if (word == words.end()) return {};
  const std::string typed(line.substr(std::min(line.size(), line.find_first_not_of(' ', space))));
  if (word->arguments == "FILE") return detail::completion_of(detail::files_like(typed), typed.size(), "");
  if (word->arguments == "TEXT") return {};
  for_each_word(word->arguments, [&](std::string_view one) {
    if (one.starts_with(typed)) candidates.emplace_back(one);
  });
  return detail::completion_of(std::move(candidates), typed.size(), word->name == "/set" ? " " : "");
}

}  // namespace mica::program
