// SPDX-License-Identifier: Apache-2.0
//
// A chat template that renders conversations with words of its own, which show what it does with tools.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/calls/detail/learn_format.hpp"
#include "mica_tools/chat/chat_format.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls::detail {

/// How a template is given the calls of a message; templates differ in what they accept.
struct CallStyle {
  enum class Content : std::uint8_t { text, null, empty };  // before the calls
  int calls = 2;
  Content content = Content::text;
  bool arguments_are_text = false;  // as JSON in a text, else a mapping
  std::string_view id = {};         // behind the first letter of each id; empty: functions.NAME:NUMBER
};

/// Renders conversations with the sample's words. A rendering is empty where the template refuses it.
class SampleTemplate {
 public:
  explicit SampleTemplate(std::string_view source)
      : format_(text::ChatFormat::from_template(source, "", "")) {
    tools_.tools = list({map({{"type", "function"}, {"function", tool()}})});
  }

  /// The conversation with calls, or with an answer where style is null.
  [[nodiscard]] std::string render(const CallStyle* style) const {
    return rendered({user(), style == nullptr ? said(Sample::answer) : calling(*style)}, false, tools_);
  }
  /// The same with the results of the calls.
  [[nodiscard]] std::string render_results(const CallStyle* style) const {
    std::vector<Value> messages = {user(), style == nullptr ? said(Sample::answer) : calling(*style)};
    for (int i = 0; i < (style == nullptr ? 1 : style->calls); ++i)
      messages.push_back(map({{"role", "tool"},
                              {"content", Sample::result},
                              {"name", Sample::names[static_cast<std::size_t>(i)]},
                              {"tool_call_id", id(style == nullptr ? CallStyle{} : *style, i)}}));
    return rendered(std::move(messages), false, tools_);
  }
  /// The beginning of an answer to a question.
  [[nodiscard]] std::string prompt(bool has_tools = true) const {
    return rendered({user()}, true, has_tools ? tools_ : text::ChatVariables{});
  }

 private:
  using Value = jinja::Value;
  static Value list(std::vector<Value> items) { return Value::list(std::move(items)); }
  static Value map(Value::Entries entries) { return Value::mapping(std::move(entries)); }
  static Value user() { return map({{"role", "user"}, {"content", Sample::question}}); }
  static Value said(std::string_view text) { return map({{"role", "assistant"}, {"content", text}}); }

  /// A tool with another name, so that names are found in calls alone.
  static Value tool() {
    const auto typed = [](const char* type) { return map({{"type", type}, {"description", "A value."}}); };
    const Value properties = map({{Sample::key, typed("string")}, {Sample::number_key, typed("integer")}});
    const Value schema =
        map({{"type", "object"}, {"properties", properties}, {"required", list({Sample::key})}});
    return map({{"name", "other"}, {"description", "A tool."}, {"parameters", schema}});
  }
  static std::string id(const CallStyle& style, int i) {
    if (!style.id.empty()) return (i == 0 ? "a" : "b") + std::string(style.id);
    return "functions." + std::string(Sample::names[static_cast<std::size_t>(i)]) + ":" + std::to_string(i);
  }
  static Value calling(const CallStyle& style) {
    const Value mapping = map({{Sample::key, Sample::value}, {Sample::number_key, 90714}});
    std::vector<Value> calls;
    for (int i = 0; i < style.calls; ++i) {
      const std::string_view name = Sample::names[static_cast<std::size_t>(i)];
      const Value arguments = style.arguments_are_text ? Value(Sample::arguments) : mapping;
      const Value function = map({{"name", name}, {"arguments", arguments}});
      calls.push_back(map({{"id", id(style, i)}, {"type", "function"}, {"function", function}}));
    }
    const Value content = style.content == CallStyle::Content::text   ? Value(Sample::answer)
                          : style.content == CallStyle::Content::null ? Value(nullptr)
                                                                      : Value("");
    return map({{"role", "assistant"}, {"content", content}, {"tool_calls", list(std::move(calls))}});
  }
  [[nodiscard]] std::string rendered(std::vector<Value> messages, bool with_answer,
                                     const text::ChatVariables& variables) const {
    try {
      return format_.render(list(std::move(messages)), with_answer, variables);
    } catch (const Error&) {
      return {};
    }
  }

  text::ChatFormat format_;
  text::ChatVariables tools_;
};

}  // namespace mica::calls::detail
