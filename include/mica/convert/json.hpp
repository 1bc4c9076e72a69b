// SPDX-License-Identifier: Apache-2.0
//
// JSON files of a model's folder, with limits on size and depth before anything is built from them.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/file.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace mica::convert {

using Json = nlohmann::json;

inline constexpr std::uint64_t max_json_bytes = std::uint64_t{256} << 20;  // vocabularies have reached 34 MB
inline constexpr int max_json_depth = 64;

/// The whole text of a file. Raises ErrorCode::file when there is none, limit when it is larger than allowed.
[[nodiscard]] inline std::string read_text(const std::string& path,
                                           std::uint64_t most_bytes = max_json_bytes) {
  const io::File file = io::File::open(path);
  MICA_CHECK(file.size() <= most_bytes, limit, path, ": ", file.size(), " bytes; allowed: ", most_bytes);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// Parses a text; `name` stands for it in errors. Raises ErrorCode::file when it is not JSON or nests too deep.
[[nodiscard]] inline Json parse_json(std::string_view text, const std::string& name) {
  const auto shallow = [&](int depth, Json::parse_event_t, const Json&) {
    MICA_CHECK(depth <= max_json_depth, file, name, ": nests deeper than ", max_json_depth, " levels");
    return true;
  };
  try {
    return Json::parse(text, shallow);
  } catch (const Json::parse_error& error) {
    raise(ErrorCode::file, name, ": is not JSON: something is wrong before byte ", error.byte);
  }
}

/// Reads a JSON file. Raises what read_text and parse_json raise.
[[nodiscard]] inline Json read_json(const std::string& path) { return parse_json(read_text(path), path); }

/// The same; empty when there is no such file.
[[nodiscard]] inline std::optional<Json> read_json_if_present(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return read_json(path);
}

/// The member of an object; null when there is none, it is null, or this is no object.
[[nodiscard]] inline const Json* find_member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace mica::convert
