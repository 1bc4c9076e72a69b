// SPDX-License-Identifier: Apache-2.0
//
// Values in other notations as JSON.

#include "mica_tools/calls/detail/json_converter.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace mica::test::json_converter_test {

namespace {

using calls::detail::JsonConverter;

std::string json_of(std::string_view text, std::string_view quote = {}) {
  JsonConverter converter(quote);
  std::string out;
  for (const char c : text) converter.put(c, out);
  converter.finish(out);
  CHECK(nlohmann::json::accept(out));
  return out;
}

/// The arguments of a call in Python, behind the bracket that opens it.
std::string call_of(std::string_view text) {
  JsonConverter converter;
  std::string out;
  converter.open_object(out);
  for (const char c : text) converter.put(c, out);
  converter.finish(out);
  CHECK(nlohmann::json::accept(out));
  return out;
}

}  // namespace

TEST_CASE("JSON stays JSON") {
  CHECK(json_of(R"({"a":1,"b":[true,false,null],"c":{"d":"e"}})") ==
        R"({"a": 1, "b": [true, false, null], "c": {"d": "e"}})");
  CHECK(json_of(R"(["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"])") == R"(["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"])");
  CHECK(json_of("[-0, 0.5, 1e9, -1.5E-3, 123456789012345678901234567890]") ==
        "[-0, 0.5, 1e9, -1.5E-3, 123456789012345678901234567890]");
  CHECK(json_of("{ }") == "{}");
  CHECK(json_of("[[],{}]") == "[[], {}]");
  CHECK(json_of("3") == "3");
  CHECK(json_of("\"\"") == "\"\"");
}

TEST_CASE("literals of Python become JSON") {
  CHECK(
      call_of("city='K\u00F6ln \"S\u00FCd\"', n = -3, ok=True, none=None, t=(1, 2.5), d={'a': [False]})") ==
      "{\"city\": \"K\u00F6ln \\\"S\u00FCd\\\"\", \"n\": -3, \"ok\": true, \"none\": null, \"t\": [1, 2.5], "
      "\"d\": {\"a\": [false]}}");
  CHECK(call_of(")") == "{}");
  CHECK(json_of(R"('it\'s \x41 \d')") == R"("it's \u0041 \\d")");
}

TEST_CASE("keys without quotes and strings between marks become JSON") {
  CHECK(json_of("{city:<|\"|>a \"b\" \\ <|x<|\"|>,n:3,o:{k:[<|\"|>v<|\"|>]},e:<|\"|><|\"|>}", "<|\"|>") ==
        R"({"city": "a \"b\" \\ <|x", "n": 3, "o": {"k": ["v"]}, "e": ""})");
  CHECK(json_of("{a:<escape>b<escape>}", "<escape>") == R"({"a": "b"})");
  CHECK(json_of("{a:\"plain\"}", "<|\"|>") == R"({"a": "plain"})");
  CHECK(json_of("{a:'plain',b:''both''}", "''") == R"({"a": "plain", "b": "both"})");
  CHECK(json_of("{a:<|\"|>b<|\"", "<|\"|>") == R"({"a": "b<|\""})");  // the end of the text
}

TEST_CASE("what is no JSON becomes JSON all the same") {
  CHECK(json_of("") == "null");
  CHECK(json_of("Bonn") == "\"Bonn\"");
  for (const char* const word : {"01", "1e", "1e+", "1E-", "-", "1.", ".5", "1e5x", "1e5.0"})
    CHECK(json_of(word) == '"' + std::string(word) + '"');
  for (const char* const number : {"-0.5", "1e5", "1E+5", "10e-20"}) CHECK(json_of(number) == number);
  CHECK(json_of("]") == "null");
  CHECK(json_of("}1") == "1");
  CHECK(json_of("{\"a\" 1}") == "{\"a\": 1}");
  CHECK(json_of("{\"a\"}") == "{\"a\": null}");
  CHECK(json_of("{\"a\": , \"b\"}") == "{\"a\": null, \"b\": null}");
  CHECK(json_of("{[1], 2: 3}") == "{\"\": [1], \"2\": 3}");
  CHECK(json_of("[1 2,,3:4]") == "[1, 2, 3, 4]");
  CHECK(json_of("{\"a\": [1}") == "{\"a\": [1]}");
  CHECK(json_of("{\"a\": \"b") == "{\"a\": \"b\"}");
  CHECK(json_of("[\"a\tb\x01\\u12\"]") == R"(["a\u0009b\u0001\\u12"])");
  CHECK(json_of("[\"\\") == "[\"\"]");
  CHECK(json_of("{a:<|\"", "<|\"|>") == "{\"a\": null}");
}

TEST_CASE("depth and words have limits") {
  const std::string deep = json_of(std::string(1000, '[') + "1" + std::string(1000, ']'));
  CHECK(deep ==
        std::string(JsonConverter::max_depth, '[') + "1" + std::string(JsonConverter::max_depth, ']'));
  CHECK(json_of("[" + std::string(3000, 'a') + "]").size() > 3000);
}

TEST_CASE("nothing is read behind the value") {
  JsonConverter converter;
  std::string out;
  for (const char c : std::string_view("{\"a\": 1}")) converter.put(c, out);
  CHECK(converter.is_done());
  converter.put('x', out);
  CHECK(out == "{\"a\": 1}");
  for (const char* const text : {"1,2", "1]", "1\"a\"", "1{}", "1 2"}) CHECK(json_of(text) == "1");
}

}  // namespace mica::test::json_converter_test
