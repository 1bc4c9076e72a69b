// SPDX-License-Identifier: Apache-2.0
//
// Whole conversations: the templates of real models against their reference renderings, the built-in formats, and the
// choice between the two.

#include "mica_tools/chat/chat_format.hpp"
#include "mica_tools/chat/chat_template.hpp"
#include "mica_tools/chat/json_value.hpp"
#include "shared.hpp"
#include "text/small_vocabulary.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace chat_test {

namespace {

using mica::jinja::CivilTime;
using mica::jinja::Value;
using mica::text::ChatFormat;
using mica::text::ChatHints;
using mica::text::ChatTemplateError;
using mica::text::ChatVariables;
using mica::text::Message;
using mica::text::value_of_json;
using Json = nlohmann::ordered_json;

/// The rendered text, or what the kit writes for an error that the template raised.
std::string outcome(const ChatFormat& format, const Json& file, const Json& test) {
  ChatVariables variables;
  variables.tools = value_of_json(test["tools"]);
  variables.now = CivilTime::parse(file["now"].get<std::string>());
  for (const auto& [name, value] : test["kwargs"].items())
    variables.others.emplace_back(name, value_of_json(value));
  try {
    return format.render(value_of_json(test["messages"]), test["add_generation_prompt"].get<bool>(),
                         variables);
  } catch (const ChatTemplateError& error) {
    if (error.error().cause() != mica::jinja::TemplateError::Cause::raised) throw;
    return "TemplateError: " + error.error().detail();
  }
}

/// Some models have no BOS token.
std::string text_or_empty(const Json& json) {
  return json.is_null() ? std::string() : json.get<std::string>();
}

const std::vector<Message> talk = {
    {"system", " Be brief. "}, {"user", "Hi "}, {"assistant", " Hello"}, {"user", "Bye"}};

std::string built_in(std::string_view name, bool add_generation_prompt = true) {
  return ChatFormat::built_in(name, "<s>", "</s>").render(talk, add_generation_prompt);
}

}  // namespace

TEST_CASE("the templates of real models render as the reference does") {
  const auto folder = mica::test::shared_dir("chat templates of real models", "conformance/chat");
  if (!folder) return;
  std::size_t equal = 0;
  std::size_t all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    std::ifstream stream(entry.path());
    const Json file = Json::parse(stream);
    if (!file.contains("cases")) continue;
    CAPTURE(entry.path().filename().string());
    const auto format = ChatFormat::from_template(
        text_or_empty(file["template"]), text_or_empty(file["bos_token"]), text_or_empty(file["eos_token"]));
    for (const Json& test : file["cases"]) {
      CAPTURE(test["name"].get<std::string>());
      const char* key = test.contains("error") ? "error" : "rendered";
      const bool same = outcome(format, file, test) == test[key].get<std::string>();
      CHECK(same);
      equal += same ? 1 : 0;
      ++all;
    }
  }
  MESSAGE("chat template cases: " << equal << " of " << all << " equal");
  CHECK(all > 0);
}

TEST_CASE("messages in C++ and in JSON render alike") {
  const auto format = ChatFormat::from_template(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m['content'] }}{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}{{ tools }}{{ documents }}{{ extra }}",
      "<s>", "</s>");
  const std::vector<Message> one = {{"user", "Hi"}};
  CHECK(format.render(one) == "<s>[user]Hi[assistant]NoneNone");
  ChatVariables variables;
  variables.others.emplace_back("extra", 3);
  const Json json = Json::parse(R"([{"role": "user", "content": "Hi"}])");
  CHECK(format.render(value_of_json(json), false, variables) == "<s>[user]HiNoneNone3");
  CHECK(format.name() == "template");
  CHECK(format.stop().empty());
}

TEST_CASE("JSON keeps the order of its keys and its kinds of numbers") {
  const Json json =
      Json::parse(R"({"b": 1, "a": [1.0, -2, true, null, "x"], "c": {"z": 18446744073709551615}})");
  const auto format = ChatFormat::from_template("{{ messages }}|{{ messages|tojson }}", "", "");
  CHECK(format.render(value_of_json(json)) ==
        "{'b': 1, 'a': [1.0, -2, True, None, 'x'], 'c': {'z': 1.8446744073709552e+19}}|"
        R"({"b": 1, "a": [1.0, -2, true, null, "x"], "c": {"z": 1.8446744073709552e+19}})");
  Json deep = Json::array();
  for (int i = 0; i < 100; ++i) deep = Json::array({deep});
  CHECK_THROWS_WITH_AS((void)value_of_json(deep), "chat template: JSON nests deeper than 64", mica::Error);
  Json deepest = 1;
  for (std::uint32_t i = 0; i < mica::jinja::max_container_depth; ++i) deepest = Json::array({deepest});
  CHECK(value_of_json(deepest).is(mica::jinja::Kind::sequence));
  CHECK_THROWS_AS((void)value_of_json(Json::array({deepest})), mica::Error);
}

TEST_CASE("an error of the template engine is one of mica, with its text and its own code") {
  const auto error_of = [](std::string_view source) {
    try {
      (void)ChatFormat::from_template(source, "", "").render(talk);
    } catch (const mica::Error& error) {
      return error;
    }
    return mica::Error(mica::ErrorCode::usage, "no error");
  };
  CHECK(error_of("{{ 1").code() == mica::ErrorCode::file);
  CHECK(error_of("{% include 'x' %}").code() == mica::ErrorCode::unsupported);
  CHECK(error_of("{{ 'a' * 10000000000 }}").code() == mica::ErrorCode::limit);
  CHECK(error_of("\n{{ x.y }}").code() == mica::ErrorCode::failed);
  CHECK(error_of("\n{{ x.y }}").message() == "chat template, line 2: 'x' is undefined");
  CHECK(error_of("{{ raise_exception('No.') }}").code() == mica::ErrorCode::failed);
  CHECK(error_of("{{ raise_exception('No.') }}").message() == "the chat template refuses: No.");
}

TEST_CASE("the built-in formats write what their models were trained on") {
  CHECK(built_in("chatml") ==
        "<|im_start|>system\n Be brief. <|im_end|>\n<|im_start|>user\nHi <|im_end|>\n"
        "<|im_start|>assistant\n Hello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
  CHECK(built_in("llama-3") ==
        "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
  CHECK(built_in("gemma") ==
        "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n"
        "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n");
  CHECK(built_in("phi-3") ==
        "<|system|>\n Be brief. <|end|>\n<|user|>\nHi <|end|>\n<|assistant|>\n Hello<|end|>\n"
        "<|user|>\nBye<|end|>\n<|assistant|>\n");
  CHECK(built_in("zephyr", false) ==
        "<|system|>\n Be brief. </s>\n<|user|>\nHi </s>\n<|assistant|>\n Hello</s>\n<|user|>\nBye</s>\n");
  CHECK(built_in("llama-2", false) ==
        "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello </s><s>[INST] Bye [/INST]");
  CHECK(built_in("mistral", false) == "<s>[INST] Be brief.\n\nHi [/INST] Hello</s>[INST] Bye [/INST]");
  CHECK(built_in("plain") == "<s>Be brief.\n\nUser: Hi\n\nAssistant: Hello\n\nUser: Bye\n\nAssistant:");
}

TEST_CASE("formats with [INST] leave the space before an answer to the model") {
  CHECK(built_in("mistral", true) == built_in("mistral", false));
  CHECK(built_in("llama-2", true) == built_in("llama-2", false));
}

TEST_CASE("a built-in format takes the text of messages and refuses what it cannot write") {
  const auto format = ChatFormat::built_in("chatml");
  const Json parts =
      Json::parse(R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"text": "b"}]}])");
  CHECK(format.render(value_of_json(parts), false) == "<|im_start|>user\nab<|im_end|>\n");
  CHECK(format.stop() == "<|im_end|>");
  CHECK_THROWS_AS((void)format.render(value_of_json(Json::parse(R"([{"role": "robot", "content": ""}])"))),
                  mica::Error);
  CHECK_THROWS_AS((void)format.render(value_of_json(Json::parse(R"([{"role": "user", "content": [{}]}])"))),
                  mica::Error);
  CHECK_THROWS_AS((void)format.render(value_of_json(Json::parse(R"([{"content": "x"}])"))), mica::Error);
  CHECK_THROWS_WITH_AS(
      (void)ChatFormat::built_in("nope"),
      "there is no built-in chat format 'nope'; there are chatml, llama-3, gemma, phi-3, zephyr, "
      "llama-2, mistral, plain",
      mica::Error);
}

TEST_CASE("a template that can be parsed is used, another one is replaced and the note says why") {
  ChatHints hints;
  hints.chat_template = "{{ messages[0].content }}";
  CHECK(ChatFormat::detect(hints).has_template());
  CHECK(ChatFormat::detect(hints).note().empty());

  hints.chat_template = "{% include 'x' %}<start_of_turn>";
  const auto format = ChatFormat::detect(hints);
  CHECK(format.name() == "gemma");
  CHECK(format.note() ==
        "the file's chat template cannot be used (chat template, line 1: the tag 'include' is not "
        "supported); using "
        "the built-in format gemma");
}

TEST_CASE("without a template, tokens and then the architecture decide") {
  ChatHints hints;
  CHECK(ChatFormat::detect(hints).name() == "plain");
  hints.architecture = "qwen3";
  CHECK(ChatFormat::detect(hints).name() == "chatml");
  const std::vector<std::string_view> phi = {"<s>", "<|user|>", "<|end|>"};
  hints.tokens = phi;
  CHECK(ChatFormat::detect(hints).name() == "phi-3");
  const std::vector<std::string_view> zephyr = {"<|user|>"};
  hints.tokens = zephyr;
  CHECK(ChatFormat::detect(hints).name() == "zephyr");
  CHECK(ChatFormat::detect(hints).note() ==
        "the file has no chat template; using the built-in format zephyr");
}

TEST_CASE(
    "templates get thoughts under the names that they have for them, and messages without any get none") {
  const auto format = ChatFormat::from_template(
      "{% for m in messages %}{{ m.content }}|{{ m.reasoning_content }}|{{ m.thinking }}|"
      "{{ m.thinking is defined }}\n{% endfor %}",
      {}, {});
  const std::vector<Message> messages = {{"assistant", "a", "t"}, {"assistant", "b"}};
  CHECK(format.render(messages) == "a|t|t|True\nb|||False\n");
}

TEST_CASE("a template has the variables of its options, and what the program says of thinking") {
  using mica::ChatTemplate;
  mica::test::SmallVocabulary words("llama");
  words.add("<s>", mica::text::TokenType::control);
  words.add("a");
  const mica::text::Vocabulary vocabulary = words.build();
  const std::vector<Message> hello = {{"user", "hi"}};
  const std::string source =
      "{{ enable_thinking if enable_thinking is defined else '-' }} {{ thinking if thinking is defined else "
      "'-' }}"
      " {{ effort }}";
  const auto rendered = [&](std::optional<bool> thinking, ChatVariables variables = {}) {
    return ChatTemplate({}, vocabulary, {.source = source, .thinking = thinking, .variables = variables})
        .render(hello);
  };
  CHECK(rendered({}) == "- - ");
  CHECK(rendered(true) == "True True ");
  ChatVariables variables;
  variables.others = {{"effort", "high"}, {"enable_thinking", true}};
  CHECK(rendered(false, variables) == "True False high");
  const ChatTemplate format({}, vocabulary, {.source = source});
  CHECK(format.source() == source);
  CHECK(format.has_thinking_switch());
  CHECK(format.with_thinking(false).renderer().render(hello) == "False False ");
  CHECK(format.renderer().render(hello) == "- - ");
  const ChatTemplate built_in({}, vocabulary, {.built_in = "chatml", .thinking = true});
  CHECK(built_in.source() == "chatml");
  CHECK_FALSE(built_in.has_thinking_switch());
  CHECK(built_in.renderer().stop == "<|im_end|>");
  CHECK(built_in.render(hello) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  const ChatTemplate none({}, vocabulary);
  CHECK(none.source() == "plain");
  CHECK_FALSE(none.is_sure());
}

}  // namespace chat_test
