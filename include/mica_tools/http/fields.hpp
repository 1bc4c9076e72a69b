// SPDX-License-Identifier: Apache-2.0
//
// Reads the fields of a JSON object, each by name and type. What is neither read nor accepted by name is refused by
// name, so an option that the server does not know is never ignored. Not here: what fields mean.
#pragma once

#include "mica_tools/serve/refusal.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace mica::serve {

using Json = nlohmann::ordered_json;  // replies list their fields in the order in which they are written

/// The type of a JSON value as clients call it.
[[nodiscard]] inline std::string_view type_name(const Json& value) noexcept {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

/// Raises a Refusal about one field.
[[noreturn]] inline void refuse_field(const std::string& field, const std::string& message,
                                      Cause cause = Cause::invalid) {
  Refusal refusal(cause, join(field, ": ", message));
  refusal.field = field;
  throw refusal;
}

/// The fields of one object, which outlives this. A field that is null counts as missing. Each reading raises
/// Refusal (invalid) for another type, and for a number out of its range.
class Fields {
 public:
  /// path: of the object within the request, "" for the request itself. Raises for a value of another type.
  explicit Fields(const Json& object, std::string path = {}) : object_(object), path_(std::move(path)) {
    if (object_.is_object()) return;
    const std::string text = join("must be an object, not ", type_name(object_));
    if (path_.empty()) throw Refusal(Cause::invalid, "the body " + text);
    refuse_field(path_, text);
  }

  /// The place of a field within the request: "messages[0].role".
  [[nodiscard]] std::string place(std::string_view name) const {
    return path_.empty() ? std::string(name) : join(path_, ".", name);
  }
  /// The value as it is; null: it is missing.
  [[nodiscard]] const Json* find(std::string_view name) {
    known_.emplace(name);
    const auto at = object_.find(std::string(name));
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  /// The same, which must be there.
  [[nodiscard]] const Json& need(std::string_view name) {
    const Json* const value = find(name);
    if (value == nullptr) refuse_field(place(name), "is missing");
    return *value;
  }

  /// Empty where the field is missing or null. Raises Refusal for other types; so do those below.
  [[nodiscard]] std::optional<std::string> text(std::string_view name) {
    const Json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse_type(name, "a string", *value);
    return value->get<std::string>();
  }
  /// The same, which must be there.
  [[nodiscard]] std::string need_text(std::string_view name) {
    auto value = text(name);
    if (!value) refuse_field(place(name), "is missing");
    return *std::move(value);
  }
  [[nodiscard]] std::optional<bool> flag(std::string_view name) {
    const Json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) refuse_type(name, "a boolean", *value);
    return value->get<bool>();
  }
  /// A whole number in [min, max], which are between -2^53 and 2^53; 3.0 is one too.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t min,
                                                    std::int64_t max) {
    const Json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) refuse_type(name, "a whole number", *value);
    const double real = value->get<double>();
    if (std::floor(real) != real) refuse_type(name, "a whole number", *value);
    if (real < static_cast<double>(min) || real > static_cast<double>(max))
      refuse_range(name, *value, std::to_string(min), std::to_string(max));
    return static_cast<std::int64_t>(real);
  }
  /// A number in [min, max].
  [[nodiscard]] std::optional<double> number(std::string_view name, double min, double max) {
    const Json* const value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) refuse_type(name, "a number", *value);
    const double real = value->get<double>();
    if (!(real >= min && real <= max)) refuse_range(name, *value, Json(min).dump(), Json(max).dump());
    return real;
  }
  /// Accepts a field that has no effect here whatever its value is; docs/serve.md lists them.
  void accept(std::string_view name) { known_.emplace(name); }
  /// Raises Refusal (option) where a field is there and not one of the values that change nothing.
  template <class... Values>
  void allow_only(std::string_view name, const Values&... values) {
    const Json* const value = find(name);
    if (value == nullptr || ((*value == Json(values)) || ...)) return;
    refuse_field(place(name), "is not supported by this server", Cause::option);
  }
  /// Raises Refusal (invalid) for the first field that was not read.
  void refuse_others() const {
    for (const auto& [name, value] : object_.items()) {
      if (!known_.contains(name) && !value.is_null())
        refuse_field(place(escaped(name, 60)), "is not an option of this route");
    }
  }

  /// Raises Refusal (invalid) for a value of another type.
  [[noreturn]] void refuse_type(std::string_view name, std::string_view wanted, const Json& found) const {
    refuse_field(place(name), join("must be ", wanted, ", not ", type_name(found)));
  }

 private:
  [[noreturn]] void refuse_range(std::string_view name, const Json& found, const std::string& min,
                                 const std::string& max) const {
    refuse_field(place(name), join("is ", found.dump(), "; it must be from ", min, " to ", max));
  }

  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

/// A value as JSON text. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] inline std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mica::serve
