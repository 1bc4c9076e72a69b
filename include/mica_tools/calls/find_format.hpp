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
#include "mica_tools/calls/detail/sample_template.hpp"
#include "mica_tools/calls/known_formats.hpp"
#include "mica_tools/calls/template_calls.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls {

namespace detail {

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

/// The first style for which f(style, rendering) is true. Styles that templates refuse more often come first.
template <class F>
std::optional<CallStyle> first_style(const SampleTemplate& sample,
                                     std::initializer_list<CallStyle::Content> contents, F&& f) {
  for (const int calls : {2, 1})
    for (const std::string_view id : {"mica_call_1", "micacall", ""})
      for (const bool is_text : {false, true})
        for (const CallStyle::Content content : contents) {
          const CallStyle style{calls, content, is_text, id};
          if (f(style, sample.render(&style))) return style;
        }
  return std::nullopt;
}

/// Whether a rendering has calls as Python prints them, which is no format.
inline bool is_printed(std::string_view rendered) {
  return rendered.find("'function': {") != std::string_view::npos;
}

/// The first format that a rendering has.
inline std::optional<CallFormat> learn_from(const SampleTemplate& sample, const ThoughtMarks& thoughts) {
  const std::string plain = sample.render(nullptr);
  std::optional<CallFormat> format;
  const auto has_format = [&](const CallStyle& style, const std::string& rendered) {
    if (is_printed(rendered)) return false;
    format = learn_format(rendered, plain, thoughts);
    if (!format || !finds_sample(*format, rendered)) return false;
    if (style.id == "micacall") format->id_bytes = style.id.size() + 1;
    return true;
  };
  using Content = CallStyle::Content;
  return first_style(sample, {Content::text, Content::null}, has_format) ? format : std::nullopt;
}

/// Whether the calls are in a rendering, with arguments that are no printed mapping.
inline bool has_sample(std::string_view rendered) {
  const auto has = [rendered](std::string_view text) {
    return rendered.find(text) != std::string_view::npos;
  };
  return has(Sample::names[0]) && has(Sample::value) && !has("'" + std::string(Sample::key) + "'") &&
         !is_printed(rendered);
}

/// What the template does besides the format of answers.
inline void find_abilities(const SampleTemplate& sample, TemplateCalls& out) {
  const auto has_key = [](const std::string& text) { return text.find(Sample::key) != std::string::npos; };
  out.lists_tools = has_key(sample.prompt());
  using Content = CallStyle::Content;
  const auto has = [](const CallStyle&, const std::string& rendered) { return has_sample(rendered); };
  const auto reads = [&](const CallStyle&, const std::string& rendered) {
    return has_sample(rendered) && finds_sample(out.format, rendered);
  };
  auto style = first_style(sample, {Content::null, Content::empty}, reads);
  if (!style) style = first_style(sample, {Content::null, Content::empty}, has);
  out.writes_calls = style.has_value();
  if (style) {
    CallStyle with_text = *style;
    with_text.content = Content::text;
    const std::string rendered = sample.render(&with_text);
    const bool has_both = has_sample(rendered) && rendered.find(Sample::answer) != std::string::npos;
    out.values = {style->arguments_are_text, style->content == Content::null, !has_both};
  }
  out.writes_results =
      sample.render_results(style ? &*style : nullptr).find(Sample::result) != std::string::npos;
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

/// What a chat template does with tools. If it renders no calls, the format is the one whose marks are in its
/// text (known_formats.hpp), or else the format of Hermes and Qwen: JSON objects between <tool_call> and
/// </tool_call>. Never raises because of the template. Renders it fewer than 80 times.
[[nodiscard]] inline TemplateCalls find_template_calls(std::string_view chat_template) {
  TemplateCalls out{format_of_marks(chat_template)};
  CallFormat& format = out.format;
  if (format.thoughts.open == "<think>") format.thoughts = detail::thoughts_of(chat_template);
  const auto thinks = [&] {
    return chat_template.find(detail::trimmed(format.thoughts.open)) != chat_template.npos;
  };
  format.may_think = format.has_channels || thinks();
  try {
    const detail::SampleTemplate sample(chat_template);
    if (!format.has_channels) {  // whose headers have their fields in any order
      if (auto learned = detail::learn_from(sample, format.thoughts)) {
        detail::add_known(*learned, format);
        format = *std::move(learned);
        format.may_think = thinks();
      }
      const std::string prompt = sample.prompt();
      if (!prompt.ends_with(format.prompt_end)) format.prompt_end.clear();
      format.prompt_opens_thoughts = detail::trimmed(prompt).ends_with(detail::trimmed(format.thoughts.open));
    }
    detail::find_abilities(sample, out);
  } catch (const Error&) {  // a template that cannot be parsed
  }
  return out;
}

/// The format alone.
[[nodiscard]] inline CallFormat find_call_format(std::string_view chat_template) {
  return find_template_calls(chat_template).format;
}

}  // namespace mica::calls
