// SPDX-License-Identifier: Apache-2.0
//
// What pages and comments point at is there, and tables are tables.

#include "pages.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::pages_test {
namespace {

bool is_page(const SourceFile& file) { return file.ends_with(".md"); }

/// The anchor that a heading gets on the web.
std::string anchor_of(std::string_view heading) {
  std::string out;
  for (const char c : heading.substr(heading.find_first_not_of("# "))) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-') out += static_cast<char>(std::tolower(byte));
    if (c == ' ') out += '-';
  }
  return out;
}

bool has_anchor(const SourceFile& page, std::string_view anchor) {
  bool found = false;
  for_each_line(page, [&](std::size_t, const std::string& line) {
    found = found || (line.starts_with('#') && anchor_of(line) == anchor);
  });
  return found;
}

/// Where the links of a line lead, but for those to other sites.
std::vector<std::string> links_of(std::string_view text) {
  const std::string line = without_code(text);
  std::vector<std::string> links;
  for (std::size_t at = line.find("]("); at != line.npos; at = line.find("](", at + 1)) {
    const std::string link = line.substr(at + 2, line.find(')', at) - at - 2);
    if (link.find(':') == link.npos) links.push_back(link);
  }
  return links;
}

bool is_path_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' || c == '-';
}

/// Calls f(path) for each run of bytes of a path, but for files that a command writes; what is cut from a
/// pattern, such as docs/*.md, ends with its folder.
template <class F>
void for_each_path(std::string_view line, F&& f) {
  constexpr std::string_view open = "<>*{}$";
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at;
    while (end < line.size() && is_path_byte(line[end])) ++end;
    std::string_view path = line.substr(at, end - at);
    const bool cut = at > 0 && open.find(line[at - 1]) != open.npos;
    const bool written = line.substr(0, at).ends_with("--json ");
    if (end < line.size() && open.find(line[end]) != open.npos) path = path.substr(0, path.rfind('/') + 1);
    while (path.ends_with('.')) path.remove_suffix(1);
    if (!path.empty() && !cut && !written) f(std::string(path));
    at = end + 1;
  }
}

/// Names that stand for others, files of other projects, files of a user, files that a build or a run makes.
bool stands_for_another(std::string_view path) {
  constexpr std::array known = {"llama.cpp",     "ik_llama.cpp",     "gemma.cpp",
                                "my_format.hpp", "my_codec-inl.hpp", "examples/run/embedded.cpp"};
  for (const std::string_view each : known) {
    if (path == each) return true;
  }
  const bool placeholder = path.find("NAME") != path.npos || path.find("NN_") != path.npos;
  return placeholder || path.starts_with('-') || path.starts_with('_');  // the last two: endings of names
}

/// What a comment or a page says of a line; nothing of code.
std::string_view words_of(const SourceFile& file, std::string_view line) {
  if (is_page(file)) return line;
  const bool slashes = file.ends_with(".hpp") || file.ends_with(".cpp");
  const std::size_t at = line.find(slashes ? "//" : "#");
  if (slashes && line.find("#include") < at) return {};
  return at == line.npos ? std::string_view() : line.substr(at);
}

/// What a line of a file says behind some words, up to an end.
std::string between(std::string_view line, std::string_view begin, std::string_view end) {
  const std::size_t at = line.find(begin);
  if (at == line.npos) return {};
  const std::size_t from = at + begin.size();
  return std::string(line.substr(from, line.find(end, from) - from));
}

/// An axis of a Transformer as model/policies.hpp has it: the type that changes it, and its default.
struct Axis {
  std::string with, by_default;
};

std::vector<Axis> axes() {
  std::vector<std::string> defaults;
  std::vector<Axis> out;
  bool in_defaults = false;
  for (const std::string& line : tree().text("include/mica/model/policies.hpp").lines) {
    if (line == "struct DefaultPolicies {") in_defaults = true;
    if (line == "};") in_defaults = false;
    if (in_defaults && line.find(" = ") != line.npos) defaults.push_back(between(line, " = ", ";"));
    const std::string with = between(line, "struct With", " : detail::PolicyOf<");
    if (!line.starts_with("struct With")) continue;
    REQUIRE(out.size() < defaults.size());
    out.push_back({"With" + with, defaults[out.size()]});
  }
  REQUIRE(out.size() == defaults.size());
  return out;
}

}  // namespace

TEST_CASE("both tables of policies have every axis in order, with its default and a page") {
  const std::vector<Axis> all = axes();
  CHECK(all.size() >= 9);
  const auto overview = table_of(tree().text("README.md"), "| Policy |");
  const auto list = table_of(tree().text("docs/policies/README.md"), "| Axis |");
  REQUIRE(overview.size() == all.size());
  REQUIRE(list.size() == all.size() + 1);  // and the family
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].with);
    CHECK(overview[i].front() == "`" + all[i].with + "`");
    CHECK(overview[i].back().find("](docs/policies/") != std::string::npos);
    CHECK(list[i].front() == "`" + all[i].with + "`");
    CHECK(list[i].at(2) == "`" + all[i].by_default + "`");
    CHECK(list[i].back().find(".md)") != std::string::npos);
  }
}

TEST_CASE("every link of a page leads to a file, and to a heading of it where it names one") {
  std::size_t links = 0;
  for (const SourceFile& page : tree().texts) {
    if (!is_page(page)) continue;
    CAPTURE(page.name);
    for_each_line(page, [&](std::size_t number, const std::string& line) {
      for (const std::string& link : links_of(line)) {
        ++links;
        CAPTURE(number);
        CAPTURE(link);
        const std::string path = link.substr(0, link.find('#'));
        const auto there = (std::filesystem::path(page.name).parent_path() / path).lexically_normal();
        const std::string name = path.empty() ? page.name : there.generic_string();
        CHECK(tree().has(name));
        if (link.find('#') == link.npos || !name.ends_with(".md") || !tree().has(name)) continue;
        CHECK(has_anchor(tree().text(name), link.substr(link.find('#') + 1)));
      }
    });
  }
  CHECK(links > 100);
}

TEST_CASE("every row of a table has as many cells as its header, and every table has one") {
  std::size_t rows = 0;
  for (const SourceFile& page : tree().texts) {
    if (!is_page(page)) continue;
    CAPTURE(page.name);
    std::size_t cells = 0, last = 0;
    for_each_line(page, [&](std::size_t number, const std::string& line) {
      const auto row = cells_of(line);
      if (!line.starts_with("| ") && !line.starts_with("|-") && !line.starts_with("|:")) return;
      CAPTURE(number);
      ++rows;
      CHECK(line.ends_with('|'));
      if (last + 1 == number) {
        CHECK(row.size() == cells);
      } else {  // a header, and the line under it
        cells = row.size();
        const std::string under = number < page.lines.size() ? page.lines[number] : "";
        CHECK((under.starts_with("|-") || under.starts_with("| -")));
      }
      last = number;
    });
  }
  CHECK(rows > 300);
}

TEST_CASE("every path that a page, a comment or a script names is in the tree") {
  constexpr std::array folders = {"docs/",  "tests/",   "bench/",    "examples/",
                                  "cmake/", "include/", "packaging/"};
  constexpr std::array endings = {".hpp", ".cpp", ".md", ".py", ".cmake"};
  std::size_t paths = 0;
  for (const SourceFile& file : tree().texts) {
    CAPTURE(file.name);
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for_each_path(words_of(file, file.lines[i]), [&](const std::string& path) {
        const auto starts = [&](const char* folder) { return path.starts_with(folder); };
        const auto ends = [&](const char* ending) {
          return path.size() > std::string_view(ending).size() && path.ends_with(ending) && path[0] != '.';
        };
        const bool from_root = std::any_of(folders.begin(), folders.end(), starts);
        const bool is_file = std::any_of(endings.begin(), endings.end(), ends);
        if (path[0] == '/' || stands_for_another(path) || !(from_root || is_file)) return;
        ++paths;
        const std::string beside = (std::filesystem::path(file.name).parent_path() / path).generic_string();
        if (tree().has(path) || tree().has(beside) || (is_file && tree().has_file(path))) return;
        FAIL_CHECK(file.name, ", line ", i + 1, ": ", path, " is not in the tree");
      });
    }
  }
  CHECK(paths > 500);
}

}  // namespace mica::test::pages_test
