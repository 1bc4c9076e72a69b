// SPDX-License-Identifier: Apache-2.0
//
// The page of `mica serve`: the bytes of examples/run/serve/page.html, placed in the program by the assembler, and
// the policy under which a browser runs it. Not here: headers and the route of the page.
#pragma once

#include <string_view>

namespace mica::program {

/// The page as HTML in UTF-8.
std::string_view page() noexcept;

/// The Content-Security-Policy that the reply with the page must carry: it allows the style and the script of
/// this page by their hashes, and connections to the same server.
std::string_view page_policy() noexcept;

}  // namespace mica::program
