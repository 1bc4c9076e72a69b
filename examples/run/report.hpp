// SPDX-License-Identifier: Apache-2.0
//
// How an error is told: a sentence on stderr, and where JSON was asked for, an object on stdout too.
#pragma once

#include <string_view>

namespace mica::program {

/// "mica: " and the message on stderr; with `json` also {"error":{"code":2,"type":"usage","message":"..."}}
/// and an end of line on stdout. Answers the code.
int report_error(int code, std::string_view message, bool json, std::string_view before = "mica: ");

}  // namespace mica::program
