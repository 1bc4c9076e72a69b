// SPDX-License-Identifier: Apache-2.0
//
// Answers with tool calls for tests, parsed in pieces of any size.
#pragma once

#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/call_parser.hpp"
#include "mica_tools/calls/call_writer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test {

using calls::CallEvent;
using calls::CallFormat;
using calls::Notation;
using calls::ToolTypes;
using Json = nlohmann::ordered_json;

struct Call {
  std::string name;
  std::string arguments;  // as they were given
  std::string id = {};
  bool is_complete = true;

  bool operator==(const Call&) const = default;
};

/// The events of an answer, joined.
struct Parsed {
  std::string thoughts, text;
  std::vector<Call> calls;
  std::string order;  // one letter for each run of events of one kind
  bool is_ended = false;

  bool operator==(const Parsed&) const = default;
};

inline Parsed joined(const std::vector<CallEvent>& events) {
  using Kind = CallEvent::Kind;
  constexpr std::string_view letters = "tabcde";  // thoughts, text, begin, arguments, call_end, end
  Parsed out;
  for (const CallEvent& event : events) {
    const char letter = letters[static_cast<std::size_t>(event.kind)];
    if (out.order.empty() || out.order.back() != letter) out.order += letter;
    if (event.kind == Kind::thoughts) out.thoughts += event.text;
    if (event.kind == Kind::text) out.text += event.text;
    if (event.kind == Kind::call_begin) out.calls.push_back({event.name, "", event.id, false});
    if (event.kind == Kind::arguments) out.calls.at(event.index).arguments += event.text;
    if (event.kind == Kind::call_end) {
      out.calls.at(event.index).is_complete = event.is_complete;
      out.calls.at(event.index).id += event.id;
    }
    out.is_ended = event.kind == Kind::end;
  }
  return out;
}

/// Parses pieces: the first one has `first` bytes, the others `step`.
inline Parsed parsed(const CallFormat& format, const std::vector<ToolTypes>& tools, std::string_view answer,
                     std::string_view prompt = {}, std::size_t first = std::string_view::npos,
                     std::size_t step = std::string_view::npos) {
  calls::CallParser parser(format, tools, prompt);
  std::vector<CallEvent> all;
  for (std::size_t size = first; !answer.empty(); size = step) {
    std::vector<CallEvent> events;
    parser.take(answer.substr(0, size), events);
    all.insert(all.end(), events.begin(), events.end());
    answer.remove_prefix(std::min(size, answer.size()));
  }
  parser.finish(all);
  return joined(all);
}

/// A question, and an answer with calls: names and arguments. as_text: the arguments are a text, and there is
/// no content.
inline Json conversation(const std::vector<std::pair<std::string, Json>>& calls, bool as_text) {
  Json out =
      Json::parse(R"([{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": ""}])");
  if (as_text) out[1]["content"] = nullptr;
  for (const auto& [name, arguments] : calls) {
    const std::string id = "call0000" + std::to_string(1 + out[1]["tool_calls"].size());
    out[1]["tool_calls"].push_back(
        {{"id", id},
         {"type", "function"},
         {"function", {{"name", name}, {"arguments", as_text ? Json(arguments.dump()) : arguments}}}});
  }
  return out;
}

/// Calls as a model of the family writes them.
inline std::string written_calls(const CallFormat& format, const std::vector<Call>& calls) {
  std::vector<text::ToolCall> all;
  for (const Call& call : calls) all.push_back({call.id, call.name, call.arguments});
  return calls::CallWriter(format).write(all);
}

}  // namespace mica::test
