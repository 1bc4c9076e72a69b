// SPDX-License-Identifier: Apache-2.0
//
// What --help shows.
#pragma once

#include "verb_flags.hpp"

#include <string>

namespace mica::program {

/// All verbs, a line each.
[[nodiscard]] std::string help_text();

/// The flags of a verb by groups, each with its default and its variable.
[[nodiscard]] std::string help_text(const VerbText& verb, Flags& flags);

}  // namespace mica::program
