// SPDX-License-Identifier: Apache-2.0
//
// A folder's config.json, read with ranges. Multimodal models have the numbers of their language part in
// `text_config`; those are looked up first, the outer ones second.
#pragma once

#include "mica_tools/convert/json.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert {

/// The numbers of a model. Getters raise ErrorCode::file for a value of another kind or out of range, naming
/// the key.
class Config {
 public:
  static constexpr std::uint64_t max_count = std::uint64_t{1} << 31;

  Config(Json json, std::string path) : json_(std::move(json)), path_(std::move(path)) {
    MICA_CHECK(json_.is_object(), file, path_, ": is not a JSON object");
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// The names by which the family may be known: that of the language part, then that of the whole.
  [[nodiscard]] std::vector<std::string> model_types() const {
    std::vector<std::string> out;
    const Json* const text = find_member(json_, "text_config");
    for (const Json* const each : {text, &json_}) {
      const Json* const type = find_member(each, "model_type");
      if (type != nullptr && type->is_string()) out.push_back(type->get<std::string>());
    }
    MICA_CHECK(!out.empty(), file, where("model_type"), " is missing");
    return out;
  }

  /// Null when the key is missing or null.
  [[nodiscard]] const Json* find(std::string_view key) const {
    const Json* const inner = find_member(find_member(json_, "text_config"), key);
    return inner != nullptr ? inner : find_member(json_, key);
  }
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  /// A whole number from 0 to max_count; required.
  [[nodiscard]] std::uint64_t count(std::string_view key) const { return as_count(required(key), key); }
  [[nodiscard]] std::uint64_t count_or(std::string_view key, std::uint64_t otherwise) const {
    const Json* const found = find(key);
    return found == nullptr ? otherwise : as_count(*found, key);
  }
  /// One for each of n layers, given as one number or a list; required.
  [[nodiscard]] std::vector<std::uint64_t> counts(std::string_view key, std::size_t n) const {
    if (required(key).is_number()) return std::vector<std::uint64_t>(n, count(key));
    std::vector<std::uint64_t> out;
    for (const Json& each : *list(key, n)) out.push_back(as_count(each, key));
    return out;
  }

  /// A finite number; required.
  [[nodiscard]] double real(std::string_view key) const { return as_real(required(key), key); }
  [[nodiscard]] double real_or(std::string_view key, double otherwise) const {
    const Json* const found = find(key);
    return found == nullptr ? otherwise : as_real(*found, key);
  }

  [[nodiscard]] bool flag_or(std::string_view key, bool otherwise) const {
    const Json* const found = find(key);
    if (found == nullptr) return otherwise;
    MICA_CHECK(found->is_boolean(), file, where(key), " is no bool");
    return found->get<bool>();
  }
  [[nodiscard]] std::string text_or(std::string_view key, std::string_view otherwise) const {
    const Json* const found = find(key);
    if (found == nullptr) return std::string(otherwise);
    MICA_CHECK(found->is_string(), file, where(key), " is no text");
    return found->get<std::string>();
  }
  /// A list of n texts; empty when the key is missing.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::size_t n) const {
    std::vector<std::string> out;
    const Json* const found = list(key, n);
    if (found == nullptr) return out;
    for (const Json& each : *found) {
      MICA_CHECK(each.is_string(), file, where(key), " is no list of texts");
      out.push_back(each.get<std::string>());
    }
    return out;
  }
  /// A list of n finite numbers; empty when the key is missing.
  [[nodiscard]] std::vector<double> reals(std::string_view key, std::size_t n) const {
    std::vector<double> out;
    const Json* const found = list(key, n);
    if (found == nullptr) return out;
    for (const Json& each : *found) out.push_back(as_real(each, key));
    return out;
  }

  // For values inside of other values; `key` names them in errors.
  [[nodiscard]] std::uint64_t as_count(const Json& value, std::string_view key) const {
    const bool whole =
        value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
    MICA_CHECK(whole && value.get<std::uint64_t>() <= max_count, file, where(key), " is ", shown(value),
               "; allowed: whole numbers from 0 to ", max_count);
    return value.get<std::uint64_t>();
  }
  [[nodiscard]] double as_real(const Json& value, std::string_view key) const {
    MICA_CHECK(value.is_number() && std::isfinite(value.get<double>()), file, where(key), " is ",
               shown(value), "; needed: a finite number");
    return value.get<double>();
  }
  [[nodiscard]] std::string where(std::string_view key) const { return join(path_, ": key '", key, "'"); }

 private:
  [[nodiscard]] const Json& required(std::string_view key) const {
    const Json* const found = find(key);
    MICA_CHECK(found != nullptr, file, where(key), " is missing");
    return *found;
  }
  [[nodiscard]] const Json* list(std::string_view key, std::size_t n) const {
    const Json* const found = find(key);
    if (found == nullptr) return nullptr;
    MICA_CHECK(found->is_array() && found->size() == n, file, where(key), " is ", shown(*found),
               "; needed: a list of ", n);
    return found;
  }
  [[nodiscard]] static std::string shown(const Json& value) {
    return escaped(value.dump(-1, ' ', false, Json::error_handler_t::replace), 40);
  }

  Json json_;
  std::string path_;
};

}  // namespace mica::convert
