// SPDX-License-Identifier: Apache-2.0
//
// The floors of the library: a header includes its own room, lower floors, and rooms to its left.

#include "pages.hpp"
#include "source_tree.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace include_order_test {

namespace {

const std::vector<std::vector<std::string>> floors = {
    {"mica_jinja", "base"},
    {"io", "budget", "alloc", "exec", "ranks"},
    {"format", "tensor", "gguf"},
    {"kernel"},
    {"paging", "kv"},
    {"block", "arch"},
    {"sample", "text", "constraint", "model"},
    {"plan", "runtime"},
    {"json",    "schema", "write",  "encode",  "embed",  "search", "quantize", "synth",
     "convert", "pack",   "remote", "measure", "pace",   "advice", "fit",      "hub",
     "chat",    "calls",  "serve",  "http",    "routes", "mpi"},
};

// The rooms in reading order: one may include those before it and itself.
int rank_of(const std::string& room) {
  int rank = 0;
  for (const auto& floor : floors) {
    for (const auto& each : floor) {
      if (each == room) return rank;
      ++rank;
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("every folder of the library is a room of the plan") {
  for (const auto& file : mica::test::library_files()) {
    const std::string room = mica::test::room_of(file.name);
    CAPTURE(file.name);
    CHECK((room.empty() || rank_of(room) >= 0));
  }
}

TEST_CASE("the table of rooms in CONTRIBUTING.md is the one that is tested here") {
  const auto table = mica::test::table_of(mica::test::tree().text("CONTRIBUTING.md"), "| Floor |");
  REQUIRE(table.size() == floors.size());
  for (std::size_t i = 0; i < floors.size(); ++i) {
    CHECK(table[i].at(0) == std::to_string(i));
    CHECK(mica::test::code_of(table[i].at(1)) == floors[i]);
  }
}

TEST_CASE("no header includes a room above it or to its right") {
  for (const auto& file : mica::test::library_files()) {
    const std::string room = mica::test::room_of(file.name);
    if (room.empty()) continue;
    for (const auto& included : file.includes()) {
      const std::string other = mica::test::room_of(included);
      if (other.empty()) continue;
      CAPTURE(file.name);
      CAPTURE(included);
      CHECK(rank_of(other) <= rank_of(room));
    }
  }
}

TEST_CASE("chat templates need nothing of mica, and two of its headers alone include them") {
  for (const auto& file : mica::test::library_files()) {
    const bool inside = mica::test::room_of(file.name) == "mica_jinja";
    const bool door =
        file.name == "mica_tools/chat/chat_format.hpp" || file.name == "mica_tools/chat/json_value.hpp";
    for (const auto& included : file.includes()) {
      CAPTURE(file.name);
      CAPTURE(included);
      if (inside)
        CHECK((included.starts_with("mica_jinja/") || included.find_first_of("./") == included.npos));
      if (included.starts_with("mica_jinja/")) CHECK((inside || door));
    }
  }
}

TEST_CASE("no header of a room includes a room's header or an umbrella") {
  for (const auto& file : mica::test::library_files()) {
    if (mica::test::room_of(file.name).empty()) continue;
    for (const auto& included : file.includes()) {
      CAPTURE(file.name);
      const bool small = included == "mica/fwd.hpp" || included == "mica/version.hpp";
      CHECK((small || !mica::test::is_door(included)));
    }
  }
}

TEST_CASE("headers name each other by their full path") {
  const auto files = mica::test::library_files();
  for (const auto& file : files) {
    for (const auto& included : file.includes()) {
      CAPTURE(file.name);
      CAPTURE(included);
      if (!included.ends_with(".hpp") || included.find('/') == included.npos) {
        CHECK_FALSE(included.ends_with(".hpp"));
      } else if (included.starts_with("mica")) {
        CHECK(
            std::any_of(files.begin(), files.end(), [&](const auto& each) { return each.name == included; }));
      }
    }
  }
}

}  // namespace include_order_test
