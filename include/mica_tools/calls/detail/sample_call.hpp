// SPDX-License-Identifier: Apache-2.0
//
// Whether the parser can read a name in the notation of a format: it is given a call that has the name.
#pragma once

#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/call_parser.hpp"
#include "mica_tools/calls/call_parts.hpp"
#include "mica_tools/calls/detail/json_converter.hpp"
#include "mica_tools/calls/tool_types.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::calls::detail {

/// Writes a call of a tool with one parameter, or with none where the key is empty.
class SampleCall {
 public:
  explicit SampleCall(const CallFormat& format) : format_(format), parts_(call_parts(format)) {}

  /// Whether the parser finds this call and no other one.
  [[nodiscard]] bool is_read(const ToolTypes& tool, std::string_view key = {}) const {
    std::vector<CallEvent> events;
    CallParser parser(format_, std::span(&tool, 1));
    parser.take(write(tool, key), events);
    parser.finish(events);
    std::string names, arguments;
    for (const CallEvent& event : events) {
      if (event.kind == CallEvent::Kind::text) return false;
      if (event.kind == CallEvent::Kind::call_begin) names += event.name + "\n";
      if (event.kind == CallEvent::Kind::arguments) arguments += event.text;
    }
    std::string wanted = "{";
    if (!key.empty()) wanted += '"';
    for (const char c : key) append_string_byte(c, wanted);
    if (!key.empty()) wanted += is_text(tool, key) ? "\": \"0\"" : "\": 0";
    return names == tool.name + "\n" && arguments == wanted + "}";
  }

 private:
  using Kind = CallPart::Kind;

  [[nodiscard]] bool is_text(const ToolTypes& tool, std::string_view key) const {
    return parts_.notation == Notation::tags && (!format_.parameter.type_open.empty() || tool.is_string(key));
  }
  [[nodiscard]] std::string write(const ToolTypes& tool, std::string_view key) const {
    std::string out;
    for (const auto* const parts : {&parts_.opening, &parts_.call, &parts_.closing}) {
      for (const CallPart& part : *parts) {
        if (part.kind == Kind::name) out += tool.name;
        if (part.kind == Kind::id) out.append(std::max<std::size_t>(format_.id_bytes, 1), 'a');
        if (part.kind == Kind::number) out += '0';
        if (part.kind == Kind::arguments) out += arguments(key);
        out += part.text;
      }
    }
    return out;
  }
  [[nodiscard]] std::string arguments(std::string_view key) const {
    if (parts_.notation == Notation::json) return "{}";
    std::string out;
    for (const CallPart& part : parts_.parameter) {
      if (key.empty()) break;
      if (part.kind == Kind::key) out += key;
      if (part.kind == Kind::type) out += format_.parameter.string_type;
      if (part.kind == Kind::value) out += '0';
      out += part.text;
    }
    return out;
  }

  const CallFormat& format_;
  CallParts parts_;
};

}  // namespace mica::calls::detail
