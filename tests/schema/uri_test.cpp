// SPDX-License-Identifier: Apache-2.0
//
// The examples of RFC 3986 (5.4) and RFC 6901 (5), and what they leave out.

#include "mica_tools/schema/uri.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::uri_test {

using namespace schema;

TEST_CASE("a reference means what RFC 3986 says that it means") {
  constexpr std::pair<std::string_view, std::string_view> examples[] = {{"g:h", "g:h"},
                                                                        {"g", "http://a/b/c/g"},
                                                                        {"./g", "http://a/b/c/g"},
                                                                        {"g/", "http://a/b/c/g/"},
                                                                        {"/g", "http://a/g"},
                                                                        {"//g", "http://g"},
                                                                        {"g?y", "http://a/b/c/g?y"},
                                                                        {"?y", "http://a/b/c/d;p?y"},
                                                                        {"g?y/./x", "http://a/b/c/g?y/./x"},
                                                                        {"g?y/../x", "http://a/b/c/g?y/../x"},
                                                                        {"/g/../h?y/..", "http://a/h?y/.."},
                                                                        {";x", "http://a/b/c/;x"},
                                                                        {"g;x", "http://a/b/c/g;x"},
                                                                        {"", "http://a/b/c/d;p?q"},
                                                                        {".", "http://a/b/c/"},
                                                                        {"./", "http://a/b/c/"},
                                                                        {"..", "http://a/b/"},
                                                                        {"../", "http://a/b/"},
                                                                        {"../g", "http://a/b/g"},
                                                                        {"../..", "http://a/"},
                                                                        {"../../g", "http://a/g"},
                                                                        {"../../../g", "http://a/g"},
                                                                        {"/./g", "http://a/g"},
                                                                        {"/../g", "http://a/g"},
                                                                        {"g.", "http://a/b/c/g."},
                                                                        {"..g", "http://a/b/c/..g"},
                                                                        {"./../g", "http://a/b/g"},
                                                                        {"./g/.", "http://a/b/c/g/"},
                                                                        {"g/../h", "http://a/b/c/h"},
                                                                        {"g;x=1/../y", "http://a/b/c/y"}};
  for (const auto& [reference, wanted] : examples) {
    const std::string text(reference);
    CAPTURE(text);
    CHECK(resolve_uri("http://a/b/c/d;p?q", reference) == wanted);
  }
}

TEST_CASE("a scheme begins with a letter, and has letters, digits and the signs + - .") {
  for (const std::string_view whole : {"HTTP://x/y", "a1+b-c.d:e", "zZ9:"})
    CHECK(resolve_uri("http://a/b", whole) == whole);
  for (const std::string_view path : {"1a:b", "+a:b", "a_b:c", "a/b:c", "a@b:c", "a~b:c"})
    CHECK(resolve_uri("http://a/b", path) == "http://a/" + std::string(path));
}

TEST_CASE("a base needs neither a path nor an authority") {
  CHECK(resolve_uri("http://a", "g") == "http://a/g");
  CHECK(resolve_uri("http://a?q", "g") == "http://a/g");
  CHECK(resolve_uri("http://a", "/g") == "http://a/g");
  CHECK(resolve_uri("urn:x", "g") == "urn:g");
  CHECK(resolve_uri("urn:x", "//g/h") == "urn://g/h");
  CHECK(resolve_uri("", "a/b") == "a/b");
  CHECK(resolve_uri("a/b", "c") == "a/c");
}

TEST_CASE("a fragment is what follows the first number sign") {
  CHECK(split_uri("a#b#c").before == "a");
  CHECK(split_uri("a#b#c").fragment == "b#c");
  CHECK(split_uri("a").before == "a");
  CHECK(split_uri("a").fragment.empty());
}

TEST_CASE("bytes after a percent sign are two hexadecimal digits") {
  CHECK(percent_decoded("a%20b%C3%a9%2F") == "a b\u00E9/");
  CHECK(percent_decoded("%4a%4F%00").value() == std::string("JO\0", 3));
  for (const std::string_view damaged : {"%", "%2", "a%g0", "%0g", "%:0", "%0/", "%`0", "%G0"})
    CHECK(percent_decoded(damaged) == std::nullopt);
}

TEST_CASE("a JSON pointer has keys behind slashes, and ~0 and ~1 are ~ and /") {
  using Keys = std::vector<std::string>;
  const std::pair<std::string_view, Keys> examples[] = {
      {"", {}},           {"/foo/0", {"foo", "0"}}, {"/", {""}},       {"/a~1b", {"a/b"}},
      {"/m~0n", {"m~n"}}, {"/~01", {"~1"}},         {"/c%d", {"c%d"}}, {"/ ", {" "}}};
  for (const auto& [pointer, keys] : examples) {
    const std::string text(pointer);
    CAPTURE(text);
    CHECK(pointer_keys(pointer) == keys);
    std::string written;
    for (const std::string& key : keys) written += "/" + pointer_part(key);
    CHECK(written == pointer);
  }
  CHECK(pointer_keys("/a~2b/c~") == Keys{"a~2b", "c~"});
}

}  // namespace mica::test::uri_test
