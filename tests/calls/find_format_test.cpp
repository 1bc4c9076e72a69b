// SPDX-License-Identifier: Apache-2.0
//
// Formats that are read from chat templates: from those of real models, and from templates that are made from
// each known format. The parser must find the calls that the templates write.

#include "mica_tools/calls/find_format.hpp"

#include "answers.hpp"
#include "mica_tools/calls/known_formats.hpp"
#include "mica_tools/calls/tools_of_json.hpp"
#include "mica_tools/chat/json_value.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::find_format_test {

namespace {

using calls::find_call_format;
using calls::known_formats;

std::string jinja_text(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '\n' ? "\\n" : c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out.empty() ? "" : "{{ \"" + out + "\" }}";
}

std::string jinja_parts(const std::vector<calls::CallPart>& parts, const CallFormat& format,
                        const std::string& arguments) {
  using Kind = calls::CallPart::Kind;
  const std::string other = format.parameter.other_type.empty() ? "number" : format.parameter.other_type;
  const std::string quoted = "{{ \"" + (format.quote == "<|\"|>" ? "<|\\\"|>" : format.quote) +
                             "\" + v + \"" + (format.quote == "<|\"|>" ? "<|\\\"|>" : format.quote) +
                             "\" if v is string else v }}";
  std::string out;
  for (const auto& part : parts) {
    if (part.kind == Kind::name) out += "{{ c.function.name }}";
    if (part.kind == Kind::id) out += "{{ c.id }}";
    if (part.kind == Kind::number) out += "{{ loop.index0 }}";
    if (part.kind == Kind::arguments) out += arguments;
    if (part.kind == Kind::key) out += "{{ k }}";
    if (part.kind == Kind::type)
      out += "{{ \"" + format.parameter.string_type + "\" if v is string else \"" + other + "\" }}";
    if (part.kind == Kind::value)
      out += format.notation == Notation::bare     ? quoted
             : format.notation == Notation::python ? "{{ v|tojson }}"
                                                   : "{{ v if v is string else v|tojson }}";
    out += jinja_text(part.text);
  }
  return out;
}

/// A chat template that writes calls in a format.
std::string template_of(const CallFormat& format) {
  const calls::CallParts parts = calls::call_parts(format);
  const auto between = [](const std::string& text) {
    return text.empty() ? "" : "{% if not loop.last %}" + text + "{% endif %}";
  };
  const std::string separator = jinja_parts(parts.parameter_separator, format, "");
  const std::string arguments = format.notation == Notation::json
                                    ? "{{ c.function.arguments|tojson }}"
                                    : "{% for k, v in c.function.arguments|items %}" +
                                          jinja_parts(parts.parameter, format, "") + between(separator) +
                                          "{% endfor %}";
  return "{% for m in messages %}<|turn|>{{ m.role }}:{{ m.content or '' }}{% if m.tool_calls %}" +
         jinja_parts(parts.opening, format, "") + "{% for c in m.tool_calls %}" +
         jinja_parts(parts.call, format, arguments) + between(jinja_parts(parts.separator, format, "")) +
         "{% endfor %}" + jinja_parts(parts.closing, format, "") + "{% endif %}<|stop|>{% endfor %}" +
         "{% if add_generation_prompt %}<|turn|>assistant:{% endif %}";
}

const char* const tools =
    R"([{"type": "function", "function": {"name": "get_weather", "description": "Weather",
  "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "A city"},
    "days": {"type": "integer"}, "list": {"type": "array", "items": {"type": "string"}},
    "on": {"type": "boolean"}}}}},
  {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {"type": "object",
    "properties": {"a": {"type": "number"}}}}}])";

const Json first = {{"city", "K\u00F6ln \"S\u00FCd\" {a} C:\\dir\n</tool_call> x"},
                    {"days", 3},
                    {"list", {"x", "}"}},
                    {"on", true}};
const Json second = {{"a", -1.5}};

Json conversation(bool both, bool as_text) {
  std::vector<std::pair<std::string, Json>> calls = {{"get_weather", first}};
  if (both) calls.emplace_back("add", second);
  return mica::test::conversation(calls, as_text);
}

/// The answer of a rendered conversation: what its prompt does not have.
struct Turn {
  std::string prompt, answer;
};
Turn turn_of(const text::ChatFormat& chat, const Json& messages, const Json& file) {
  text::ChatVariables variables;
  variables.tools = text::value_of_json(Json::parse(tools));
  variables.now = jinja::CivilTime::parse(file["now"].get<std::string>());
  const std::string prompt = chat.render(text::value_of_json(Json::array({messages[0]})), true, variables);
  const std::string whole = chat.render(text::value_of_json(messages), false, variables);
  const std::size_t size = calls::detail::common_begin(prompt, whole);
  return {prompt.substr(0, size), whole.substr(size)};
}

}  // namespace

TEST_CASE("the templates of real models: what they write, the parser reads") {
  const auto folder = shared_dir("calls in the templates of real models", "conformance/chat");
  if (!folder) return;
  const std::map<std::string, std::string> families = {{"qwen2.5", "hermes"},
                                                       {"qwen3", "hermes"},
                                                       {"qwen3.5", "qwen3-coder"},
                                                       {"llama-3.1", "llama-3"},
                                                       {"llama-3.2", "llama-3"},
                                                       {"gemma4", "gemma-4"},
                                                       {"gpt-oss", "gpt-oss"},
                                                       {"mistral-nemo", "mistral"},
                                                       {"deepseek-v3.1", "deepseek-v3.1"},
                                                       {"deepseek-r1-distill", "deepseek-v3"}};
  std::size_t found = 0;
  for (const auto& row : families) {
    const std::string& name = row.first;
    CAPTURE(name);
    std::ifstream stream(*folder / (name + ".json"));
    if (!stream) continue;
    const Json file = Json::parse(stream);
    const auto text = [&](const char* key) {
      return file[key].is_null() ? "" : file[key].get<std::string>();
    };
    const CallFormat format = find_call_format(text("template"));
    CHECK(format.family == row.second);
    const auto chat = text::ChatFormat::from_template(text("template"), text("bos_token"), text("eos_token"));
    const Turn turn = turn_of(chat, conversation(format.is_parallel, name == "deepseek-r1-distill"), file);
    const Parsed parsed_turn =
        parsed(format, calls::tools_of_json(Json::parse(tools)), turn.answer, turn.prompt, 1, 1);
    CAPTURE(turn.answer);
    REQUIRE(parsed_turn.calls.size() == (format.is_parallel ? 2 : 1));
    CHECK(parsed_turn.calls[0].name == "get_weather");
    CHECK(nlohmann::json::parse(parsed_turn.calls[0].arguments) == nlohmann::json(first));
    if (format.is_parallel) CHECK(Json::parse(parsed_turn.calls[1].arguments) == second);
    if (name == "mistral-nemo") CHECK(parsed_turn.calls[1].id == "call00002");
    CHECK(format.prompt_opens_thoughts == (name == "qwen3.5" || name == "deepseek-r1-distill"));
    ++found;
  }
  CHECK(found > 0);
}

TEST_CASE("a template that knows no tools has the format of Hermes") {
  const auto folder = shared_dir("templates of real models without tools", "conformance/chat");
  if (!folder) return;
  for (const char* const name : {"gemma2", "gemma3", "phi-3.5", "smollm3"}) {
    std::ifstream stream(*folder / (std::string(name) + ".json"));
    if (stream)
      CHECK(find_call_format(Json::parse(stream)["template"].get<std::string>()).call_open ==
            "<tool_call>\n");
  }
}

TEST_CASE("a template that writes calls in a known format leads back to it") {
  const std::vector<ToolTypes> types = {{"get_weather", {"days", "list", "on"}}, {"add", {"a"}}};
  for (const auto& row : known_formats()) {
    if (row.format.has_channels) continue;  // see above
    CAPTURE(row.format.family);
    const std::string source = template_of(row.format);
    CAPTURE(source);
    const CallFormat format = find_call_format(source);
    CHECK(calls::detail::trimmed(format.list_open + format.call_open) ==
          calls::detail::trimmed(row.format.list_open + row.format.call_open));
    CHECK(format.notation == row.format.notation);
    CHECK(format.keys.name == row.format.keys.name);
    CHECK(format.turn_end == "<|stop|>");
    std::vector<Call> calls = {{"get_weather", first.dump(), "id1"}, {"add", second.dump(), "id2"}};
    const Parsed found = parsed(format, types, written_calls(row.format, calls) + "<|stop|>");
    REQUIRE(found.calls.size() == 2);
    CHECK(Json::parse(found.calls[0].arguments) == first);
    CHECK(Json::parse(found.calls[1].arguments) == second);
    CHECK(found.text == "<|stop|>");
  }
}

TEST_CASE("a template that cannot be rendered has the format whose marks are in its text") {
  CHECK(find_call_format("{{ 1").family == "hermes");
  CHECK(find_call_format("").family == "hermes");
  CHECK_FALSE(find_call_format("").may_think);
  CHECK(find_call_format("{{ messages[0].content }}<think></think>").may_think);
  CHECK(find_call_format("{{ raise_exception('no') }}<|tool_call_begin|>").family == "kimi-k2");
  CHECK(find_call_format("List of tools: <|tool_list_start|>{{ messages[0].content }}").family == "lfm2");
  CHECK(find_call_format("<|channel|><|message|><|start|>").has_channels);
}

TEST_CASE("calls before the text of a message are found, and names without arguments are no calls") {
  const std::string begin = "{% for m in messages %}<|turn|>",
                    call =
                        "{% for c in m.tool_calls or [] %}[CALL]{{ c.function.name }}[ARGS]"
                        "{{ c.function.arguments|tojson }}{% endfor %}",
                    text = "{{ m.content or '' }}", end = "<|stop|>{% endfor %}";
  const auto before = calls::find_template_calls(begin + call + text + end);
  CHECK(before.writes_calls);
  CHECK(before.format.call_open == "[CALL]");
  CHECK(before.format.after_name == "[ARGS]");
  const auto no_arguments = calls::find_template_calls(
      begin + text + "{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}" + end);
  CHECK_FALSE(no_arguments.writes_calls);
}

TEST_CASE("calls as Python prints them are no format") {
  const auto printed = calls::find_template_calls(
      "{% for m in messages %}<|turn|>{{ m.content or '' }}{{ m.tool_calls }}<|stop|>{% endfor %}");
  CHECK_FALSE(printed.writes_calls);
  CHECK(printed.format.call_open == "<tool_call>\n");
}

TEST_CASE("the marks of thoughts are those in the template") {
  for (const auto& [open, close] : {std::pair{"<|START_THINKING|>", "<|END_THINKING|>"},
                                    {"[THINK]", "[/THINK]"},
                                    {"<seed:think>", "</seed:think>"},
                                    {"<think>", "</think>"}}) {
    const CallFormat format = find_call_format(std::string("{{ messages[0].content }}") + open + "x" + close);
    CHECK(format.thoughts.open == open);
    CHECK(format.thoughts.close == close);
    CHECK(format.may_think);
  }
  CHECK(find_call_format("{{ messages[0].content }}[THINK]").thoughts.open == "<think>");
}

TEST_CASE("ids that a template takes only in one length have that length") {
  const std::string source =
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}{% if c.id|length != 9 %}"
      "{{ raise_exception('length') }}{% endif %}[CALL]{{ c.function.name }}[ID]{{ c.id }}[ARGS]"
      "{{ c.function.arguments|tojson }}{% endfor %}[END]{% endfor %}";
  const CallFormat format = find_call_format(source);
  CHECK(format.id_bytes == 9);
  CHECK(format.id.open == "[ID]");
  CHECK(format.call_open == "[CALL]");
  CHECK(format.turn_end == "[END]");
}

}  // namespace mica::test::find_format_test
