// SPDX-License-Identifier: Apache-2.0
//
// --targets: fewer instruction sets, the same numbers.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace mica::test::targets_test {
namespace {

/// The names in the line of mica doctor that begins with a word.
std::vector<std::string> doctor_list(const std::string& word) {
  std::istringstream lines(mica({"doctor"}).out);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != word) continue;
    while (words >> name) names.push_back(name);
  }
  return names;
}

TEST_CASE("every instruction set of program and machine gives the same logits") {
  const std::string model = MICA_SOURCE "/examples/models/fairy.gguf";
  const TemporaryFolder folder;
  const auto logits = [&](const std::string& target) {
    const std::string path = folder.path("logits-" + target);
    const Ran ran = mica({"logits", model, "--ids", "1,5,9,20", "-o", path, "-q", "--targets", target});
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    return contents(path);
  };
  const std::vector<std::string> here = doctor_list("targets"), compiled = doctor_list("compiled");
  std::string best;
  for (const std::string& target : compiled) {
    if (std::find(here.begin(), here.end(), target) == here.end()) continue;
    CAPTURE(target);
    if (best.empty()) best = target;
    CHECK(logits(target) == logits(best));
  }
  CHECK_FALSE(best.empty());
}

TEST_CASE("an instruction set that is not there is refused with those that are") {
  const Ran ran = mica({"bench", "--targets", "avx9"});
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "--targets avx9: not an instruction set of this machine and program; known: "));
  const std::vector<std::string> compiled = doctor_list("compiled");
  for (const std::string& target : doctor_list("targets")) {
    if (std::find(compiled.begin(), compiled.end(), target) != compiled.end()) continue;
    CAPTURE(target);
    const Ran left_out = mica({"bench", "--targets", target});
    CHECK(left_out.code == 2);
    CHECK(has(left_out.err, "this machine has it, but this program was compiled without it; known: "));
  }
}

}  // namespace
}  // namespace mica::test::targets_test

#endif
