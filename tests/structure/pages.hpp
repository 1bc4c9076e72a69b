// SPDX-License-Identifier: Apache-2.0
//
// Pages and sources as text, for tests that hold what they name to what is there.

#pragma once

#include "source_tree.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// Everything that is written by hand here, with paths from the root of the tree, and the tree's other files
/// by name.
struct Tree {
  std::filesystem::path root = MICA_SOURCE;
  std::vector<SourceFile> texts;
  std::set<std::string> names;  // of all files

  Tree() {
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      const std::string name = entry.path().filename().string();
      if (name == "build" || name.starts_with('.')) continue;
      if (!entry.is_directory()) {
        add(entry.path());
        continue;
      }
      for (const auto& inner : std::filesystem::recursive_directory_iterator(entry.path()))
        if (inner.is_regular_file()) add(inner.path());
    }
  }

  [[nodiscard]] bool has(std::string_view path) const { return std::filesystem::exists(root / path); }

  /// Whether a file of the tree ends with these parts of a path: "highway/codec-inl.hpp".
  [[nodiscard]] bool has_file(const std::string& end) const {
    const std::string behind = "/" + end;
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name == end || name.ends_with(behind); });
  }

  /// The lines of one file.
  [[nodiscard]] const SourceFile& text(std::string_view name) const {
    return *std::find_if(texts.begin(), texts.end(),
                         [&](const SourceFile& file) { return file.name == name; });
  }

 private:
  void add(const std::filesystem::path& path) {
    const std::string name = path.lexically_relative(root).generic_string(), end = path.extension().string();
    names.insert(name);
    if (end != ".md" && end != ".hpp" && end != ".cpp" && end != ".py" && end != ".cmake" && end != ".txt" &&
        name != "setup")
      return;
    SourceFile file{name, {}};
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) file.lines.push_back(line);
    texts.push_back(std::move(file));
  }
};

/// The tree, read once.
inline const Tree& tree() {
  static const Tree all;
  return all;
}

/// The line without what stands between backticks.
inline std::string without_code(std::string_view line) {
  std::string out;
  bool code = false;
  for (const char c : line) {
    if (c == '`') code = !code;
    if (c != '`' && !code) out += c;
  }
  return out;
}

/// Calls f(number, line) for each line of a page that is in no block of code.
template <class F>
void for_each_line(const SourceFile& page, F&& f) {
  bool code = false;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    const std::string& line = page.lines[i];
    if (line.starts_with("```")) code = !code;
    if (!code && !line.starts_with("```")) f(i + 1, line);
  }
}

/// The cells of a row of a table, without the spaces around them. A bar in code or behind a backslash is part
/// of a cell.
inline std::vector<std::string> cells_of(std::string_view row) {
  std::vector<std::string> cells;
  std::string cell;
  bool code = false;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '`') code = !code;
    if (row[i] == '|' && !code && row[i - 1] != '\\') {
      const auto first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
      cells.push_back(first == cell.npos ? "" : cell.substr(first, last - first + 1));
      cell.clear();
    } else {
      cell += row[i];
    }
  }
  return cells;
}

/// The rows of the first table of a page whose header begins with these words, without header and line.
inline std::vector<std::vector<std::string>> table_of(const SourceFile& page, std::string_view header) {
  std::vector<std::vector<std::string>> rows;
  std::size_t at = 0;
  while (at < page.lines.size() && !page.lines[at].starts_with(header)) ++at;
  for (at += 2; at < page.lines.size() && page.lines[at].starts_with('|'); ++at)
    rows.push_back(cells_of(page.lines[at]));
  return rows;
}

/// The words of a cell that stand in backticks.
inline std::vector<std::string> code_of(std::string_view cell) {
  std::vector<std::string> words;
  for (std::size_t at = cell.find('`'); at != cell.npos; at = cell.find('`', at + 1)) {
    const std::size_t end = cell.find('`', at + 1);
    words.emplace_back(cell.substr(at + 1, end - at - 1));
    at = end;
  }
  return words;
}

}  // namespace mica::test
