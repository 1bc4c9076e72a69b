// SPDX-License-Identifier: Apache-2.0
//
// Writes calls as the models of a family do, for conversations whose template cannot. Needs nlohmann/json.
#pragma once

#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/call_parts.hpp"
#include "mica_tools/chat/message.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mica::calls {

namespace detail {

using OrderedJson = nlohmann::ordered_json;

/// A value as Python writes it, in the subset that models use.
inline std::string python_text(const OrderedJson& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (!value.is_structured()) return value.dump();
  std::string out;
  for (const auto& [key, item] : value.items()) {
    out += out.empty() ? "" : ", ";
    out += (value.is_object() ? "'" + key + "': " : "") + python_text(item);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

/// A value in Notation::bare.
inline std::string bare_text(const OrderedJson& value, const std::string& quote) {
  if (value.is_string()) return quote + value.get<std::string>() + quote;
  if (!value.is_structured()) return value.dump();
  std::string out;
  for (const auto& [key, item] : value.items()) {
    out += out.empty() ? "" : ",";
    out += (value.is_object() ? key + ":" : "") + bare_text(item, quote);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

}  // namespace detail

/// Writes the calls of one answer. The format outlives it.
class CallWriter {
 public:
  explicit CallWriter(const CallFormat& format) : format_(format), parts_(call_parts(format)) {}

  /// All calls of an answer. Raises ErrorCode::usage for arguments that are no JSON.
  [[nodiscard]] std::string write(std::span<const text::ToolCall> calls) const {
    std::string out = write(parts_.opening, {}, 0);
    for (std::size_t i = 0; i < calls.size(); ++i)
      out += (i == 0 ? "" : write(parts_.separator, {}, i)) + write(parts_.call, calls[i], i);
    return out + write(parts_.closing, {}, 0);
  }

 private:
  using Json = detail::OrderedJson;
  using Kind = CallPart::Kind;

  [[nodiscard]] std::string write(std::span<const CallPart> parts, const text::ToolCall& call,
                                  std::size_t number) const {
    std::string out;
    for (const CallPart& part : parts) {
      if (part.kind == Kind::name) out += call.name;
      if (part.kind == Kind::id) out += call.id;
      if (part.kind == Kind::number) out += std::to_string(number);
      if (part.kind == Kind::arguments)
        out += arguments(io::parse_json<Json>(call.arguments, "the arguments of a call", ErrorCode::usage));
      out += part.text;
    }
    return out;
  }
  [[nodiscard]] std::string arguments(const Json& arguments) const {
    if (parts_.notation == Notation::json) return arguments.dump();
    std::string out;
    for (const auto& [key, value] : arguments.items()) {
      if (!out.empty() && !parts_.parameter_separator.empty()) out += parts_.parameter_separator.front().text;
      for (const CallPart& part : parts_.parameter) {
        if (part.kind == Kind::key) out += key;
        if (part.kind == Kind::type) out += type_of(value);
        if (part.kind == Kind::value) out += value_of(value);
        out += part.text;
      }
    }
    return out;
  }
  [[nodiscard]] std::string type_of(const Json& value) const {
    if (value.is_string()) return format_.parameter.string_type;
    return format_.parameter.other_type.empty() ? value.type_name() : format_.parameter.other_type;
  }
  [[nodiscard]] std::string value_of(const Json& value) const {
    if (parts_.notation == Notation::python) return detail::python_text(value);
    if (parts_.notation == Notation::bare) return detail::bare_text(value, parts_.quote);
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  const CallFormat& format_;
  CallParts parts_;
};

}  // namespace mica::calls
