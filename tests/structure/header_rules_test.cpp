// SPDX-License-Identifier: Apache-2.0
//
// What every file under include/ has in common, and who alone may include what.

#include "source_tree.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace header_rules_test {

namespace {

using mica::test::SourceFile;

constexpr std::array heavy_includes = {"Eigen/",   "xsimd/",    "pcre2.h", "nlohmann/",
                                       "xxhash.h", "httplib.h", "mpi.h"};

// Kernel code that Highway compiles once per instruction set, and the units that ask it to.
bool is_per_target(const SourceFile& file) { return file.ends_with("-inl.hpp") || file.ends_with(".cpp"); }

bool mentions(const SourceFile& file, std::string_view text) {
  return std::any_of(file.lines.begin(), file.lines.end(),
                     [&](const std::string& line) { return line.find(text) != line.npos; });
}

bool includes(const SourceFile& file, std::string_view start) {
  const auto names = file.includes();
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.starts_with(start); });
}

// Headers that need more than Highway, that only a unit of kernels includes, that cost seconds and belong in one
// unit (the template engine, the converter), or that no user names; and what includes one of these.
std::set<std::string> optional_names(const std::vector<SourceFile>& files) {
  std::set<std::string> names;
  for (const auto& file : files) {
    const bool unit_only = is_per_target(file) || file.name == "mica/kernel/highway/dispatch.hpp" ||
                           file.name == "mica/kernel/highway/instantiate.hpp";
    const bool heavy = std::any_of(heavy_includes.begin(), heavy_includes.end(),
                                   [&](const char* start) { return includes(file, start); });
    const bool costly = file.name.starts_with("mica_jinja/") || file.name.starts_with("mica_tools/convert/");
    if (unit_only || costly || heavy) names.insert(file.name);
  }
  for (std::size_t before = 0; before != names.size();) {
    before = names.size();
    for (const auto& file : files) {
      if (mentions(file, "defined(MICA_HAS_")) continue;  // it compiles without, and says what it lacks
      for (const auto& included : file.includes()) {
        if (names.contains(included)) names.insert(file.name);
      }
    }
  }
  return names;
}

}  // namespace

TEST_CASE("a part of the build adds one header and changes nothing else") {
  std::size_t parts = 0;
  for (const auto& file : mica::test::library_files()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (!line.starts_with('#') || line.find("MICA_HAS_") == line.npos) continue;
      CAPTURE(file.name);
      CAPTURE(line);
      REQUIRE(i + 2 < file.lines.size());
      CHECK(line.starts_with("#if defined(MICA_HAS_"));
      CHECK(file.lines[i + 1].starts_with("#include \"mica/"));
      CHECK(file.lines[i + 1].find("/detail/") != std::string::npos);
      CHECK(file.lines[i + 2] == "#endif");
      ++parts;
    }
  }
  CHECK(parts == 2);  // mica::checksum, mica::text
}

// A macro that a unit may have and another unit of the program may lack gives one name two definitions.
TEST_CASE("what headers choose by macros is one choice for all units of a program") {
  const std::set<std::string> known = {
      // the system
      "_WIN32", "F_NOCACHE", "MADV_HUGEPAGE", "MADV_NOHUGEPAGE", "MAP_NORESERVE", "MAP_POPULATE", "O_DIRECT",
      "O_TMPFILE", "POLLRDHUP", "POSIX_FADV_DONTNEED", "POSIX_FADV_NORMAL", "POSIX_FADV_RANDOM",
      "POSIX_FADV_WILLNEED",
      // set by the dependency's own target for all who use it, or asked before it is included
      "CPPHTTPLIB_OPENSSL_SUPPORT", "HIGHWAY_HWY_FOREACH_TARGET_H_", "HWY_HIGHWAY_INCLUDED",
      "PCRE2_CODE_UNIT_WIDTH", "XXH_INLINE_ALL",
      // in the name of the namespace (kernel/highway/abi.hpp)
      "HWY_COMPILE_ONLY_STATIC",
      // in the type of every choice between instruction sets (kernel/highway/dispatch.hpp)
      "HWY_DISABLED_TARGETS", "HWY_WANT_AVX3_DL",
      // documented as settings of a whole program
      "MICA_EVEX_DOTS", "MICA_NO_BYTE_DOTS", "MICA_NO_MATRIX_UNIT",
      // declares what another unit compiles, and no definition changes
      "MICA_COMPILED_RUNTIME",
      // the test above
      "MICA_HAS_CHECKSUM", "MICA_HAS_TEXT"};
  for (const auto& file : mica::test::library_files()) {
    if (is_per_target(file)) continue;
    for (const std::string& line : file.lines) {
      if (!line.starts_with("#if") && !line.starts_with("#elif")) continue;
      const std::string code = line.substr(0, line.find("//"));
      for (std::size_t at = 0; at < code.size();) {
        std::size_t end = at;
        const auto in_word = [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
        };
        while (end < code.size() && in_word(code[end])) ++end;
        const std::string word = code.substr(at, end - at);
        at = std::max(end, at + 1);
        const bool named = !word.empty() && std::isupper(static_cast<unsigned char>(word.front())) != 0;
        if (!named && word != "_WIN32") continue;  // `defined`, a macro of the compiler
        CAPTURE(file.name);
        CAPTURE(word);
        CHECK(known.contains(word));
      }
    }
  }
}

TEST_CASE("what keeps a document refuses one that ends at once") {
  for (const auto& file : mica::test::library_files()) {
    const bool keeps = std::any_of(file.lines.begin(), file.lines.end(), [](const std::string& line) {
      return line.starts_with("  const gguf::Document") && line.ends_with(" document_;");
    });
    CAPTURE(file.name);
    CHECK((!keeps || mentions(file, "gguf::DocumentRef document")));
  }
}

TEST_CASE("every file begins with the licence line") {
  for (const auto& file : mica::test::library_files()) {
    CAPTURE(file.name);
    REQUIRE_FALSE(file.lines.empty());
    CHECK(file.lines.front() == "// SPDX-License-Identifier: Apache-2.0");
  }
}

TEST_CASE(
    "what a test file names is in a namespace of its own name, so that files can be compiled together") {
  const std::filesystem::path root = std::filesystem::path(MICA_SOURCE) / "tests";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".cpp" || !name.ends_with("_test")) continue;
    CAPTURE(name);
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("namespace ") || !line.ends_with("{") || line == "namespace {") continue;
      CHECK(line.find(name) != line.npos);
      break;
    }
  }
}

TEST_CASE("every header but the per-target ones is guarded by pragma once") {
  for (const auto& file : mica::test::library_files()) {
    CAPTURE(file.name);
    const bool guarded = std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end();
    CHECK(guarded == !is_per_target(file));
  }
}

// The first virtual function that a class declares without a body and without `inline` makes the compiler write
// the class, and all that it calls, into every unit that includes the header.
TEST_CASE("a virtual function that is defined after its class is declared inline in it") {
  std::size_t found = 0;
  for (const auto& file : mica::test::library_files()) {
    std::string declaration;
    for (const std::string& line : file.lines) {
      declaration += line;
      if (line.ends_with(" override;")) {
        CAPTURE(file.name);
        CAPTURE(declaration);
        CHECK(declaration.find("inline ") != declaration.npos);
        ++found;
      }
      if (line.empty() || line.ends_with(';') || line.ends_with('{') || line.ends_with('}') ||
          line.ends_with(':') || line.find("//") != line.npos)
        declaration.clear();
    }
  }
  CHECK(found > 0);
}

TEST_CASE("no header opens a namespace for its reader") {
  for (const auto& file : mica::test::library_files()) {
    CAPTURE(file.name);
    CHECK_FALSE(mentions(file, "using namespace "));
  }
}

TEST_CASE("only dispatch.hpp includes foreach_target.h") {
  for (const auto& file : mica::test::library_files()) {
    CAPTURE(file.name);
    CHECK((!includes(file, "hwy/foreach_target.h") || file.name == "mica/kernel/highway/dispatch.hpp"));
  }
}

TEST_CASE("the rooms of models need no JSON library: whatever reads JSON is a tool") {
  for (const auto& file : mica::test::library_files()) {
    CAPTURE(file.name);
    CHECK((!includes(file, "nlohmann/") || file.name.starts_with("mica_tools/")));
  }
}

TEST_CASE("Highway is included in the kernel room alone, and little of its contrib") {
  for (const auto& file : mica::test::library_files()) {
    CAPTURE(file.name);
    CHECK((!includes(file, "hwy/") || mica::test::room_of(file.name) == "kernel"));
    CHECK_FALSE(includes(file, "hwy/contrib/thread_pool"));
  }
}

TEST_CASE("the header of a room lists every header of the room that needs Highway alone") {
  const auto files = mica::test::library_files();
  const auto optional = optional_names(files);
  for (const auto& file : files) {
    if (optional.contains(file.name) || file.name.find("/detail/") != file.name.npos) continue;
    const std::string room = mica::test::room_of(file.name);
    if (room.empty() || room == "mica_jinja") continue;
    const std::string expected =
        file.name.starts_with("mica/") ? "mica/" + room + ".hpp" : "mica_tools/tools.hpp";
    const auto listing = std::find_if(files.begin(), files.end(),
                                      [&](const SourceFile& each) { return each.name == expected; });
    CAPTURE(file.name);
    REQUIRE(listing != files.end());
    const auto listed = listing->includes();
    CHECK(std::find(listed.begin(), listed.end(), file.name) != listed.end());
  }
}

TEST_CASE("the umbrella lists the headers of rooms and nothing else") {
  const auto files = mica::test::library_files();
  const auto umbrella = std::find_if(files.begin(), files.end(),
                                     [](const SourceFile& file) { return file.name == "mica/mica.hpp"; });
  REQUIRE(umbrella != files.end());
  std::set<std::string> rooms = {"mica/fwd.hpp", "mica/version.hpp"};
  for (const auto& file : files) {
    const std::string room = mica::test::room_of(file.name);
    if (file.name.starts_with("mica/") && !room.empty()) rooms.insert("mica/" + room + ".hpp");
  }
  const auto listed = umbrella->includes();
  CHECK(std::set<std::string>(listed.begin(), listed.end()) == rooms);
}

TEST_CASE("no front door includes anything optional") {
  const auto files = mica::test::library_files();
  const auto optional = optional_names(files);
  for (const auto& file : files) {
    if (!mica::test::is_door(file.name) || file.name.starts_with("mica_jinja/")) continue;
    for (const auto& listed : file.includes()) {
      CAPTURE(listed);
      CHECK_FALSE(optional.contains(listed));
    }
  }
}

}  // namespace header_rules_test
