// SPDX-License-Identifier: Apache-2.0
//
// What --help says of a verb, read as a user reads it: the names of each flag, the type of its value, its
// text.

#pragma once

#include "program/program.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#ifdef MICA_PROGRAM

namespace mica::test {

/// The verbs that `mica help` lists, between its first empty line and the second.
inline std::vector<std::string> verbs_of_help() {
  std::vector<std::string> verbs;
  std::istringstream lines(mica({"help"}).out);
  std::string line;
  while (std::getline(lines, line) && !line.empty()) {
  }
  while (std::getline(lines, line) && !line.empty()) verbs.push_back(line.substr(7, line.find(' ', 7) - 7));
  return verbs;
}

struct HelpFlag {
  std::vector<std::string> names;  // with dashes
  std::string type;                // of its value; empty: a switch
  std::string text;

  [[nodiscard]] std::string key() const {
    const auto found =
        std::find_if(names.begin(), names.end(), [](const auto& n) { return n.starts_with("--"); });
    return found == names.end() ? names.front().substr(1) : found->substr(2);
  }
  /// The default, which stands in brackets; empty: none.
  [[nodiscard]] std::string standard() const {
    const std::size_t begin = text.rfind(" ["), end = text.rfind("] (MICA_ARG_");
    return begin == std::string::npos || end == std::string::npos ? std::string()
                                                                  : text.substr(begin + 2, end - begin - 2);
  }
  /// Whether the parser alone has use for it.
  [[nodiscard]] bool is_parsers() const {
    return key() == "help" || key() == "config" || key() == "print-config";
  }
};

/// The flags of a verb, in order.
inline std::vector<HelpFlag> flags_of_help(const std::string& verb) {
  std::vector<HelpFlag> flags;
  std::istringstream lines(mica({verb, "--help"}).out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  -")) {
      const std::size_t gap = line.find("  ", 2);
      std::istringstream head(line.substr(2, gap == std::string::npos ? gap : gap - 2));
      HelpFlag flag;
      for (std::string word; head >> word;) {
        if (word.ends_with(',')) word.pop_back();
        (word.starts_with('-') ? flag.names.emplace_back() : flag.type) = word;
      }
      if (gap != std::string::npos) flag.text = line.substr(line.find_first_not_of(' ', gap));
      flags.push_back(std::move(flag));
    } else if (!flags.empty() && line.starts_with("       ")) {
      const std::string more = line.substr(line.find_first_not_of(' '));
      flags.back().text += (flags.back().text.empty() ? "" : " ") + more;
    }
  }
  return flags;
}

/// The value of a key in what --print-config shows, with its quotes; empty: none.
inline std::string configured(const std::string& config, const std::string& key) {
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    const std::string begin = key + " = ";
    const std::size_t comment = line.rfind(" # ");
    if (line.starts_with(begin))
      return line.substr(begin.size(), line.find_last_not_of(' ', comment) + 1 - begin.size());
    if (line.starts_with("# " + begin) && key == "words") return line.substr(begin.size() + 2);
  }
  return {};
}

/// Where the value of a key is from, by what --print-config shows; empty: the key is not there.
inline std::string source_of(const std::string& config, const std::string& key) {
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + " = ") || line.starts_with("# " + key + " = "))
      return line.substr(std::min(line.size(), line.rfind("# ") + 2));
  }
  return {};
}

/// A text as TOML has it between quotes.
inline std::string toml(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : c == '\t' ? std::string("\\t") : std::string(1, c);
  }
  return out + "\"";
}

/// A model that every copy of the sources has.
inline std::string bundled_file() { return MICA_SOURCE "/examples/models/fairy.gguf"; }

}  // namespace mica::test

#endif
