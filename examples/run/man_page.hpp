// SPDX-License-Identifier: Apache-2.0
//
// Manual pages in roff, with the macros of man(7), from the verbs and topics themselves.
#pragma once

#include "verbs.hpp"

#include <string>
#include <vector>

namespace mica::program {

/// mica.1: the verbs and the topics.
[[nodiscard]] std::string man_page(const std::vector<AnyVerb>& verbs);
/// mica-VERB.1
[[nodiscard]] std::string man_page(Verb& verb);

/// Writes man/man1/mica.1, man/man1/mica-VERB.1 of every verb, so that man -M finds them, and
/// completions/{mica.bash,_mica,mica.fish} below a
/// folder, for an installation. Raises ErrorCode::failed or ErrorCode::file where that fails.
void write_pages(const std::vector<AnyVerb>& verbs, const std::string& folder);

}  // namespace mica::program
