// SPDX-License-Identifier: Apache-2.0
//
// A configuration file: values of flags by their long names, for all verbs at the top, for one below [verb].
// It is the part of TOML that such a file needs; a line that is none of these is an error with its number.
//
//   # a comment
//   top-k = 20                       a number, a truth value, or a word without blanks
//   [run]                            for mica run alone
//   system-prompt = "in \"quotes\""  escapes as in TOML; 'as it is'
//   reverse-prompt = ["a", "b"]      several values, over several lines too
#pragma once

#include "flags.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace mica::program {

class ConfigFile {
 public:
  static constexpr std::size_t max_bytes = 1 << 20;

  /// A value, or the beginning of a section, which has no key.
  struct Entry {
    std::string section;  // empty: the top
    std::string key;
    std::vector<std::string> values;
    bool is_list = false;
    std::size_t line = 0;
  };

  /// Reads a file. Raises ErrorCode::file when it is missing, too large or no regular file, and
  /// ErrorCode::usage for a line that is neither a section nor a value.
  explicit ConfigFile(std::string path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  /// "config.toml:3"
  [[nodiscard]] std::string place(const Entry& entry) const;

 private:
  std::string path_;
  std::vector<Entry> entries_;
};

/// All values of a verb's flags as a configuration file, each with its source; flags without a value, and the
/// words, are comments.
[[nodiscard]] std::string config_text(std::string_view verb, const Flags& flags);

}  // namespace mica::program
