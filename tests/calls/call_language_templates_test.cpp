// SPDX-License-Identifier: Apache-2.0
//
// What the chat templates of real models write is in the language of the format that is found in them.

#include "language_answers.hpp"
#include "mica_tools/calls/find_format.hpp"
#include "mica_tools/chat/json_value.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::call_language_templates_test {
namespace {

Json conversation(bool both, bool as_text) {
  Json arguments = weather_arguments;
  arguments.erase("none");  // templates write it as they please
  std::vector<std::pair<std::string, Json>> calls = {{"get_weather", arguments}};
  if (both) calls.emplace_back("add-two", Json{{"a", -15}, {"b", 2}});
  return mica::test::conversation(calls, as_text);
}

}  // namespace

TEST_CASE("the calls that templates of real models write are in the language of their formats") {
  const auto folder = shared_dir("the language of calls in the templates of real models", "conformance/chat");
  if (!folder) return;
  std::size_t found = 0;
  for (const std::string name : {"qwen2.5", "qwen3", "qwen3.5", "llama-3.1", "llama-3.2", "gemma4", "gpt-oss",
                                 "mistral-nemo", "deepseek-v3.1", "deepseek-r1-distill"}) {
    CAPTURE(name);
    std::ifstream stream(*folder / (name + ".json"));
    if (!stream) continue;
    const Json file = Json::parse(stream);
    const auto text = [&](const char* key) {
      return file[key].is_null() ? std::string() : file[key].get<std::string>();
    };
    const CallFormat format = calls::find_call_format(text("template"));
    const auto chat = text::ChatFormat::from_template(text("template"), text("bos_token"), text("eos_token"));
    text::ChatVariables variables;
    Json tools = Json::parse(language_tools);
    while (!tools.back().contains("function"))
      tools.erase(tools.size() - 1);  // templates know one form of them
    variables.tools = text::value_of_json(tools);
    variables.now = jinja::CivilTime::parse(file["now"].get<std::string>());
    const bool as_text = name == "deepseek-r1-distill";
    const Json messages = conversation(format.is_parallel, as_text);
    std::string prompt = chat.render(text::value_of_json(Json::array({messages[0]})), true, variables);
    const std::string whole = chat.render(text::value_of_json(messages), false, variables);
    prompt.resize(calls::detail::common_begin(prompt, whole));

    calls::CallLanguageOptions options;
    options.prompt = prompt;
    options.schema.whitespace = as_text ? schema::Whitespace::compact : schema::Whitespace::spaced;
    options.schema.order = schema::MemberOrder::any;  // the template of Gemma sorts members
    LanguageTexts texts(calls::call_language(format, language_tools, options));
    const std::string answer = whole.substr(prompt.size());
    CAPTURE(answer);
    std::size_t size = answer.size();  // without the end of the turn, which is a token
    while (size > 0 && !texts.has(answer.substr(0, size))) --size;
    CAPTURE(size);
    CHECK(answer.find(format.is_parallel ? "-15" : "K\u00F6ln") < size);
    const std::string_view rest = calls::detail::trimmed(std::string_view(answer).substr(size));
    CHECK((rest.empty() || rest == format.turn_end || rest == text("eos_token")));
    ++found;
  }
  CHECK(found > 0);
}

}  // namespace mica::test::call_language_templates_test
