// SPDX-License-Identifier: Apache-2.0
//
// The page of `mica serve`: the bytes of examples/run/serve/page.html, placed in the program by the
// assembler, and the policy under which a browser runs it. Not here: the route and its headers.
#pragma once

#include <string_view>

namespace mica::program {

/// The page as HTML in UTF-8.
std::string_view page() noexcept;

/// The Content-Security-Policy of a reply with the page. It allows the style and the script of this page by
/// their hashes, and connections to the same server.
std::string_view page_policy() noexcept;

}  // namespace mica::program
