// SPDX-License-Identifier: Apache-2.0
//
// JSON files of a model's folder, with limits on size and depth before anything is built from them.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/file.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mica::convert {

/// Members in the order of their names.
using Json = nlohmann::json;

inline constexpr std::uint64_t max_json_bytes = std::uint64_t{256} << 20;  // vocabularies have reached 34 MB

/// A value that needs no memory to be destroyed: the library's own destructor takes some for each array and
/// object with members, and ends the program where it is refused.
class KeptJson {
 public:
  explicit KeptJson(Json value) noexcept : value_(std::move(value)) {}
  KeptJson(KeptJson&&) noexcept = default;
  KeptJson& operator=(KeptJson&&) noexcept = default;
  ~KeptJson() { remove_members(value_); }

  [[nodiscard]] const Json& operator*() const noexcept { return value_; }

 private:
  /// The innermost first; at most max_json_depth levels.
  static void remove_members(Json& value) noexcept {
    if (!value.is_structured()) return;
    for (Json& each : value) remove_members(each);
    value.clear();
  }

  Json value_;
};

/// The whole text of a file. Raises ErrorCode::file when there is none, limit when it is larger than allowed.
[[nodiscard]] inline std::string read_text(const std::string& path,
                                           std::uint64_t max_bytes = max_json_bytes) {
  const io::File file = io::File::open(path);
  MICA_CHECK(file.size() <= max_bytes, limit, path, ": ", file.size(), " bytes; allowed: ", max_bytes);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// Reads a JSON file. Raises what read_text and io::parse_json raise.
[[nodiscard]] inline Json read_json(const std::string& path) { return io::parse_json(read_text(path), path); }

/// The same; empty when there is no such file.
[[nodiscard]] inline std::optional<Json> read_json_if_present(const std::string& path) {
  if (!io::exists(path)) return std::nullopt;
  return read_json(path);
}

/// The member of an object; null when there is none, it is null, or this is no object.
[[nodiscard]] inline const Json* find_member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// The same for an object that may be null.
[[nodiscard]] inline const Json* find_member(const Json* object, std::string_view name) {
  return object == nullptr ? nullptr : find_member(*object, name);
}

/// A member that is a text; empty when there is none.
[[nodiscard]] inline std::string member_text(const Json& object, std::string_view name) {
  const Json* const found = find_member(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

/// A member that is true or false; empty when there is none.
[[nodiscard]] inline std::optional<bool> member_flag(const Json& object, std::string_view name) {
  const Json* const found = find_member(object, name);
  return found != nullptr && found->is_boolean() ? std::optional(found->get<bool>()) : std::nullopt;
}

}  // namespace mica::convert
