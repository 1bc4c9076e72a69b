// SPDX-License-Identifier: Apache-2.0

#if __has_include(<nlohmann/json.hpp>)
#include "mica_tools/json/parse_json.hpp"

#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace mica::test::parse_json_test {
namespace {

Error refused(const std::string& text, ErrorCode code = ErrorCode::file) {
  Error error = refusal([&] { return io::parse_json(text, "config.json", code); });
  CHECK(error.code() == code);
  return error;
}

}  // namespace

TEST_CASE("JSON becomes a document, in the order that the type keeps") {
  CHECK(io::parse_json(R"({"b": 1, "a": [2, 0.5]})", "x")["a"][1] == 0.5);
  CHECK(io::parse_json<nlohmann::ordered_json>(R"({"b": 1, "a": 2})", "x").begin().key() == "b");
  CHECK(io::parse_json("1.7e308", "x").is_number_float());
  CHECK(io::parse_json("1" + std::string(300, '0'), "x").is_number_float());  // too long for an integer
}

TEST_CASE("a number that no double holds is refused by name, key and its first digits") {
  CHECK(refused(R"({"a": 1, "rope_theta": 1e999})").message() ==
        "config.json: key 'rope_theta' is 1e999, which is beyond the largest number, 1.8e308");
  CHECK(mentions(refused(R"({"x": {"y": 1}, "rope_scaling": {"z": [], "factor": [1, -1e999]}})"),
                 "key 'rope_scaling.factor' is -1e999,"));
  CHECK(mentions(refused("[1e999]", ErrorCode::usage), "config.json: 1e999, which"));
  const Error digits = refused(R"({"vocab_size": )" + std::string(5'000, '7') + "}");
  CHECK(mentions(digits, "key 'vocab_size' is " + std::string(40, '7') + "...,"));
  CHECK(digits.message().size() < 200);
  const Error key = refused(R"({")" + std::string(5'000, 'k') + R"(": 1e999})");
  CHECK(key.message().size() < 300);
  CHECK(mentions(refused(std::string("{\"a\\u001b[2J\": 1e999}")), "key 'a\\x1b[2J' is"));
}

TEST_CASE("what is no JSON is refused with the place, and what nests too deep without being built") {
  for (const std::string text :
       {"", "{", "{\"a\":", "nil", "{\"a\": 1,}", "[1 2]", "\"\xFF\"", "1e", "--1", "{} {}"}) {
    CAPTURE(text);
    CHECK(mentions(refused(text), "config.json: is not JSON: something is wrong at line "));
  }
  CHECK(io::parse_json(std::string(64, '[') + std::string(64, ']'), "x").is_array());
  CHECK(mentions(refused(std::string(1'000'000, '[')), "nests deeper than 64 levels"));
  CHECK(mentions(refused(std::string(66, '[') + "1e999", ErrorCode::usage), "nests deeper"));
}

}  // namespace mica::test::parse_json_test
#endif
