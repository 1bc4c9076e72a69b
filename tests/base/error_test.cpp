// SPDX-License-Identifier: Apache-2.0

#include "mica/base/error.hpp"

#include "mica/base/assert.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace mica::test::error_test {

TEST_CASE("an error has a kind and a text made of parts") {
  try {
    raise(ErrorCode::file, "model.gguf", std::string_view(": key "), 3, ' ', true, std::string("!"));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::file);
    CHECK(error.message() == "model.gguf: key 3 true!");
    CHECK(std::string_view(error.what()) == error.message());
  }
}

TEST_CASE("a check that holds costs its parts nothing") {
  int made = 0;
  const auto part = [&] { return ++made; };
  MICA_CHECK(made == 0, usage, part());
  CHECK(made == 0);
  CHECK_THROWS_AS([&] { MICA_CHECK(made == 1, usage, part()); }(), Error);
  CHECK(made == 1);
}

TEST_CASE("text of unknown origin is shown without its tricks") {
  CHECK(escaped("plain text, 100 %") == "plain text, 100 %");
  CHECK(escaped("a\nb\x1b[31m\x7f") == "a\\x0ab\\x1b[31m\\x7f");
  CHECK(escaped("caf\xc3\xa9") == "caf\\xc3\\xa9");
  CHECK(escaped("back\\slash") == "back\\x5cslash");
  CHECK(escaped(std::string_view("\0x", 2)) == "\\x00x");
  CHECK(escaped("") == "");
}

TEST_CASE("long text is cut and says so") {
  CHECK(escaped(std::string(80, 'a')) == std::string(80, 'a'));
  CHECK(escaped(std::string(81, 'a')) == std::string(80, 'a') + "...");
  CHECK(escaped("abcdef", 3) == "abc...");
}

}  // namespace mica::test::error_test
