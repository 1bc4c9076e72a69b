// SPDX-License-Identifier: Apache-2.0
//
// The language of the answers of a model that may call tools, for constraint::Grammar. A CallParser of the
// same format finds the same calls in a text that it accepts: each names a tool, and its arguments meet the
// schema of that tool.
//
//   thoughts?  text  ( opening  call (separator call)*  closing )?
//   thoughts?  call                                                 formats without a mark, such as Llama 3
//
// - Free text never contains the opening mark, so that a mark always begins a call. In formats without a
// mark,
//   text does not begin like a call.
// - Nothing follows the calls but CallFormat::turn_end.
// - White space within calls is that of call_parts().
// - Limit: text between tags does not contain the closing tag.
#pragma once

#include "mica/base/error.hpp"
#include "mica/constraint/rules.hpp"
#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/call_language_options.hpp"
#include "mica_tools/calls/call_parts.hpp"
#include "mica_tools/calls/detail/call_arguments.hpp"
#include "mica_tools/calls/detail/call_texts.hpp"
#include "mica_tools/calls/tools_of_json.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls {

namespace detail {

/// Makes the language of one request. Format and options outlive it.
class CallLanguage {
 public:
  CallLanguage(const CallFormat& format, std::vector<Tool> tools, std::vector<ToolTypes> types,
               const CallLanguageOptions& options)
      : format_(format),
        options_(options),
        out_{std::make_unique<Expressions>(options.schema.max_expression_bytes),
             std::make_unique<constraint::FixedRules>()},
        x_(*out_.expressions),
        texts_(format, options, x_) {
    for (const Tool& tool : tools) names_.push_back(tool.name);
    if (!has_schema()) text_ = texts_.text(!tools.empty());
    if (options.choice == ToolChoice::none || tools.empty()) {
      if (has_schema()) out_.rules = rules_of_text();
      return;
    }
    CallArguments arguments(format, options, tools, types, texts_, x_);
    for (std::size_t i = 0; i < tools.size(); ++i) arguments_.push_back(arguments.of(i));
    if (has_schema()) text_ = arguments.text();
    out_.rules = arguments.take_rules();
    calls_ = calls(format);
  }

  [[nodiscard]] constraint::Language make() {
    out_.start = format_.has_channels ? channels() : answer();
    return std::move(out_);
  }

 private:
  using Kind = CallPart::Kind;

  [[nodiscard]] bool is_automatic() const noexcept { return options_.choice == ToolChoice::automatic; }
  [[nodiscard]] bool may_call() const noexcept { return !arguments_.empty(); }
  [[nodiscard]] bool may_end_without_call() const noexcept {
    return is_automatic() || options_.choice == ToolChoice::none;
  }
  [[nodiscard]] bool has_schema() const noexcept { return !options_.text_schema.empty(); }
  [[nodiscard]] bool text_first() const noexcept {
    return options_.text_first.value_or(is_automatic() && !has_schema());
  }

  /// Sets the text to that of a schema without tools.
  [[nodiscard]] std::unique_ptr<constraint::Rules> rules_of_text() {
    auto rules = std::make_unique<schema::JsonRules>(options_.text_schema, x_, options_.schema,
                                                     schema::Spelling{.excluded = options_.stop});
    text_ = rules->spaced(rules->texts(rules->document().root()));
    return rules;
  }
  /// The text of an answer, perhaps between its marks. is_behind: thoughts come before it.
  [[nodiscard]] ExprId text(bool is_behind) {
    if (!has_schema()) return text_;
    const std::vector<std::string>& marks = format_.around_text;
    ExprId out = text_;
    if (marks.size() == 2) out = x_.alt(out, x_.cat({texts_.mark(marks[0]), out, texts_.mark(marks[1])}));
    return is_behind ? x_.cat(texts_.spaces(), out) : out;
  }

  /// An answer of messages in channels.
  [[nodiscard]] ExprId channels() {
    std::vector<ExprId> before, last;
    if (options_.thoughts) before.push_back(texts_.message("analysis"));
    const bool no_calls = options_.choice == ToolChoice::none && !has_schema();
    if (text_first() || no_calls) before.push_back(texts_.message("commentary"));
    if (may_end_without_call())
      last.push_back(has_schema() ? x_.cat(texts_.mark("<|channel|>final<|message|>"), text_)
                                  : texts_.message("final"));
    if (may_call()) last.push_back(is_automatic() ? channel_call() : calls_);
    const ExprId next = texts_.mark("<|end|><|start|>assistant");
    return x_.cat(x_.repeat(x_.cat(x_.alt(std::move(before)), next), 0), x_.alt(std::move(last)));
  }
  /// A call with its header in any of the ways in which models write it: the tool or the channel first.
  [[nodiscard]] ExprId channel_call() {
    const ExprId type = x_.alt({texts_.mark(" <|constrain|>json"), x_.literal(" json"), ExprId::empty});
    std::vector<constraint::Branch> behind_channel, before_channel;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const ExprId then = x_.cat(
          {type, texts_.mark("<|message|>"), arguments_[i], texts_.mark(format_.call_close), turn_end()});
      behind_channel.push_back({names_[i], then});
      before_channel.push_back({names_[i], x_.cat(texts_.mark("<|channel|>commentary"), then)});
    }
    const std::string to = " to=functions.";
    return x_.alt(x_.cat(texts_.mark("<|channel|>commentary" + to), x_.table(std::move(behind_channel))),
                  x_.cat(x_.literal(to), x_.table(std::move(before_channel))));
  }

  /// An answer that perhaps begins with thoughts.
  [[nodiscard]] ExprId answer() {
    const std::string_view end = trimmed(options_.prompt);
    const ThoughtMarks& thoughts = format_.thoughts;
    const auto ends_with = [end](std::string_view mark) { return !mark.empty() && end.ends_with(mark); };
    if (ends_with(format_.prompt_end)) return begun_answer();
    const bool is_open = ends_with(trimmed(thoughts.open));
    const ExprId plain = without_thoughts(false);
    const bool may_think = options_.thoughts && format_.may_think && !thoughts.open.empty();
    if (!is_open && !may_think) return plain;
    const ExprId thinking = x_.cat(texts_.thoughts(), without_thoughts(true));
    return is_open ? thinking : x_.alt(plain, x_.cat(texts_.mark(thoughts.open), thinking));
  }
  /// An answer to a prompt that ends with the first text of a call, or of a mark around text.
  [[nodiscard]] ExprId begun_answer() {
    CallFormat first = format_;
    if (first.call_open.starts_with(format_.prompt_end)) first.call_open.erase(0, format_.prompt_end.size());
    const ExprId text = x_.cat(texts_.rest_of_marks(format_.prompt_end), text_);
    if (!may_call()) return text;
    const ExprId called = calls(first), later = text_first() ? calls_ : ExprId::none;
    return x_.alt(called, x_.cat(text, may_end_without_call() ? x_.optional(later) : later));
  }
  /// An answer, or what follows thoughts.
  [[nodiscard]] ExprId without_thoughts(bool is_behind) {
    if (!may_call()) return text(is_behind);
    if (has_mark(format_) && text_first())
      return x_.cat(text_, may_end_without_call() ? x_.optional(calls_) : calls_);
    const ExprId before = is_automatic() && !has_mark(format_) ? texts_.before_unmarked_call()
                          : is_behind                          ? texts_.spaces()
                                                               : ExprId::empty;
    const ExprId called = x_.cat(before, calls_);
    return may_end_without_call() ? x_.alt(text(is_behind), called) : called;
  }

  /// One call, or several. first: the format of the first one.
  [[nodiscard]] ExprId calls(const CallFormat& first) {
    const CallParts parts = call_parts(format_, options_.tokens);
    const ExprId next = call(parts.call);
    const ExprId begin = &first == &format_ ? next : call(call_parts(first, options_.tokens).call);
    const bool several = options_.parallel && format_.is_parallel;
    const ExprId more = several ? x_.cat(text_of(parts.separator), next) : ExprId::none;
    const std::uint32_t others = std::max<std::uint32_t>(options_.max_calls, 1) - 1;
    return x_.cat({text_of(parts.opening), begin, several ? x_.repeat(more, 0, others) : ExprId::empty,
                   text_of(parts.closing), turn_end()});
  }
  [[nodiscard]] ExprId call(const std::vector<CallPart>& parts) {
    const auto is_name = [](const CallPart& part) { return part.kind == Kind::name; };
    const auto name = std::find_if(parts.begin(), parts.end(), is_name);
    ExprId before = text_of({parts.begin(), name});
    if (is_automatic() && !format_.also_opens.empty())
      before = x_.alt(before, texts_.mark(format_.also_opens));
    std::vector<constraint::Branch> branches;
    for (std::size_t i = 0; i < names_.size(); ++i)
      branches.push_back({names_[i], text_of({name + 1, parts.end()}, arguments_[i])});
    return x_.cat(before, x_.table(std::move(branches)));
  }
  /// A text behind the calls at which generation stops, where it is no token that ends an answer.
  [[nodiscard]] ExprId turn_end() { return x_.optional(texts_.mark(format_.turn_end)); }
  /// Parts of a call, one after the other. arguments: those of its tool.
  [[nodiscard]] ExprId text_of(std::span<const CallPart> parts, ExprId arguments = ExprId::none) {
    const bool is_object = format_.notation == Notation::bare;  // its brackets are in the texts around it
    std::vector<ExprId> all;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const CallPart& part = parts[i];
      std::string bytes = texts_.bytes(part);
      if (is_object && i + 1 < parts.size() && parts[i + 1].kind == Kind::arguments) bytes.pop_back();
      if (is_object && i > 0 && parts[i - 1].kind == Kind::arguments) bytes.erase(0, 1);
      all.push_back(part.kind == Kind::arguments ? arguments
                    : part.kind == Kind::id      ? id()
                    : part.kind == Kind::number  ? number()
                                                 : x_.literal(bytes));
    }
    ExprId out = ExprId::empty;
    for (std::size_t i = all.size(); i-- > 0;) out = x_.cat(all[i], out);
    return out;
  }
  [[nodiscard]] ExprId id() {
    constexpr std::uint32_t max_bytes = 40;
    ByteSet bytes('0', '9');
    bytes |= ByteSet('A', 'Z');
    bytes |= ByteSet('a', 'z');
    const auto size = static_cast<std::uint32_t>(format_.id_bytes);
    return size > 0 ? x_.repeat(x_.set(bytes), size, size) : x_.repeat(x_.set(bytes), 1, max_bytes);
  }
  [[nodiscard]] ExprId number() {
    const ExprId digits = x_.repeat(x_.set(ByteSet('0', '9')), 0, 5);
    return x_.alt(x_.literal("0"), x_.cat(x_.set(ByteSet('1', '9')), digits));
  }

  const CallFormat& format_;
  const CallLanguageOptions& options_;
  constraint::Language out_;
  Expressions& x_;
  CallTexts texts_;
  ExprId text_ = ExprId::none;  // free text
  std::vector<std::string> names_;
  std::vector<ExprId> arguments_;  // of each tool; empty: no call is possible
  ExprId calls_ = ExprId::none;    // one or several
};

}  // namespace detail

/// The answers of a model that knows a list of tools, as OpenAI, Anthropic or Ollama describe them. A
/// CallParser for them needs the same format, the same prompt, and the tools_of_json() of the same list.
/// Raises ErrorCode::usage for a list that is no array, a missing name, an invalid schema and one that no
/// object meets; ErrorCode::unsupported, with its place, for a keyword that is not enforced, and for a name
/// or value that the format cannot write; ErrorCode::limit for lists and schemas that are too large.
[[nodiscard]] inline constraint::Language call_language(const CallFormat& format, std::string_view tools_json,
                                                        const CallLanguageOptions& options = {}) {
  MICA_CHECK(tools_json.size() <= options.schema.max_bytes, limit, "tools: found ", tools_json.size(),
             " bytes, allowed are ", options.schema.max_bytes);
  const auto json = io::parse_json<schema::Json>(tools_json, "tools", ErrorCode::usage);
  std::vector<detail::Tool> tools = detail::read_tools(json);
  std::vector<ToolTypes> types = tools_of_json(json);
  if (options.choice == ToolChoice::named) {
    std::erase_if(tools, [&](const detail::Tool& tool) { return tool.name != options.name; });
    std::erase_if(types, [&](const ToolTypes& tool) { return tool.name != options.name; });
    MICA_CHECK(!tools.empty(), usage, "tools: '", escaped(options.name, 60),
               "' must be called, and is none of them");
  }
  MICA_CHECK(!tools.empty() || options.choice != ToolChoice::required, usage,
             "tools: one must be called, and there are none");
  return detail::CallLanguage(format, std::move(tools), std::move(types), options).make();
}

}  // namespace mica::calls
