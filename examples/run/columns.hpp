// SPDX-License-Identifier: Apache-2.0
//
// Text in columns.
#pragma once

#include <string>

namespace mica::program {

/// At the left of a column; longer text stays whole.
[[nodiscard]] inline std::string at_left(std::string text, std::size_t width) {
  return text.append(text.size() < width ? width - text.size() : 0, ' ');
}
[[nodiscard]] inline std::string at_right(std::string text, std::size_t width) {
  return text.insert(0, text.size() < width ? width - text.size() : 0, ' ');
}

}  // namespace mica::program
