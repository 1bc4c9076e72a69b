// SPDX-License-Identifier: Apache-2.0
//
// How the values of a schema are written where a text is not JSON: in the calls of some models. Brackets,
// commas and colons are those of JSON.
#pragma once

#include <string>

namespace mica::schema {

/// The parts of values that notations write differently; as it is, those of JSON.
struct Spelling {
  std::string null = "null", no = "false", yes = "true";
  std::string quote = "\"";        // before a string and behind it
  bool has_escapes = true;         // in strings, as JSON has them; false: each character is as it is
  bool has_single_quotes = false;  // strings may stand between ' too, unless a schema describes their text
  bool has_bare_names = false;     // names of members have no quotes, and consist of is_bare_name_byte()
  std::string excluded = {};       // a text that no string contains where it is written; empty: none
};

/// Whether a name without quotes may have this byte.
[[nodiscard]] constexpr bool is_bare_name_byte(unsigned char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == '/' || c >= 0x80;
}

}  // namespace mica::schema
