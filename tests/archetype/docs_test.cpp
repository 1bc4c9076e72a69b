// SPDX-License-Identifier: Apache-2.0
//
// Code on pages that names its file is in that file, word for word.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::docs_test {
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

/// A file without its namespace of tests: pages show its includes and its class as a program has them.
std::string as_shown(std::string text) {
  const std::string_view opens = "namespace mica::archetype {\n\n";
  const std::size_t at = text.find(opens);
  return at == text.npos ? text : text.erase(at, opens.size());
}

/// The names of a struct's fields, one to a line of the file.
std::vector<std::string> fields_of(const std::filesystem::path& file, const std::string& type) {
  const std::string text = contents(file);
  const std::size_t begin = text.find("\nstruct " + type + " {\n");
  REQUIRE(begin != text.npos);
  const std::string body = text.substr(begin, text.find("\n};\n", begin) - begin);
  const std::regex field(R"(\n  [A-Za-z:_]+(?:<[^>]*>)? (\w+)(?: =|;))");
  std::vector<std::string> names;
  for (std::sregex_iterator at(body.begin(), body.end(), field), end; at != end; ++at)
    names.push_back((*at)[1]);
  return names;
}

}  // namespace

TEST_CASE("every number of a model, attention, a delta net and a mixture is on the page of families") {
  const std::filesystem::path root = MICA_SOURCE, configs = root / "include/mica";
  const std::string page = contents(root / "docs/policies/arch.md");
  std::size_t fields = 0;
  for (const std::pair<const char*, const char*>& each : {std::pair("arch/config.hpp", "Config"),
                                                          {"block/attention_config.hpp", "AttentionConfig"},
                                                          {"block/detail/gated_delta.hpp", "DeltaNetConfig"},
                                                          {"block/detail/routing.hpp", "ExpertsConfig"}}) {
    for (const std::string& field : fields_of(configs / each.first, each.second)) {
      CAPTURE(each.second);
      CAPTURE(field);
      CHECK(page.find("`" + field + "`") != page.npos);
      ++fields;
    }
  }
  CHECK(fields >= 50);
}

TEST_CASE("code that a page quotes is compiled code") {
  const std::filesystem::path root = MICA_SOURCE;
  std::size_t quotes = 0;
  for (const auto& page : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (page.path().extension() != ".md") continue;
    CAPTURE(page.path().string());
    for_each_quote(contents(page.path()), [&](const std::string& file, const std::string& code) {
      CAPTURE(file);
      CHECK(as_shown(contents(root / file)).find(code) != std::string::npos);
      ++quotes;
    });
  }
  CHECK(quotes >= 20);
}

}  // namespace mica::test::docs_test
