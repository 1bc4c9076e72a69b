// SPDX-License-Identifier: Apache-2.0
//
// Code on the pages of docs/policies that names its file is in that file, word for word.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace mica::test {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Calls f(file, code) for each "From `file`:" that is followed by a block of code.
template <class F>
void for_each_quote(const std::string& page, F&& f) {
  const std::string from = "\nFrom `", opens = "`:\n\n```cpp\n", closes = "\n```\n";
  for (std::size_t at = page.find(from); at != page.npos; at = page.find(from, at)) {
    at += from.size();
    const std::size_t named = page.find(opens, at);
    const std::size_t begin = named + opens.size(), end = page.find(closes, begin);
    REQUIRE(named != page.npos);
    REQUIRE(end != page.npos);
    f(page.substr(at, named - at), page.substr(begin, end - begin));
    at = end;
  }
}

}  // namespace

TEST_CASE("code that a policy's page quotes is compiled code") {
  const std::filesystem::path root = MICA_SOURCE;
  std::size_t quotes = 0;
  for (const auto& page : std::filesystem::directory_iterator(root / "docs/policies")) {
    CAPTURE(page.path().string());
    for_each_quote(contents(page.path()), [&](const std::string& file, const std::string& code) {
      CAPTURE(file);
      CHECK(contents(root / file).find(code) != std::string::npos);
      ++quotes;
    });
  }
  CHECK(quotes >= 10);
}

TEST_CASE("every axis has a page, and the list of pages leads to it") {
  const std::filesystem::path pages = std::filesystem::path(MICA_SOURCE) / "docs/policies";
  const std::string list = contents(pages / "README.md");
  for (const std::string page : {"weights.md", "kv-element.md", "kv-storage.md", "allocator.md", "pager.md",
                                 "kernels.md", "executor.md", "arch.md"}) {
    CAPTURE(page);
    CHECK(std::filesystem::exists(pages / page));
    CHECK(list.find("(" + page + ")") != std::string::npos);
  }
}

}  // namespace mica::test
