// SPDX-License-Identifier: Apache-2.0
//
// Reads what replies of streams write: server-sent events, and lines of JSON.
#pragma once

#include "fake_service.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

struct StreamEvent {
  std::string name;  // of the line "event: "
  serve::Json data;  // null: [DONE]
};

[[nodiscard]] inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

/// Comments are left out.
[[nodiscard]] inline std::vector<StreamEvent> events_of(std::string_view text) {
  std::vector<StreamEvent> out;
  std::string name;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("event: ")) name = line.substr(7);
    if (!line.starts_with("data: ")) continue;
    out.push_back({name, line == "data: [DONE]" ? serve::Json() : serve::Json::parse(line.substr(6))});
    name.clear();
  }
  return out;
}
[[nodiscard]] inline std::vector<std::string> names_of(const std::vector<StreamEvent>& events) {
  std::vector<std::string> out;
  for (const StreamEvent& event : events) out.push_back(event.name);
  return out;
}

}  // namespace mica::test
