// SPDX-License-Identifier: Apache-2.0
//
// How an error is reported: a sentence on stderr, and for --json and --jsonl an object on stdout too.
#pragma once

#include <cstdint>
#include <string_view>

namespace mica::program {

/// The form of errors. `json` is one object on stdout: an error after the answer was printed adds none.
enum class ErrorForm : std::uint8_t { text, json, jsonl };

/// Writes "mica: " and the message on stderr, and with another form than text also
/// {"error":{"code":2,"type":"usage","message":"..."}} as a line on stdout. Returns the code.
int report_error(int code, std::string_view message, ErrorForm form, std::string_view before = "mica: ");

}  // namespace mica::program
