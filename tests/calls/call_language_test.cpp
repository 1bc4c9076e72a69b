// SPDX-License-Identifier: Apache-2.0
//
// The language of answers with calls, in the format of each known family: answers as its template writes
// them, wrong answers, and random texts, in which the parser must find calls of tools with good arguments.

#include "mica_tools/calls/call_language.hpp"

#include "language_answers.hpp"
#include "mica/constraint/grammar.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::call_language_test {

namespace {

using calls::call_language;
using calls::CallLanguageOptions;
using calls::known_formats;
using calls::ToolChoice;

}  // namespace

TEST_CASE("answers as the template of each family writes them are in its language, and wrong ones are not") {
  for (const auto& row : known_formats()) {
    for (const bool are_tokens : {false, true}) {
      const CallFormat& format = row.format;
      CAPTURE(format.family);
      CAPTURE(are_tokens);
      Answers answers(format, are_tokens);
      const std::string call = written(format, "get_weather", weather_arguments);
      CAPTURE(call);
      CHECK(answers.has(call));
      CHECK(answers.has(with_text(format, call)));
      CHECK(answers.has(with_thoughts(format, with_text(format, call))));
      CHECK(answers.has(written(format, "now", Json::object())));
      CHECK(answers.has(
          written(format, "book", {{"code", "ABC"}, {"text", "a\u20ACb"}, {"day", "2024-02-29"}})));
      if (format.is_parallel) CHECK(answers.has(with_text(format, written_twice(format))));
      if (!format.has_channels)
        CHECK(answers.has(format.family == "functionary-3.2" ? ">>>all\nHi" : "Hi <b>"));

      const auto changed = [&](const char* key, const Json& value) {
        Json wrong = weather_arguments;
        value.is_discarded() ? void(wrong.erase(key)) : void(wrong[key] = value);
        return with_text(format, written(format, "get_weather", wrong));
      };
      CHECK_FALSE(answers.has(with_text(format, written(format, "get_wether", weather_arguments))));
      CHECK_FALSE(answers.has(changed("city", Json(Json::value_t::discarded))));
      CHECK_FALSE(answers.has(changed("days", "x")));
      CHECK_FALSE(answers.has(changed("days", 15)));
      CHECK_FALSE(answers.has(changed("unit", "kelvin")));
      CHECK_FALSE(answers.has(changed("flag", 1)));
      CHECK_FALSE(answers.has(changed("at", Json::object())));
      CHECK_FALSE(answers.has(changed("extra", 1)));
      CHECK_FALSE(answers.has(written(format, "book", {{"code", "AB"}})));
      CHECK_FALSE(answers.has(written(format, "book", {{"code", "ABC"}, {"text", "123456"}})));
      CHECK_FALSE(answers.has(written(format, "book", {{"code", "ABC"}, {"day", "2023-02-29"}})));
      CHECK_FALSE(answers.has(call + "}"));
      CHECK_FALSE(answers.has(call + format.call_close + "x"));
      CHECK_FALSE(answers.has(call + call + "x"));
      CHECK_FALSE(answers.has(call.substr(0, call.size() / 2)));
      if (has_mark(format) && !format.has_channels) {
        const std::string mark = format.list_open + format.call_open;
        CHECK_FALSE(answers.has("Use " + mark + " to call."));
        CHECK_FALSE(answers.has("Use " + mark + " to call." + call));
      }
    }
  }
}

TEST_CASE("random texts of the language are read as calls of tools, with arguments that meet their schemas") {
  for (const auto& row : known_formats()) {
    for (const bool are_tokens : {false, true}) {
      const CallFormat& format = row.format;
      CAPTURE(format.family);
      CAPTURE(are_tokens);
      CallLanguageOptions options;
      options.choice = are_tokens ? ToolChoice::required : ToolChoice::automatic;
      options.text_first = true;
      Answers answers(format, are_tokens, options);
      CounterRng rng(are_tokens ? 1 : 2);
      const std::string call = written(format, "add-two", {{"a", 1}, {"b", 2}});
      const std::size_t name = call.find("add-two");
      std::size_t found = 0;
      for (std::size_t i = 0; i < 60; ++i) {
        const std::size_t sizes[] = {0, rng.next() % call.size(), name, name + 8};
        const std::string thoughts = i % 8 < 4 ? "" : with_thoughts(format, "");
        const std::string begin = thoughts + call.substr(0, sizes[i % 4]);
        const std::string bytes = answers.texts.random(answers.tokens.bytes_of(begin), rng.next() % 200, rng);
        const std::string answer = answers.tokens.answer_of(bytes);
        CAPTURE(answer);
        const Parsed parsed_answer = parsed(format, language_types, answer);
        REQUIRE((!parsed_answer.calls.empty() || options.choice == ToolChoice::automatic));
        for (const Call& each : parsed_answer.calls) {
          CAPTURE(each.name);
          CAPTURE(each.arguments);
          REQUIRE(each.is_complete);
          REQUIRE(meets(each));
          ++found;
        }
      }
      CHECK(found > 18);
    }
  }
}

TEST_CASE("changed answers that are still in the language have calls of tools with good arguments") {
  for (const auto& row : known_formats()) {
    const CallFormat& format = row.format;
    CAPTURE(format.family);
    Answers answers(format);
    CounterRng rng(3);
    const auto draw = [&rng](std::size_t below) { return static_cast<std::size_t>(rng.next() % below); };
    const std::string calls =
        format.is_parallel ? written_twice(format) : written(format, "get_weather", weather_arguments);
    const std::string whole = with_thoughts(format, with_text(format, calls));
    const std::vector<std::string_view> units = calls::detail::units_of(whole);
    std::size_t accepted = 0;
    for (int i = 0; i < 200; ++i) {
      std::string changed = draw(4) == 0 ? calls : whole;
      for (std::size_t n = draw(4); n > 0; --n) {
        const std::size_t at = draw(changed.size());
        if (draw(3) == 0) {
          changed.erase(at, 1 + draw(9));
        } else if (draw(3) == 0) {
          changed.insert(at, " \n"[draw(2)] + std::string(draw(2), ' '));
        } else if (draw(2) == 0) {
          changed.insert(at, units[draw(units.size())]);
        } else {
          changed.insert(0, whole.substr(draw(whole.size())));
        }
        if (changed.empty()) changed = calls;
      }
      if (!answers.has(changed)) continue;
      ++accepted;
      CAPTURE(changed);
      for (const Call& call : parsed(format, language_types, changed).calls) {
        CAPTURE(call.name);
        CAPTURE(call.arguments);
        REQUIRE(call.is_complete);
        REQUIRE(meets(call));
      }
    }
    CHECK(accepted > 40);
  }
}

TEST_CASE("a call that is required begins with forced text, up to the first value") {
  for (const auto& row : known_formats()) {
    const CallFormat& format = row.format;
    CAPTURE(format.family);
    CallLanguageOptions options;
    options.choice = ToolChoice::named;
    options.name = "get_weather";
    options.thoughts = false;
    Answers answers(format, true, options);
    const std::string call = written(format, "get_weather", weather_arguments);
    const std::string forced = answers.tokens.answer_of(answers.texts.forced(""));
    CAPTURE(forced);
    const bool has_id = !format.keys.id.empty() && format.keys.id_first;
    const bool has_number = !format.id.open.empty();
    const std::size_t up_to = call.find(has_id ? "aBc" : has_number ? "get_weather" : "city");
    CHECK(forced.size() >= up_to);
    CHECK(call.starts_with(forced));
    CHECK(answers.has(call));
    CHECK_FALSE(answers.has("Hi"));
    CHECK_FALSE(answers.has(written(format, "now", Json::object())));
  }
}

TEST_CASE("tokens of the opening are forced, and a wrong one is not allowed") {
  const CallFormat format;
  const std::vector<std::string_view> names = {
      "<tool_call>", "</tool_call>", "{\"name\": \"", "get", "now", "\", \"arguments\": ", "{}",
      "}",           "\n",           "_weather"};
  std::vector<constraint::TokenBytes> bytes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    bytes.push_back({id, i < 2 ? constraint::TokenTrie::special_text(id) : std::string(names[i])});
  }
  constexpr TokenId end = 10;
  const auto trie = std::make_shared<constraint::TokenTrie>(bytes, 11, std::vector<TokenId>{end}, end);
  CallLanguageOptions options{.choice = ToolChoice::required, .parallel = false, .thoughts = false};
  options.tokens = std::span(names).subspan(0, 2);
  options.token_bytes = [&](std::string_view text) {
    return std::string(trie->bytes_of(TokenId{text == names[0] ? 0U : 1U}));
  };
  constraint::Grammar grammar(trie, call_language(format, language_tools, options));
  std::vector<TokenId> forced(16);
  forced.resize(grammar.forced(forced));
  CHECK(forced == std::vector<TokenId>{0, 8, 2});
  for (const TokenId id : forced) REQUIRE(grammar.advance(id));
  CHECK_FALSE(grammar.advance(5));
  REQUIRE(grammar.advance(4));
  forced.assign(16, 0);
  forced.resize(grammar.forced(forced));
  CHECK(forced == std::vector<TokenId>{5, 6, 7, 8, 1, end});
}

TEST_CASE("choices: calls that are required, a single call, no call, text before calls") {
  for (const auto& row : known_formats()) {
    const CallFormat& format = row.format;
    CAPTURE(format.family);
    const std::string call = written(format, "now", Json::object());
    CallLanguageOptions options;
    options.choice = ToolChoice::required;
    {
      Answers answers(format, false, options);
      CHECK(answers.has(call));
      CHECK(answers.has(with_thoughts(format, call)));
      if (has_mark(format)) CHECK_FALSE(answers.has(with_text(format, call)));
      CHECK_FALSE(answers.has(""));
      CHECK_FALSE(answers.has(with_thoughts(format, "")));
      CHECK((!format.is_parallel || answers.has(written_twice(format))));
    }
    options.text_first = true;
    options.thoughts = options.parallel = false;
    {
      Answers answers(format, false, options);
      CHECK(answers.has(with_text(format, call)));
      CHECK_FALSE(answers.has(with_text(format, written_twice(format))));
      CHECK_FALSE(answers.has(with_text(format, "")));
      CHECK_FALSE(answers.has(with_thoughts(format, call)));
    }
    options = {.choice = ToolChoice::none};
    {
      Answers answers(format, false, options);
      const std::string text =
          format.has_channels ? "<|channel|>final<|message|>Hi" : with_text(format, "Hi");
      CHECK(answers.has(text));
      CHECK(answers.has(with_thoughts(format, text)));
      CHECK_FALSE(answers.has(call));
      CHECK_FALSE(answers.has(with_text(format, call)));
    }
    options = {.text_first = false};
    {
      Answers answers(format, false, options);
      CHECK(answers.has(call));
      if (has_mark(format)) CHECK_FALSE(answers.has(with_text(format, call)));
    }
  }
}

TEST_CASE("strings do not contain the text that ends answers, and thoughts need a template that has them") {
  CallFormat format;
  CallLanguageOptions options;
  options.stop = "<|im_end|>";
  options.schema.whitespace = schema::Whitespace::compact;
  const std::string list = R"([{"name":"f","parameters":{"properties":{"a":{"type":"string"}}}}])";
  LanguageTexts texts(calls::call_language(format, list, options));
  CHECK(texts.has(written_calls(format, {{"f", R"({"a":"<|im_en"})"}})));
  CHECK_FALSE(texts.has(written_calls(format, {{"f", R"({"a":"<|im_end|>"})"}})));
  CHECK(texts.has(with_thoughts(format, "Yes.")));
  const std::string fixed =
      R"({"name":"f","parameters":{"properties":{"a":{"const":"x<|im_end|>"}},"required":["a"]}})";
  CHECK_THROWS_AS(static_cast<void>(calls::call_language(format, "[" + fixed + "]", options)), Error);
  CHECK_THROWS_AS(static_cast<void>(calls::call_language(format, R"([{"name":"<|im_end|>"}])", options)),
                  Error);
  options.text_schema = R"({"type":"string"})";
  LanguageTexts alone(calls::call_language(format, "[]", options));
  CHECK(alone.has(R"("a<|im_en")"));
  CHECK_FALSE(alone.has(R"("a<|im_end|>")"));
  format.may_think = false;
  options.text_schema.clear();
  options.choice = ToolChoice::required;
  LanguageTexts plain(calls::call_language(format, list, options));
  CHECK_FALSE(plain.begins("<think>"));
}

TEST_CASE("an answer has a maximum of calls") {
  const CallFormat format;
  CallLanguageOptions options;
  options.max_calls = 3;
  LanguageTexts texts(calls::call_language(format, language_tools, options));
  const Call now{"now", "{}"};
  CHECK(texts.has(written_calls(format, {now, now, now})));
  CHECK_FALSE(texts.begins(written_calls(format, {now, now, now}) + format.separator + format.call_open));
}

TEST_CASE("a schema of the text: thoughts, then JSON or a call") {
  const std::string json = R"({"a":7})", schema = R"({"type":"object","properties":{"a":{"type":"integer"}},
    "required":["a"],"additionalProperties":false})";
  for (const auto& row : known_formats()) {
    const CallFormat& format = row.format;
    CAPTURE(format.family);
    const auto in_channel = [&](const std::string& text) {
      return format.has_channels ? "<|channel|>final<|message|>" + text : text;
    };
    CallLanguageOptions options;
    options.text_schema = schema;
    options.schema.whitespace = schema::Whitespace::compact;
    LanguageTexts alone(calls::call_language(format, "[]", options));
    CHECK(alone.has(in_channel(json)));
    CHECK(alone.has(with_thoughts(format, in_channel(json))));
    CHECK_FALSE(alone.has(with_thoughts(format, "")));
    CHECK_FALSE(alone.has(in_channel("Hi")));
    CHECK_FALSE(alone.has(written(format, "now", Json::object())));
    if (format.notation == Notation::python || format.notation == Notation::bare) {
      CHECK_THROWS_AS(static_cast<void>(calls::call_language(format, language_tools, options)), Error);
      continue;
    }
    LanguageTexts beside(calls::call_language(format, language_tools, options));
    const std::string call = written(format, "now", Json::object());
    CHECK(beside.has(in_channel(json)));
    CHECK(beside.has(call));
    CHECK(beside.has(with_thoughts(format, in_channel(json))));
    CHECK(beside.has(with_thoughts(format, call)));
    CHECK_FALSE(beside.has(in_channel("Hi")));
    options.choice = ToolChoice::required;
    LanguageTexts required(calls::call_language(format, language_tools, options));
    CHECK(required.has(call));
    CHECK_FALSE(required.has(in_channel(json)));
    options.choice = ToolChoice::none;
    LanguageTexts none(calls::call_language(format, language_tools, options));
    CHECK(none.has(in_channel(json)));
    CHECK_FALSE(none.has(call));
  }
  CallLanguageOptions options;
  options.text_schema = schema;
  options.schema.whitespace = schema::Whitespace::compact;
  options.prompt = "assistant<think>\n";
  LanguageTexts open(calls::call_language({}, "[]", options));
  CHECK(open.has("hm</think>\n" + json));
  CHECK_FALSE(open.has(json));
}

}  // namespace mica::test::call_language_test
