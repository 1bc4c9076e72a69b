// SPDX-License-Identifier: Apache-2.0
//
// Names of tools, and which of their parameters are no strings. Formats with Notation::tags write strings
// without quotes, so that only the schema distinguishes 3 from "3".
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace mica::calls {

/// One tool.
struct ToolTypes {
  std::string name;
  std::vector<std::string> json_parameters = {};  // whose values are JSON; all others are strings

  [[nodiscard]] bool is_string(std::string_view parameter) const {
    return std::find(json_parameters.begin(), json_parameters.end(), parameter) == json_parameters.end();
  }
};

}  // namespace mica::calls
