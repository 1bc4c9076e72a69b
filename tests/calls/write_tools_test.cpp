// SPDX-License-Identifier: Apache-2.0
//
// What chat templates do with tools, and what is written as text where they do nothing.

#include "mica_tools/calls/write_tools.hpp"

#include "answers.hpp"
#include "mica_tools/calls/find_format.hpp"
#include "mica_tools/calls/known_formats.hpp"
#include "mica_tools/calls/tools_of_json.hpp"
#include "mica_tools/chat/message_value.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace mica::test::write_tools_test {
namespace {

using calls::find_template_calls;
using calls::TemplateCalls;
using text::Message;

const std::string tools =
    R"([{"type":"function","function":{"name":"get_weather","description":"Tells the weather",
  "parameters":{"type":"object","properties":{"place":{"type":"string"},"days":{"type":"integer"}}}}}])";

std::vector<Message> conversation() {
  std::vector<Message> out = {{"user", "Weather?"}, {"assistant", "I look."}, {"tool", "Rain in K\u00F6ln"}};
  out[1].calls = {{"call_abc123", "get_weather", R"({"place":"Bonn","days":3})"}};
  out[2].tool = "get_weather";
  out[2].call_id = "call_abc123";
  return out;
}

/// The conversation as a server renders it.
std::string rendered(const std::string& source, const std::vector<Message>& messages,
                     const TemplateCalls& its, bool with_answer) {
  const auto chat = text::ChatFormat::from_template(source, "", "");
  text::ChatVariables variables;
  variables.tools = text::value_of_json(Json::parse(tools));
  return chat.render(text::value_of_messages(calls::write_tools(messages, tools, its), its.values),
                     with_answer, variables);
}

/// Knows no tools, calls or results.
const std::string plain =
    "{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('role') "
    "}}"
    "{% endif %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}";

}  // namespace

TEST_CASE("every template of real models shows tools, calls and results, itself or as text") {
  const auto folder = shared_dir("tools in the templates of real models", "conformance/chat");
  if (!folder) return;
  const std::map<std::string, std::string> knows = {
      // tools, calls, results
      {"qwen2.5", "tcr"}, {"qwen3", "tcr"},     {"qwen3.5", "tcr"},      {"llama-3.1", "tcr"},
      {"gpt-oss", "tcr"}, {"llama-3.2", "tcr"}, {"mistral-nemo", "tcr"}, {"gemma4", "tcr"},
      {"gemma2", ""},     {"gemma3", ""},       {"deepseek-v3.1", "cr"}, {"deepseek-r1-distill", "cr"}};
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() != ".json") continue;
    const Json file = Json::parse(std::ifstream(entry.path()), nullptr, false);
    if (!file.is_object() || !file.contains("template") || !file["template"].is_string()) continue;
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    const auto source = file["template"].get<std::string>();
    const TemplateCalls its = find_template_calls(source);
    if (const auto row = knows.find(name); row != knows.end()) {
      CHECK(std::string(its.lists_tools ? "t" : "") + (its.writes_calls ? "c" : "") +
                (its.writes_results ? "r" : "") ==
            row->second);
    }
    std::string text;
    REQUIRE_NOTHROW(text = rendered(source, conversation(), its, true));
    CAPTURE(text);
    for (const char* const part : {"Tells the weather", "get_weather", "Bonn", "Rain in K\u00F6ln"})
      CHECK(text.find(part) != std::string::npos);
    // What was written is read again.
    auto messages = conversation();
    if (its.values.text_is_apart) messages[1].content.clear();
    const std::string prompt = rendered(source, {messages[0]}, its, true),
                      whole = rendered(source, {messages[0], messages[1]}, its, false);
    const std::size_t size = calls::detail::common_begin(prompt, whole);
    const Parsed answer = parsed(its.format, calls::tools_of_json(Json::parse(tools)), whole.substr(size),
                                 prompt.substr(0, size), 1, 1);
    REQUIRE(answer.calls.size() == 1);
    CHECK(answer.calls[0].name == "get_weather");
    CHECK(nlohmann::json::parse(answer.calls[0].arguments) == nlohmann::json{{"place", "Bonn"}, {"days", 3}});
    ++found;
  }
  CHECK(found > 0);
}

TEST_CASE("a template without tools gets them as text") {
  const TemplateCalls its = find_template_calls(plain);
  CHECK_FALSE(its.lists_tools);
  CHECK_FALSE(its.writes_calls);
  CHECK_FALSE(its.writes_results);
  auto messages = conversation();
  messages.push_back(messages.back());
  messages.back().content = "Sun";
  const std::string text = rendered(plain, messages, its, true);
  CAPTURE(text);
  CHECK(text.starts_with("<user>You can call tools."));
  CHECK(text.find("Weather?</user>") != std::string::npos);
  CHECK(text.find(R"({"name": "NAME", "arguments": {"PARAMETER":"VALUE"}})") != std::string::npos);
  CHECK(text.ends_with(
      "<assistant>I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
      "{\"place\":\"Bonn\",\"days\":3}}\n</tool_call></assistant><user><tool_response>\nRain in "
      "K\u00F6ln\n</tool_response>\n<tool_response>\nSun\n</tool_response></user>"));
  messages.insert(messages.begin(), {"system", "Be brief."});
  CHECK(rendered(plain, messages, its, true).starts_with("<system>You can call tools."));
  CHECK(calls::write_tools({{"assistant", "Hi"}}, tools, its)[0].role == "user");
  CHECK(calls::write_tools(conversation(), "", its)[0].content == "Weather?");
}

TEST_CASE(
    "tools are described in the notation of the model's calls, to the first message that may have them") {
  TemplateCalls its;
  its.format = calls::format_named("qwen3-coder");
  for (const char* const role : {"system", "developer", "user"}) {
    const auto messages = calls::write_tools({{"assistant", "Hi"}, {role, "Me"}}, tools, its);
    REQUIRE(messages.size() == 2);
    CHECK(messages[1].content.ends_with("Me"));
    CHECK(messages[1].content.find(tools) != std::string::npos);
    CHECK(messages[1].content.find("<function=NAME>\n<parameter=PARAMETER>\nVALUE\n") != std::string::npos);
  }
  auto without_text = conversation();
  without_text[1].content.clear();
  const auto messages = calls::write_tools(without_text, "", its);
  CHECK(messages[1].content.starts_with("<tool_call>\n<function=get_weather>"));
}

TEST_CASE("arguments have the form that a template takes") {
  const std::string
      head =
          "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}"
          "<tool_call>{\"name\": \"{{ c.function.name }}\", \"arguments\": ",
      tail = "}</tool_call>{% endfor %}{% endfor %}";
  const TemplateCalls mapping = find_template_calls(head + "{{ c.function.arguments|tojson }}" + tail),
                      as_text = find_template_calls(head + "{{ c.function.arguments }}" + tail);
  CHECK(mapping.writes_calls);
  CHECK_FALSE(mapping.values.arguments_are_text);
  CHECK(as_text.writes_calls);
  CHECK(as_text.values.arguments_are_text);
  CHECK(rendered(head + "{{ c.function.arguments }}" + tail, conversation(), as_text, false)
            .find(R"("arguments": {"place":"Bonn","days":3}})") != std::string::npos);
  const std::string null_only =
      "{% for m in messages %}[{{ m.role }}]{% if m.content is none %}{% for c in m.tool_calls "
      "%}<tool_call>{\"name\":"
      " \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments|tojson }}}</tool_call>{% endfor %}"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}";
  CHECK(find_template_calls(null_only).values.content_is_null);
}

TEST_CASE("text and calls are two messages where a template does not write both") {
  TemplateCalls its;
  its.writes_calls = its.writes_results = its.lists_tools = its.values.text_is_apart = true;
  const auto messages = calls::write_tools(conversation(), "", its);
  REQUIRE(messages.size() == 4);
  CHECK(messages[1].content == "I look.");
  CHECK(messages[1].calls.empty());
  CHECK(messages[2].content.empty());
  CHECK(messages[2].calls.size() == 1);
  auto alone = conversation();
  alone[1].content.clear();
  CHECK(calls::write_tools(alone, "", its).size() == 3);
}

TEST_CASE("ids have the length that a template takes, and stay different") {
  TemplateCalls its;
  its.format.id_bytes = 9;
  its.writes_calls = its.writes_results = its.lists_tools = true;
  const auto messages = calls::write_tools(conversation(), "", its);
  CHECK(messages[1].calls[0].id == "allabc123");
  CHECK(messages[2].call_id == messages[1].calls[0].id);
  CHECK(calls::detail::fitted_id("x-7", 4) == "00x7");
  CHECK(calls::detail::fitted_id("[A{b~\u00E9Z", 4) == "0AbZ");
  CHECK(calls::write_tools({{"user", "Hi"}}, "", its)[0].call_id.empty());
  auto same = conversation();
  same[1].calls[0].id = same[2].call_id = "abcdefghi";
  CHECK(calls::write_tools(same, "", its)[2].call_id == "abcdefghi");
}

}  // namespace mica::test::write_tools_test
