// SPDX-License-Identifier: Apache-2.0
//
// The texts of --help.
#pragma once

#include "verbs.hpp"

#include <string>
#include <vector>

namespace mica::program {

/// All verbs, a line each.
[[nodiscard]] std::string help_text(const std::vector<AnyVerb>& verbs);

/// The flags of a verb by groups, each with its default and its variable. The verb still has its defaults.
[[nodiscard]] std::string help_text(Verb& verb);

}  // namespace mica::program
