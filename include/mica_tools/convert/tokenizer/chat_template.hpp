// SPDX-License-Identifier: Apache-2.0
//
// The chat templates of a folder: in a file of their own, or in tokenizer_config.json.
#pragma once

#include "mica/io/folder_file.hpp"
#include "mica_tools/convert/json.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace mica::convert {

/// Names and texts; the usual template has an empty name. Empty when there is none. Raises what
/// io::folder_file and read_json raise.
[[nodiscard]] inline std::vector<std::pair<std::string, std::string>> chat_templates(
    const std::string& folder, const Json& tokenizer_config) {
  std::error_code error;
  const std::string file = io::folder_file(folder, "chat_template.jinja");
  if (std::filesystem::exists(file, error)) return {{"", read_text(file)}};
  const auto own = read_json_if_present(io::folder_file(folder, "chat_template.json"));
  const Json* found = own ? find_member(*own, "chat_template") : nullptr;
  if (found == nullptr) found = find_member(tokenizer_config, "chat_template");
  if (found == nullptr) return {};
  if (found->is_string()) return {{"", found->get<std::string>()}};
  std::vector<std::pair<std::string, std::string>> out;
  for (const Json& each : *found) {
    const Json* const name = find_member(each, "name");
    const Json* const text = find_member(each, "template");
    if (name == nullptr || text == nullptr || !name->is_string() || !text->is_string()) continue;
    out.emplace_back(name->get<std::string>() == "default" ? "" : name->get<std::string>(),
                     text->get<std::string>());
  }
  return out;
}

}  // namespace mica::convert
