// SPDX-License-Identifier: Apache-2.0
//
// The formats of known families, for chat templates that write no calls or cannot be rendered, and for tests.
// Each row has texts by which a template of the family is recognised; all of them must be in it.
#pragma once

#include "mica_tools/calls/call_format.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls {

/// A format, and texts of its chat templates.
struct KnownFormat {
  CallFormat format;
  std::vector<std::string> marks;
};

namespace detail {

/// A row of the tables below: a JSON object between <tool_call> and </tool_call>, changed step by step.
struct FormatRow : CallFormat {
  /// The text around each call.
  FormatRow call(std::string open, std::string close, std::string between = {}) {
    call_open = std::move(open), call_close = std::move(close), separator = std::move(between);
    return *this;
  }
  /// The text around all calls.
  FormatRow list(std::string open, std::string close, std::string between = ", ") {
    if (!keys.name.empty()) call({}, {});
    list_open = std::move(open), list_close = std::move(close), separator = std::move(between);
    return *this;
  }
  FormatRow object(JsonKeys members) { return keys = std::move(members), *this; }
  FormatRow with_id(IdMarks marks) { return id = std::move(marks), *this; }
  FormatRow tags(ParameterMarks marks) {
    return notation = Notation::tags, parameter = std::move(marks), *this;
  }
  FormatRow bare(std::string mark) { return notation = Notation::bare, quote = std::move(mark), *this; }
  FormatRow thinks(std::string open, std::string close) {
    return thoughts = {std::move(open), std::move(close)}, *this;
  }
  FormatRow around(std::vector<std::string> marks) { return around_text = std::move(marks), *this; }
};

inline FormatRow object_row(std::string family) {
  FormatRow out;
  out.family = std::move(family);
  return out;
}
/// The name is outside of JSON: open NAME after_name ARGUMENTS close.
inline FormatRow named_row(std::string family, std::string open, std::string after_name, std::string close,
                           std::string between = {}) {
  FormatRow out = object_row(std::move(family)).object({});
  out.after_name = std::move(after_name);
  return out.call(std::move(open), std::move(close), std::move(between));
}
inline FormatRow python_row(std::string family, std::string open, std::string close,
                            std::string between = ", ") {
  FormatRow out = named_row(std::move(family), "", "(", "");
  out.notation = Notation::python;
  return out.list(std::move(open), std::move(close), std::move(between));
}
inline FormatRow single(FormatRow row) { return row.is_parallel = false, row; }

inline FormatRow gpt_oss() {
  FormatRow out = named_row("gpt-oss", "<|channel|>commentary to=functions.", " <|constrain|>json<|message|>",
                            "<|call|>");
  out.has_channels = true;
  return single(out.thinks("", ""));
}
inline FormatRow qwen3_coder() {
  FormatRow out =
      named_row("qwen3-coder", "<tool_call>\n<function=", ">", "\n</function>\n</tool_call>", "\n");
  out.also_opens = "<function=";  // the model leaves out <tool_call> at times
  return out.tags({"\n<parameter=", ">\n", "\n</parameter>"});
}
inline FormatRow functionary_32() {
  FormatRow out = named_row("functionary-3.2", ">>>", "\n", "").around({">>>all\n"});
  return out.prompt_end = ">>>", out;
}
inline FormatRow mistral_args() {
  FormatRow out = named_row("mistral-args", "[TOOL_CALLS]", "[ARGS]", "").thinks("[THINK]", "[/THINK]");
  return out.id_bytes = 9, out;
}
/// DeepSeek 3.2 and 4.
inline FormatRow dsml(std::string family, const std::string& calls) {
  const std::string open = "<\uFF5CDSML\uFF5C", close = "</\uFF5CDSML\uFF5C";
  return named_row(std::move(family), open + "invoke name=\"", "\">\n", close + "invoke>")
      .tags({open + "parameter name=\"", "\">", close + "parameter>\n", "\" string=\"", "true", "false"})
      .list(open + calls + ">\n", "\n" + close + calls + ">", "\n");
}
/// DeepSeek 3, R1 and 3.1.
inline FormatRow deepseek(std::string family, const std::string& type, std::string before,
                          const std::string& behind, std::string between) {
  const auto mark = [](const std::string& text) { return "<\uFF5Ctool\u2581" + text + "\uFF5C>"; };
  return named_row(std::move(family), mark("call\u2581begin") + type, std::move(before),
                   behind + mark("call\u2581end"))
      .list(mark("calls\u2581begin"), mark("calls\u2581end"), std::move(between));
}

/// Arguments between tags.
inline std::vector<KnownFormat> tag_formats() {
  return {
      {named_row("kimi-k3", "<|open|>call tool=\"", "\"<|sep|>", "<|close|>call<|sep|>")
           .with_id({"\" index=\"", true})
           .tags({"<|open|>argument key=\"", "\"<|sep|>", "<|close|>argument<|sep|>", "\" type=\"", "string"})
           .list("<|open|>tools<|sep|>", "<|close|>tools<|sep|>", "")
           .thinks("<|open|>think<|sep|>", "<|close|>think<|sep|>")
           .around({"<|open|>response<|sep|>", "<|close|>response<|sep|>"}),
       {"<|open|>", "<|sep|>", "<|close|>"}},
      {dsml("deepseek-v4", "tool_calls"), {"\uFF5CDSML\uFF5C", "'tool_calls>"}},
      {dsml("deepseek-v3.2", "function_calls"), {"\uFF5CDSML\uFF5C"}},
      {named_row("minimax-m2", "<invoke name=\"", "\">\n", "</invoke>\n")
           .tags({"<parameter name=\"", "\">", "</parameter>\n"})
           .list("<minimax:tool_call>\n", "</minimax:tool_call>", ""),
       {"<minimax:tool_call>"}},
      {named_row("seed-oss", "<seed:tool_call>\n<function=", ">\n", "</function>\n</seed:tool_call>", "\n")
           .tags({"<parameter=", ">", "</parameter>\n"})
           .thinks("<seed:think>", "</seed:think>"),
       {"<seed:tool_call>"}},
      {qwen3_coder(), {"<function=", "<parameter="}},
      {named_row("glm-4.5", "<tool_call>", "", "\n</tool_call>", "\n")
           .tags({"\n<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>"}),
       {"<arg_key>"}},
  };
}

/// The name stands before other arguments.
inline std::vector<KnownFormat> name_formats() {
  const FormatRow lfm2 = python_row("lfm2", "<|tool_call_start|>[", "]<|tool_call_end|>");
  const std::string deepseek_mark = "<\uFF5Ctool\u2581call\u2581begin\uFF5C>";
  return {
      {gpt_oss(), {"<|channel|>", "<|message|>", "<|start|>"}},
      {named_row("kimi-k2", "<|tool_call_begin|>functions.", "<|tool_call_argument_begin|>",
                 "<|tool_call_end|>")
           .with_id({":", true, "functions."})
           .list("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", ""),
       {"<|tool_call_begin|>"}},
      {deepseek("deepseek-v3", "function<\uFF5Ctool\u2581sep\uFF5C>", "\n```json\n", "\n```", "\n"),
       {deepseek_mark, "```json"}},
      {deepseek("deepseek-v3.1", "", "<\uFF5Ctool\u2581sep\uFF5C>", "", ""), {deepseek_mark}},
      {named_row("functionary-3.1", "<function=", ">", "</function>"), {"<function="}},
      {functionary_32(), {">>>all"}},
      {named_row("apertus", "{\"", "\": ", "}")
           .list("<|tools_prefix|>[", "]<|tools_suffix|>")
           .thinks("<|inner_prefix|>", "<|inner_suffix|>"),
       {"<|tools_prefix|>"}},
      {named_row("gemma-4", "<|tool_call>call:", "", "<tool_call|>")
           .bare("<|\"|>")
           .thinks("<|channel>thought\n", "<channel|>"),
       {"<|tool_call>"}},
      {named_row("functiongemma", "<start_function_call>call:", "", "<end_function_call>").bare("<escape>"),
       {"<start_function_call>"}},
      {python_row("gemma-3", "```tool_code\n", "\n```", "\n"), {"tool_code"}},
      {lfm2, {"<|tool_call_start|>"}},
      {lfm2, {"<|tool_list_start|>"}},
      {lfm2, {"List of tools: ["}},
      {python_row("olmo-3", "<function_calls>\n", "\n</function_calls>", "\n"), {"<function_calls>"}},
      {python_row("llama-4", "[", "]"), {"<|header_start|>"}},
      {mistral_args().with_id({"[CALL_ID]"}), {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}},
      {mistral_args(), {"[TOOL_CALLS]", "[ARGS]"}},
  };
}

/// A call is a JSON object.
inline std::vector<KnownFormat> object_formats() {
  const FormatRow phi4 = object_row("phi-4-mini").list("<|tool_call|>[", "]<|/tool_call|>");
  return {
      {object_row("command-r")
           .object({"tool_name", "parameters", "tool_call_id", true})
           .list("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>", ",\n    ")
           .thinks("<|START_THINKING|>", "<|END_THINKING|>")
           .around({"<|START_RESPONSE|>", "<|END_RESPONSE|>"}),
       {"<|START_ACTION|>"}},
      {phi4, {"<|/tool_call|>"}},
      {phi4, {"<|/tool|>"}},
      {object_row("firefunction").list("functools[", "]"), {"functools["}},
      {object_row("granite").list("<|tool_call|>[", "]").around({"<response>", "</response>"}),
       {"<|tool_call|>"}},
      {object_row("nemotron").list("<TOOLCALL>[", "]</TOOLCALL>"), {"<TOOLCALL>"}},
      {object_row("minimax-m1").list("<tool_calls>\n", "\n</tool_calls>", "\n"), {"<tool_calls>", "MiniMax"}},
      {object_row("apriel").list("<tool_calls>[", "]</tool_calls>").thinks("<thinking>", "</thinking>"),
       {"<tool_calls>", "<thinking>"}},
      {object_row("hunyuan").list("<tool_calls>[", "]</tool_calls>").around({"<answer>", "</answer>"}),
       {"<tool_calls>"}},
      {object_row("internlm-2").call("<|action_start|><|plugin|>\n", "<|action_end|>"), {"<|plugin|>"}},
      {single(object_row("gigachat-3").call("<|function_call|>", "")), {"<|function_call|>"}},
      {object_row("mistral").object({"name", "arguments", "id"}).list("[TOOL_CALLS][", "]"),
       {"[TOOL_CALLS]"}},
      {single(object_row("llama-3").object({"name", "parameters"}).call("", "").around({"<|python_tag|>"})),
       {"<|start_header_id|>", "\"parameters\""}},
      {object_row("hermes"), {"<tool_call>"}},
  };
}

}  // namespace detail

/// All of them; the first one whose marks are in a template counts. Builds the list anew.
[[nodiscard]] inline std::vector<KnownFormat> known_formats() {
  std::vector<KnownFormat> out = detail::tag_formats();
  for (const auto& more : {detail::name_formats(), detail::object_formats()})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

/// The format of a family, or the one of Hermes where the family is not known.
[[nodiscard]] inline CallFormat format_named(std::string_view family) {
  for (const KnownFormat& row : known_formats()) {
    if (row.format.family == family) return row.format;
  }
  return {};
}

/// The format whose marks are in the text of a chat template, or the one of Hermes where there are none.
[[nodiscard]] inline CallFormat format_of_marks(std::string_view chat_template) {
  for (const KnownFormat& row : known_formats()) {
    const auto has = [&](const std::string& mark) {
      return chat_template.find(mark) != std::string_view::npos;
    };
    if (std::all_of(row.marks.begin(), row.marks.end(), has)) return row.format;
  }
  return {};
}

}  // namespace mica::calls
