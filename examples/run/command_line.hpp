// SPDX-License-Identifier: Apache-2.0
//
// Splits a command line: flags with their values, words, flags of other engines.
//
//   --flag VALUE   --flag=VALUE   -f VALUE   -n5   -qv   --switch   --switch=false   -- the rest are words
//
// The value of a flag is the next word, whatever it looks like.
#pragma once

#include "flags.hpp"
#include "report.hpp"

#include <span>
#include <string>
#include <vector>

namespace mica::program {

struct CommandLine {
  struct Value {
    Flag* flag;
    std::string text;
    std::string name;  // of the flag, as it was typed
  };
  std::vector<Value> values;       // in order
  std::vector<std::string> words;  // with the model, where it is the first one
  std::vector<std::string> notes;  // about flags that were ignored
};

/// Stores nothing yet. Raises ErrorCode::usage for a flag that is not known, refused, or lacks its value.
[[nodiscard]] CommandLine read_command_line(Flags& flags, std::span<const std::string> arguments);

/// The form of errors that `arguments` request, before they are parsed.
[[nodiscard]] ErrorForm error_form_of(std::span<char* const> arguments);

}  // namespace mica::program
