// SPDX-License-Identifier: Apache-2.0
//
// Before the parser: spellings that people bring from other tools become ours, and flags that make no sense
// here are dropped with a line that says so.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mica::program {

/// A command line after the clean-up, and what to say about it.
struct Words {
  std::vector<std::string> words;
  std::vector<std::string> notes;
};

/// Rewrites -ctk and its like to long flags and takes out flags about hardware that mica does not use.
[[nodiscard]] Words clean(std::span<char* const> arguments);

}  // namespace mica::program
