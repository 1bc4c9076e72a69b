// SPDX-License-Identifier: Apache-2.0
//
// The parser on answers in the format of each known family, cut at each place, and on answers that are wrong.

#include "mica_tools/calls/call_parser.hpp"

#include "answers.hpp"
#include "mica_tools/calls/known_formats.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::call_parser_test {

namespace {

using calls::format_named;
using calls::known_formats;

const std::vector<ToolTypes> tools = {{"get_weather", {"days", "list", "flag", "none"}},
                                      {"add-two", {"a", "b"}}};

/// Calls whose strings have everything that could end them.
std::vector<Call> calls_for(const CallFormat& format) {
  std::string city = "K\u00F6ln \u6771 \"S\u00FCd\" 'x' {a} [b] (c) C:\\dir\\n \n\t ";
  for (const std::string& mark : {format.call_close, format.parameter.close, format.list_close})
    city += mark + " x";
  const Json first = {{"city", city},  {"days", 3},       {"list", {1, {{"k", "v}\""}}, {true, nullptr}}},
                      {"flag", false}, {"none", nullptr}, {"note", ""}};
  std::vector<Call> out = {{"get_weather", first.dump()}, {"add-two", R"({"a":-1.5e3,"b":2})"}};
  if (!format.is_parallel && !format.has_channels) out.pop_back();
  const bool has_id = !format.keys.id.empty() || (!format.id.open.empty() && !format.id.is_number);
  for (std::size_t i = 0; has_id && i < out.size(); ++i) out[i].id = i == 0 ? "aBc123xyz" : "000000001";
  return out;
}

struct Answer {
  std::string text;
  Parsed wanted;
};

/// Thoughts, text where the family may write some before calls, and calls.
Answer answer_in(const CallFormat& format) {
  const std::vector<Call> calls = calls_for(format);
  const bool has_text =
      (format.list_open + format.call_open).find_first_not_of("[{( \n") != std::string::npos;
  const std::string between = "<|end|><|start|>assistant";
  Answer out;
  out.wanted = {"Hm, <b>\n\nso.", has_text ? "I look <tool> it up [1]." : "", calls, "", true};
  if (format.has_channels) {
    out.text = "<|channel|>analysis<|message|>" + out.wanted.thoughts + between +
               "<|channel|>commentary<|message|>" + out.wanted.text + between;
    for (std::size_t i = 0; i < calls.size(); ++i)
      out.text += (i > 0 ? "<|start|>assistant" : "") + written_calls(format, {calls[i]});
  } else {
    const std::string open = format.family == "functionary-3.2" ? ">>>all\n" : "";
    out.text = format.thoughts.open + "\n" + out.wanted.thoughts + "\n" + format.thoughts.close + "\n\n" +
               (has_text ? open + out.wanted.text + "\n\n" : "") + written_calls(format, calls) + "\n";
  }
  return out;
}

/// Arguments are compared as values, the rest as text.
void check_same(const Parsed& found, const Parsed& wanted, const CallFormat& format) {
  CHECK(found.thoughts == wanted.thoughts);
  CHECK(found.text == wanted.text);
  CHECK(found.is_ended);
  REQUIRE(found.calls.size() == wanted.calls.size());
  for (std::size_t i = 0; i < wanted.calls.size(); ++i) {
    CHECK(found.calls[i].name == wanted.calls[i].name);
    CHECK(Json::parse(found.calls[i].arguments) == Json::parse(wanted.calls[i].arguments));
    CHECK(found.calls[i].is_complete);
    if (!format.id.is_number) CHECK(found.calls[i].id == wanted.calls[i].id);
  }
}

CallFormat hermes() { return {}; }

Parsed parsed_by(const std::string& family, std::string_view answer, std::string_view prompt = {}) {
  const CallFormat format = format_named(family);
  REQUIRE(format.family == family);
  const Parsed whole = parsed(format, tools, answer, prompt);
  CHECK(parsed(format, tools, answer, prompt, 1, 1) == whole);
  return whole;
}

}  // namespace

TEST_CASE("thoughts, text and two calls are found in the format of each family, however they are cut") {
  for (const auto& row : known_formats()) {
    CAPTURE(row.format.family);
    const Answer answer = answer_in(row.format);
    CAPTURE(answer.text);
    const Parsed whole = parsed(row.format, tools, answer.text);
    check_same(whole, answer.wanted, row.format);
    const Parsed bytes = parsed(row.format, tools, answer.text, {}, 1, 1);
    CHECK(bytes == whole);
    std::size_t different = 0;
    for (std::size_t i = 1; i < answer.text.size(); ++i)
      different += parsed(row.format, tools, answer.text, {}, i) == whole ? 0 : 1;
    CHECK(different == 0);
  }
}

TEST_CASE(
    "an answer that is cut off anywhere gives what is certain, and no call is called complete too early") {
  for (const auto& row : known_formats()) {
    CAPTURE(row.format.family);
    const Answer answer = answer_in(row.format);
    const Parsed whole = parsed(row.format, tools, answer.text);
    for (std::size_t size = 0; size < answer.text.size(); ++size) {
      CAPTURE(size);
      const std::string_view part = std::string_view(answer.text).substr(0, size);
      const Parsed found = parsed(row.format, tools, part);
      if (size % 8 == 0) {
        const bool is_same = parsed(row.format, tools, part, {}, 1, 1) == found;
        REQUIRE(is_same);
      }
      REQUIRE(found.is_ended);
      REQUIRE(found.calls.size() <= whole.calls.size());
      for (std::size_t i = 0; i < found.calls.size(); ++i) {
        REQUIRE(found.calls[i].name == whole.calls[i].name);
        if (found.calls[i].is_complete) REQUIRE(found.calls[i].arguments == whole.calls[i].arguments);
        if (row.format.notation == Notation::json)
          REQUIRE(whole.calls[i].arguments.starts_with(found.calls[i].arguments));
      }
    }
  }
}

TEST_CASE("any bytes give events that end, and the same ones however they are cut") {
  unsigned state = 7;
  const auto random = [&state](std::size_t below) {
    state = state * 1664525U + 1013904223U;
    return static_cast<std::size_t>(state >> 8) % below;
  };
  for (const auto& row : known_formats()) {
    CAPTURE(row.format.family);
    const std::string text = answer_in(row.format).text;
    for (int i = 0; i < 25; ++i) {
      std::string wrong = text;
      for (std::size_t n = 1 + random(4); n > 0; --n) {
        const std::size_t at = random(wrong.size());
        if (random(3) == 0) {
          wrong.erase(at, 1 + random(20));
        } else if (random(2) == 0) {
          wrong.insert(at, text.substr(random(text.size()), random(30)));
        } else {
          wrong[at] = "{}[]()\"'\\<>:=,\n x"[random(17)];
        }
        if (wrong.empty()) wrong = "x";
      }
      CAPTURE(wrong);
      const Parsed whole = parsed(row.format, tools, wrong);
      const bool is_same =
          parsed(row.format, tools, wrong, {}, 1, 1) == whole &&
          parsed(row.format, tools, wrong, {}, random(wrong.size()) + 1, 1 + random(9)) == whole;
      REQUIRE(is_same);
      REQUIRE(whole.is_ended);
      for (Call call : whole.calls) {
        for (char& c : call.arguments)
          c = static_cast<unsigned char>(c) < 0x80 ? c : '?';  // may be half a character
        if (call.is_complete) REQUIRE(Json::accept(call.arguments));
      }
    }
  }
}

TEST_CASE("answers as models write them") {
  const auto only = [](const Parsed& found) {
    REQUIRE(found.calls.size() == 1);
    CHECK(found.calls[0].is_complete);
    return found.calls[0];
  };
  const Call weather{"get_weather", R"({"city": "Bonn", "days": 3})"};
  const std::string json = R"({"city": "Bonn", "days": 3})";
  CHECK(only(parsed_by("hermes", "<tool_call>{\"name\":\"get_weather\",\"arguments\":" + json +
                                     "}</tool_call>")) == weather);
  CHECK(only(parsed_by(
            "qwen3-coder",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nBonn\n</parameter>\n<parameter=days>\n3\n"
            "</parameter>\n</function>\n</tool_call>")) == weather);
  CHECK(only(parsed_by("qwen3-coder",
                       "<function=get_weather>\n<parameter=city>\nBonn\n</parameter>\n<parameter=days>\n3\n"
                       "</parameter>\n</function>")) == weather);
  CHECK(only(parsed_by("glm-4.5",
                       "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Bonn</arg_value>\n"
                       "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>")) == weather);
  CHECK(only(parsed_by(
            "deepseek-v3",
            "<\uFF5Ctool\u2581calls\u2581begin\uFF5C><\uFF5Ctool\u2581call\u2581begin\uFF5C>function"
            "<\uFF5Ctool\u2581sep\uFF5C>get_weather\n```json\n" +
                json + "\n```<\uFF5Ctool\u2581call\u2581end\uFF5C><\uFF5Ctool\u2581calls\u2581end\uFF5C>")) ==
        weather);
  CHECK(only(parsed_by("llama-3",
                       "<|python_tag|>{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": " +
                           json + "}")) == weather);
  CHECK(only(parsed_by("llama-4", "[get_weather(city='Bonn', days=3)]")) == weather);
  CHECK(only(parsed_by("lfm2", "<|tool_call_start|>[get_weather(city=\"Bonn\", days=3)]<|tool_call_end|>")) ==
        weather);
  CHECK(only(parsed_by("gemma-4",
                       "<|tool_call>call:get_weather{city:<|\"|>Bonn<|\"|>,days:3}<tool_call|>")) == weather);
  CHECK(only(parsed_by(
            "functiongemma",
            "<start_function_call>call:get_weather{city:<escape>Bonn<escape>,days:3}<end_function_call>")) ==
        weather);
  CHECK(only(parsed_by("gpt-oss",
                       " to=functions.get_weather<|channel|>commentary json<|message|>" + json + "<|call|>",
                       "<|start|>assistant")) == weather);
  CHECK(only(parsed_by("granite", "<|tool_call|>[{\"arguments\": " + json +
                                      ", \"name\": \"get_weather\"}]")) == weather);
  CHECK(only(parsed_by("apertus", "<|tools_prefix|>[{\"get_weather\": " + json + "}]<|tools_suffix|>")) ==
        weather);
  CHECK(only(parsed_by("functionary-3.2", "get_weather\n" + json, "assistant<|end_header_id|>\n\n>>>")) ==
        weather);
  CHECK(parsed_by("functionary-3.2", "all\nHello", "assistant<|end_header_id|>\n\n>>>").text == "Hello");
}

TEST_CASE("an id is given where the family writes one") {
  const auto id = [](const std::string& family, std::string_view answer) {
    const Parsed found = parsed_by(family, answer);
    REQUIRE(found.calls.size() == 1);
    return found.calls[0].id;
  };
  CHECK(id("mistral", R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "abcdefghi"}])") ==
        "abcdefghi");
  CHECK(id("command-r",
           "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {}}\n]"
           "<|END_ACTION|>") == "0");
  CHECK(id("kimi-k2",
           "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:12<|tool_call_argument_begin|>{}"
           "<|tool_call_end|><|tool_calls_section_end|>") == "functions.f:12");
  CHECK(id("mistral-args", "[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{}") == "abcdefghi");
  CHECK(id("kimi-k3", "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|close|>call<|sep|>") ==
        "");
}

TEST_CASE("a call that is cut off is no text, wherever it is cut") {
  for (const auto& row : known_formats()) {
    const CallFormat& format = row.format;
    CAPTURE(format.family);
    const std::string whole = written_calls(format, calls_for(format));
    const std::string opening(calls::detail::trimmed(format.list_open + format.call_open));
    const std::size_t unit = opening.empty() ? 1 : calls::detail::unit_size(opening);
    for (std::size_t size = unit > 1 ? unit : std::max<std::size_t>(opening.size(), 1); size < whole.size();
         ++size) {
      const Parsed cut = parsed(format, tools, whole.substr(0, size));
      CAPTURE(whole.substr(0, size));
      CHECK(cut.text.empty());
    }
  }
}

TEST_CASE("text that only looks like a call is text") {
  const auto text = [](const std::string& family, std::string_view answer) {
    const Parsed found = parsed_by(family, answer);
    CHECK(found.calls.empty());
    return found.text;
  };
  for (const std::string_view answer :
       {"Use <tool_call> to call.", "<tool_call>\n{\"name\": \"f\", \"x\": 1}\n</tool_call>", "a < b\n\n<",
        "  x ", "<tool_call>\n{\"name\": \"f\", \"arguments\": \"{}\"}</tool_call>",
        "<tool_call>\n{\"\": 1}\n</tool_call>", "<tool_call>\n{}\n</tool_call>",
        "<tool_call>\n{\"arguments\": {}}\n</tool_call>", "<tool_call>\n{name: \"f\"}\n</tool_call>"})
    CHECK(text("hermes", answer) == answer);
  CHECK(text("llama-3", "{\"name\": \"Ada\", \"parameters\": {}}") ==
        "{\"name\": \"Ada\", \"parameters\": {}}");
  CHECK(text("llama-3", "{\"a\": [1, 2]} is JSON") == "{\"a\": [1, 2]} is JSON");
  CHECK(text("llama-3", "So: {\"name\": \"get_weather\", \"parameters\": {}}") ==
        "So: {\"name\": \"get_weather\", \"parameters\": {}}");
  CHECK(text("llama-4", "[get_weather](http://x)") == "[get_weather](http://x)");
  CHECK(text("llama-4", "[other(a=1)]") == "[other(a=1)]");
  CHECK(text("gpt-oss", "<|channel|>final<|message|>Plain.") == "Plain.");
  CHECK(text("gpt-oss", "Plain.") == "Plain.");
  CHECK(text("llama-4", "[get_weather(=1)]") == "[get_weather(=1)]");
  CHECK(text("gpt-oss", "<|channel|>commentary to=functions.get_weather<|message|>Bonn") == "Bonn");
  const std::string long_header = "<|channel|>" + std::string(600, 'a') + "<|message|>b";
  CHECK(text("gpt-oss", long_header) == long_header);
}

TEST_CASE("members of a call may have the keys of other families, and come in any order") {
  const std::string arguments = R"({"city": "Bonn"})";
  const std::vector<Call> wanted = {{"get_weather", arguments}};
  for (const std::string& members :
       {R"("name": "get_weather", "parameters": )" + arguments,
        R"("parameters": )" + arguments + R"(, "name": "get_weather")",
        R"("type": "function", "id": "x", "name": "get_weather", "arguments": )" + arguments,
        R"("id": 7, "arguments": )" + arguments + R"(, "type": {"a": [1]}, "name": "get_weather")",
        R"("name": "get_weather", "arguments": )" + arguments + R"(, "id": "x")"})
    CHECK(parsed_by("hermes", "<tool_call>\n{" + members + "}\n</tool_call>").calls == wanted);
  CHECK(parsed_by("llama-3", R"({"name": "get_weather", "arguments": )" + arguments + "}").calls == wanted);
  CHECK(parsed_by("command-r", "<|START_ACTION|>[{\"name\": \"get_weather\", \"parameters\": " + arguments +
                                   "}]<|END_ACTION|>")
            .calls == wanted);
}

TEST_CASE("without tools nothing is a call, and thoughts are found as before") {
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  const Parsed found = parsed(hermes(), {}, "<think>\nHm.\n</think>\n\n" + call);
  CHECK(found.thoughts == "Hm.");
  CHECK(found.text == call);
  CHECK(parsed(hermes(), tools, "Hm.\n</think>\n\nYes.", "<|im_start|>assistant\n<think>\n").thoughts ==
        "Hm.");
  CHECK(parsed_by("gemma-4", "Hm.\n<channel|>Yes.", "<|turn>model\n<|channel>thought\n").thoughts == "Hm.");
  CHECK(parsed(hermes(), tools, "Yes <think> no.").text == "Yes <think> no.");
  CHECK(parsed(format_named("gpt-oss"), {},
               "<|channel|>commentary to=functions.get_weather<|message|>{\"a\": 1}<|call|>")
            .text == "{\"a\": 1}");
  CHECK(parsed(hermes(), tools, "<think>Hm. </th").thoughts == "Hm. </th");
}

TEST_CASE("wrong arguments become JSON, and what is missing behind them is forgiven") {
  const auto arguments = [](const std::string& written) {
    const Parsed found = parsed_by("hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": " + written);
    REQUIRE(found.calls.size() == 1);
    CHECK(found.calls[0].is_complete);
    return found.calls[0].arguments;
  };
  CHECK(arguments("{}}\n</tool_call>") == "{}");
  CHECK(arguments("{\"a\": 1}") == "{\"a\": 1}");
  CHECK(arguments("{\"a\": 1}}\n</tool") == "{\"a\": 1}");
  CHECK(arguments("{'a': None, 'b': [True,],}}") == R"({"a": null, "b": [true]})");
  CHECK(arguments("{\"a\": \"two\nlines\", \"b\": }}") == R"({"a": "two\nlines", "b": null})");
  CHECK(parsed_by("hermes", "<tool_call>{\"name\": \"f\"}</tool_call>").calls.at(0).arguments == "{}");
  const Parsed cut = parsed_by("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"b");
  CHECK(cut.calls.at(0).arguments == "{\"a\": \"b");
  CHECK_FALSE(cut.calls.at(0).is_complete);
}

TEST_CASE("text behind calls and calls behind text keep their order") {
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  const Parsed found = parsed_by("hermes", "A" + call + "\n B " + call + call + "\nC\n");
  CHECK(found.order == "abcdabcdbcdae");
  CHECK(found.text == "ABC\n");
  CHECK(found.calls.size() == 3);
}

TEST_CASE("memory is bounded: text that never becomes a call is given") {
  const CallFormat format;
  calls::CallParser parser(format, tools);
  std::vector<CallEvent> events;
  const auto given = [&] {
    std::size_t size = 0;
    for (const CallEvent& event : events) size += event.text.size();
    return size;
  };
  parser.take("<tool_call>{\"name\": \"", events);
  for (int i = 0; i < 20000; ++i) parser.take("a", events);
  CHECK(given() > 10000);
  events.clear();
  calls::CallParser blank(format, tools);
  for (int i = 0; i < 1000; ++i) blank.take(" ", events);
  CHECK(given() > 700);
  const std::string spaces(300, ' ');
  CHECK(parsed(format, tools, "a" + spaces + "<tool_call>{\"name\":\"f\"}").text == "a" + spaces);
  CHECK(parsed(format, tools, "a" + spaces + "<tool_call>{\"name\":\"f\"}", {}, 1, 1).text == "a" + spaces);
  CHECK(parsed(format, tools, "a \n\n<tool_call>{\"name\":\"f\"}").text == "a");
}

}  // namespace mica::test::call_parser_test
