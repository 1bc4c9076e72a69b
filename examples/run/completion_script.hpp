// SPDX-License-Identifier: Apache-2.0
//
// What a shell completes behind `mica`, taken from the verbs themselves, and the scripts that do it. A script
// holds everything that it needs but for the models that are here: for these Tab runs `mica list --names`,
// which reads folders and asks no server.
#pragma once

#include "verbs.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

/// What a shell can do for a value or a word.
enum class Expected : std::uint8_t {
  nothing,
  text,
  names,
  file,
  folder,
  model,      ///< a file, or one of the names
  published,  ///< one of published_names()
  named,      ///< the same, or a file
  here,       ///< a model that was downloaded
  present,    ///< the same, or a file
};

struct ShellValue {
  Expected kind = Expected::nothing;  // nothing: of a switch
  std::string type;                   // as help has it
  std::vector<std::string> names;
};

struct ShellFlag {
  std::vector<std::string> names;  // with dashes
  std::string about;
  ShellValue value;
};

struct ShellVerb {
  std::string name, summary;
  std::vector<ShellFlag> flags;
  std::vector<ShellValue> words;  // after the verb, by place; a model is one of them
  bool repeats = false;           // the last word, any number of times
};

/// All verbs, with `help` and `version`, which the parser handles by itself.
[[nodiscard]] std::vector<ShellVerb> shell_verbs();

/// Short names of models that can be downloaded, which a script has once.
[[nodiscard]] std::vector<std::string> published_names();

/// The script of bash, zsh or fish. Raises ErrorCode::usage for another shell.
[[nodiscard]] std::string completion_script(std::string_view shell);
[[nodiscard]] const std::vector<std::string>& completion_shells();

/// The name that a shell looks for: "mica.bash", "_mica", "mica.fish".
[[nodiscard]] std::string completion_file(std::string_view shell);

// One file each
[[nodiscard]] std::string bash_completion(const std::vector<ShellVerb>& verbs);
[[nodiscard]] std::string zsh_completion(const std::vector<ShellVerb>& verbs);
[[nodiscard]] std::string fish_completion(const std::vector<ShellVerb>& verbs);

/// A text as a shell has it between single quotes; `quote` is a single quote in such a text.
[[nodiscard]] std::string single_quoted(std::string_view text, std::string_view quote = "'\\''");
/// Words with a text between them.
[[nodiscard]] std::string words_joined(const std::vector<std::string>& words, std::string_view between = " ");

}  // namespace mica::program
