// SPDX-License-Identifier: Apache-2.0
//
// Parses all JSON texts: limits on depth, and every refusal of the JSON library as an error that names
// the text, the key and the value. Takes nlohmann::json and nlohmann::ordered_json. Not here: what a document
// means.
//
// In the namespace io: a namespace json would be ambiguous beside `using nlohmann::json`.
#pragma once

#include "mica/base/assert.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mica::io {

inline constexpr int max_json_depth = 64;  // levels of arrays and objects; a deeper text is refused

namespace detail {

/// Receives the events of a refused text, and records the position and the value where it was refused.
template <class Json>
class JsonFault {
 public:
  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(typename Json::number_integer_t) { return true; }
  bool number_unsigned(typename Json::number_unsigned_t) { return true; }
  bool number_float(typename Json::number_float_t, const std::string&) { return true; }
  bool string(std::string&) { return true; }
  bool binary(typename Json::binary_t&) { return true; }
  bool start_array(std::size_t) { return true; }
  bool end_array() { return true; }
  bool start_object(std::size_t) {
    keys_.emplace_back();
    return true;
  }
  bool key(std::string& name) {
    keys_.back() = name;
    return true;
  }
  bool end_object() {
    keys_.pop_back();
    return true;
  }
  bool parse_error(std::size_t byte, const std::string& token, const typename Json::exception& error) {
    static constexpr int number_overflow = 406;  // of the library's documented numbers
    byte_ = byte;
    if (error.id == number_overflow) number_ = token;
    return false;
  }

  /// json: the text that was parsed.
  [[nodiscard]] std::string text(std::string_view json) const {
    if (number_.empty()) return join("is not JSON: something is wrong at ", place_in(json));
    std::string path;
    for (const std::string& key : keys_) path += (path.empty() ? "" : ".") + key;
    return join(path.empty() ? "" : join("key '", escaped(path), "' is "), escaped(number_, 40),
                ", which is beyond the largest number, 1.8e308");
  }

 private:
  /// "line 3, column 7", both from 1.
  [[nodiscard]] std::string place_in(std::string_view json) const {
    const std::string_view before = json.substr(0, byte_ == 0 ? 0 : byte_ - 1);
    const std::size_t begin = before.rfind('\n') + 1;  // 0 on the first line: npos + 1
    return join("line ", 1 + std::count(before.begin(), before.end(), '\n'), ", column ",
                before.size() - begin + 1);
  }

  std::vector<std::string> keys_;  // of the objects around the value
  std::size_t byte_ = 0;           // bytes read, including the wrong one
  std::string number_;
};

/// Whether f returns true for a character outside of texts; they come in order, until it does. One pass: callbacks of
/// the JSON library take time that grows with the square of an array's length.
template <class F>
[[nodiscard]] bool any_outside_texts(std::string_view json, F&& f) {
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\') ++i;
    if (c == '"') in_text = !in_text;
    if (!in_text && f(c)) return true;
  }
  return false;
}

/// Whether brackets outside of texts nest deeper than `max`.
[[nodiscard]] inline bool nests_deeper(std::string_view json, int max) noexcept {
  return any_outside_texts(json, [max, depth = 0](char c) mutable {
    if (c == ']' || c == '}') --depth;
    return (c == '[' || c == '{') && ++depth > max;
  });
}

}  // namespace detail

/// Parses a text; `name` stands for it in errors. Raises `code` when the text is no JSON, nests deeper than
/// max_json_depth or holds a number that no double holds; the library's own exceptions end here.
template <class Json = nlohmann::json>
[[nodiscard]] Json parse_json(std::string_view text, const std::string& name,
                              ErrorCode code = ErrorCode::file) {
  if (detail::nests_deeper(text, max_json_depth))
    raise(code, name, ": nests deeper than ", max_json_depth, " levels");
  try {
    return Json::parse(text);
  } catch (const typename Json::exception&) {
    detail::JsonFault<Json> fault;
    (void)Json::sax_parse(text, &fault);
    raise(code, name, ": ", fault.text(text));
  }
}

}  // namespace mica::io
