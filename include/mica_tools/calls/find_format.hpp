// SPDX-License-Identifier: Apache-2.0
//
// Finds the format in which a chat template writes tool calls: the template is rendered with two calls of
// known names, and the text around them is the format. It counts only if a CallParser finds the same calls in
// the rendered text. Includes the template engine, which takes seconds to compile: include it in one .cpp.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/call_parser.hpp"
#include "mica_tools/calls/detail/learn_format.hpp"
#include "mica_tools/calls/known_formats.hpp"
#include "mica_tools/chat/chat_format.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls {

namespace detail {

/// How a template is given the calls of a message; templates differ in what they accept.
struct CallStyle {
  int calls = 2;
  bool has_content = true;          // text before the calls, else none
  bool arguments_are_text = false;  // as JSON in a text, else a mapping
  std::string_view id = {};         // behind the first letter of each id; empty: functions.NAME:NUMBER
};

/// Renders conversations with the sample's words.
class SampleTemplate {
 public:
  explicit SampleTemplate(std::string_view source)
      : format_(text::ChatFormat::from_template(source, "", "")) {
    variables_.tools = list({map({{"type", "function"}, {"function", tool()}})});
  }

  /// The conversation with calls, or with an answer where style is null; empty if the template refuses it.
  [[nodiscard]] std::string render(const CallStyle* style) const {
    const auto answer =
        style == nullptr ? map({{"role", "assistant"}, {"content", Sample::answer}}) : calling(*style);
    try {
      return format_.render(list({map({{"role", "user"}, {"content", Sample::question}}), answer}), false,
                            variables_);
    } catch (const Error&) {
      return {};
    }
  }
  /// What a prompt ends with.
  [[nodiscard]] std::string prompt() const {
    try {
      return format_.render(list({map({{"role", "user"}, {"content", Sample::question}})}), true, variables_);
    } catch (const Error&) {
      return {};
    }
  }

 private:
  using Value = jinja::Value;
  static Value list(std::vector<Value> items) { return Value::list(std::move(items)); }
  static Value map(Value::Entries entries) { return Value::mapping(std::move(entries)); }

  /// A tool with another name, so that names are found in calls alone.
  static Value tool() {
    const auto typed = [](const char* type) { return map({{"type", type}, {"description", "A value."}}); };
    const Value properties = map({{Sample::key, typed("string")}, {Sample::number_key, typed("integer")}});
    const Value schema =
        map({{"type", "object"}, {"properties", properties}, {"required", list({Sample::key})}});
    return map({{"name", "other"}, {"description", "A tool."}, {"parameters", schema}});
  }
  static Value calling(const CallStyle& style) {
    const Value mapping = map({{Sample::key, Sample::value}, {Sample::number_key, 90714}});
    std::vector<Value> calls;
    for (int i = 0; i < style.calls; ++i) {
      const std::string name(Sample::names[static_cast<std::size_t>(i)]);
      const std::string kimi = "functions." + name + ":" + std::to_string(i);
      const Value arguments = style.arguments_are_text ? Value(Sample::arguments) : mapping;
      const Value function = map({{"name", name}, {"arguments", arguments}});
      const std::string id = style.id.empty() ? kimi : (i == 0 ? "a" : "b") + std::string(style.id);
      calls.push_back(map({{"id", id}, {"type", "function"}, {"function", function}}));
    }
    return map({{"role", "assistant"},
                {"content", style.has_content ? Value(Sample::answer) : Value(nullptr)},
                {"tool_calls", list(std::move(calls))}});
  }

  text::ChatFormat format_;
  text::ChatVariables variables_;
};

/// Whether a parser finds the sample's calls, and no text but the end of the turn.
inline bool finds_sample(const CallFormat& format, std::string_view rendered) {
  const std::vector<ToolTypes> tools = {{std::string(Sample::names[0]), {std::string(Sample::number_key)}},
                                        {std::string(Sample::names[1]), {std::string(Sample::number_key)}}};
  const std::string open = format.list_open + format.call_open;
  const std::size_t begin =
      rendered.find(format.keys.name.empty() ? open + std::string(Sample::names[0]) : open + "{",
                    rendered.rfind(Sample::question));
  if (begin == std::string_view::npos) return false;
  std::vector<CallEvent> events;
  CallParser parser(format, tools);
  parser.take(rendered.substr(begin), events);
  parser.finish(events);
  std::string found, text;
  for (const CallEvent& event : events) {
    if (event.kind == CallEvent::Kind::text) text += event.text;
    if (event.kind != CallEvent::Kind::text)
      found += event.name + event.text + (event.is_complete ? ";" : "");
  }
  std::string wanted;
  for (const std::string_view name : Sample::names) {
    if (name == Sample::names[0] || format.is_parallel) (wanted += name).append(Sample::arguments) += ";";
  }
  return found == wanted && trimmed(text) == format.turn_end;
}

/// The first format that a rendering has, with fewer and fewer demands on the template.
inline std::optional<CallFormat> learn_from(const SampleTemplate& sample, const ThoughtMarks& thoughts) {
  const std::string plain = sample.render(nullptr);
  for (const int calls : {2, 1})
    for (const std::string_view id : {"mica_call_1", "micacall", ""})
      for (const bool is_text : {false, true})
        for (const bool has_content : {true, false}) {
          const CallStyle style{calls, has_content, is_text, id};
          const std::string rendered = sample.render(&style);
          auto format = learn_format(rendered, plain, thoughts);
          if (!format || !finds_sample(*format, rendered)) continue;
          if (id == "micacall") format->id_bytes = id.size() + 1;
          return format;
        }
  return std::nullopt;
}

/// The marks of thoughts that are in a template; <think> where there are none.
inline ThoughtMarks thoughts_of(std::string_view source) {
  static constexpr std::string_view marks[][2] = {{"<|START_THINKING|>", "<|END_THINKING|>"},
                                                  {"<|inner_prefix|>", "<|inner_suffix|>"},
                                                  {"[THINK]", "[/THINK]"},
                                                  {"<|channel>thought\n", "<channel|>"},
                                                  {"<seed:think>", "</seed:think>"},
                                                  {"<think>", "</think>"},
                                                  {"<thinking>", "</thinking>"}};
  for (const auto& [open, close] : marks) {
    if (source.find(trimmed(open)) != std::string_view::npos && source.find(close) != std::string_view::npos)
      return {std::string(open), std::string(close)};
  }
  return {"<think>", "</think>"};
}

/// Adds to a format that was read from a template what only the table has.
inline void add_known(CallFormat& format, const CallFormat& known) {
  const std::string_view end = format.turn_end;
  format.turn_end = end.empty() || unit_size(end) == 1 ? "" : end.substr(0, unit_size(end));
  const std::string marks = format.list_open + format.call_open,
                    known_marks = known.list_open + known.call_open;
  if (trimmed(marks) == trimmed(known_marks)) format.family = known.family;
  if (format.call_open.ends_with(known.also_opens)) format.also_opens = known.also_opens;
  format.thoughts = known.thoughts;
  format.around_text = known.around_text;
  format.prompt_end = known.prompt_end;
}

}  // namespace detail

/// The format of a chat template. A template that renders no calls has the format whose marks are in its text
/// (known_formats.hpp). If there are none, calls are JSON objects between <tool_call> and </tool_call>, as in
/// Hermes and Qwen. Never raises because of the template. Renders it up to 26 times.
[[nodiscard]] inline CallFormat find_call_format(std::string_view chat_template) {
  CallFormat out = format_of_marks(chat_template);
  if (out.has_channels) return out;  // its headers have their fields in any order
  if (out.thoughts.open == "<think>") out.thoughts = detail::thoughts_of(chat_template);
  try {
    const detail::SampleTemplate sample(chat_template);
    if (auto learned = detail::learn_from(sample, out.thoughts)) {
      detail::add_known(*learned, out);
      out = *std::move(learned);
    }
    const std::string prompt = sample.prompt();
    if (!prompt.ends_with(out.prompt_end)) out.prompt_end.clear();
    out.prompt_opens_thoughts = detail::trimmed(prompt).ends_with(detail::trimmed(out.thoughts.open));
  } catch (const Error&) {  // a template that cannot be parsed
  }
  return out;
}

}  // namespace mica::calls
