// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/remote/detail/head.hpp"

#include <doctest/doctest.h>

namespace mica::test::head_test {
namespace {

using remote::detail::ContentRange;
using remote::detail::Identity;

TEST_CASE("a place in a file is read from a Content-Range, with its size where that is known") {
  const auto range = ContentRange::parse("bytes 5-9/42000000000");
  REQUIRE(range);
  CHECK(range->first == 5);
  CHECK(range->last == 9);
  CHECK(range->size == 42'000'000'000u);
  REQUIRE(ContentRange::parse("bytes 0-0/*"));
  CHECK_FALSE(ContentRange::parse("bytes 0-0/*")->size);
  CHECK(ContentRange::parse("bytes 0-0/18446744073709551615")->size == UINT64_MAX);
}

TEST_CASE("a Content-Range that contradicts itself or is none says nothing") {
  for (const char* text : {"",
                           "bytes",
                           "bytes ",
                           "bytes */10",
                           "bytes 5-4/10",
                           "bytes 0-10/10",
                           "bytes 0-9/18446744073709551616",
                           "bytes -1-9/10",
                           "bytes +0-9/10",
                           "bytes 0-9",
                           "bytes 0/9-10",
                           "bytes 0-9/10 ",
                           "bytes 0-9/10/11",
                           "bytes  0-9/10",
                           "items 0-9/10",
                           "bytes 0x0-9/10",
                           "bytes 0-/10",
                           "bytes 0-9/",
                           "0-9/10",
                           "bytes a-b/c",
                           "bytes 0-0/0"}) {
    CAPTURE(text);
    CHECK_FALSE(ContentRange::parse(text));
  }
}

TEST_CASE("a file is known by its tag, by its date where it has none, and by its size always") {
  const Identity tagged{10, "\"a\"", "Monday"};
  CHECK(tagged.same_as({10, "\"a\"", "Tuesday"}));
  CHECK_FALSE(tagged.same_as({11, "\"a\"", "Monday"}));
  CHECK_FALSE(tagged.same_as({10, "\"b\"", "Monday"}));
  CHECK_FALSE(tagged.same_as({10, "", "Monday"}));
  const Identity dated{10, "", "Monday"};
  CHECK(dated.same_as({10, "", "Monday"}));
  CHECK_FALSE(dated.same_as({10, "", "Tuesday"}));
}

TEST_CASE("only what tells files apart exactly is a condition for a range") {
  CHECK(Identity{1, "\"a\"", "Monday"}.condition() == "\"a\"");
  CHECK(Identity{1, "W/\"a\"", "Monday"}.condition().empty());
  CHECK(Identity{1, "", "Monday"}.condition() == "Monday");
  CHECK(Identity{1, "", ""}.condition().empty());
  CHECK(Identity{1, "\"a\rb\"", ""}.condition().empty());
}

}  // namespace
}  // namespace mica::test::head_test
