// SPDX-License-Identifier: Apache-2.0

#include "mica/io/detail/near_name.hpp"

#include "io/temporary_folder.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace mica::test::near_name_test {
namespace {

TEST_CASE("the edit distance counts insertions, deletions, changes and swaps, and ignores case") {
  CHECK(io::edit_distance("", "") == 0);
  CHECK(io::edit_distance("abc", "") == 3);
  CHECK(io::edit_distance("", "ab") == 2);
  CHECK(io::edit_distance("kitten", "sitting") == 3);
  CHECK(io::edit_distance("MODEL", "model") == 0);
  CHECK(io::edit_distance("rnu", "run") == 1);
  CHECK(io::edit_distance("--tmep", "--temp") == 1);
  CHECK(io::edit_distance("ca", "abc") == 3);  // no character is edited twice
  CHECK(io::edit_distance("abcd", "badc") == 2);
}

TEST_CASE("the edit distance is the same both ways and at most the longer length") {
  const std::vector<std::string> names = {"",    "a",   "ab",   "ba",   "abc", "acb",
                                          "cab", "bca", "abab", "baba", "xyz"};
  for (const std::string& a : names) {
    for (const std::string& b : names) {
      CAPTURE(a);
      CAPTURE(b);
      CHECK(io::edit_distance(a, b) == io::edit_distance(b, a));
      CHECK(io::edit_distance(a, b) <= std::max(a.size(), b.size()));
      CHECK((io::edit_distance(a, b) == 0) == (a == b));
    }
  }
}

TEST_CASE("slips of the hand are near: swaps, a letter more or less, a name that was not finished") {
  const std::pair<const char*, const char*> slips[] = {
      {"rnu", "run"},        {"--tmep", "--temp"}, {"pagd", "paged"},
      {"maped", "mapped"},   {"q8", "q8_0"},       {"chta", "chat"},
      {"predct", "predict"}, {"bnech", "bench"},   {"--temprature", "--temperature"}};
  for (const auto& [wrong, right] : slips) {
    const auto& the_wrong = wrong;
    CAPTURE(the_wrong);
    io::NearName near(wrong);
    near.offer(right);
    CHECK(near.best() == right);
  }
  for (const auto& [wrong, other] : {std::pair("run", "fit"), {"--t", "--temp"}, {"model", "inspect"}}) {
    const auto& the_wrong = wrong;
    CAPTURE(the_wrong);
    io::NearName near(wrong);
    near.offer(other);
    CHECK(!near.best());
  }
}

TEST_CASE("the nearest of several names is kept, the first of equals") {
  io::NearName near("temperature");
  near.offer("top-k");
  CHECK(!near.best());
  near.offer("temperatur");
  near.offer("temperatures");
  CHECK(near.best() == "temperatur");
  near.offer("Temperature");
  CHECK(near.best() == "Temperature");
}

TEST_CASE("a short name is near only to names that differ in one character") {
  io::NearName near("-t");
  near.offer("-n");
  CHECK(near.best() == "-n");
  io::NearName far("-t");
  far.offer("--temp");
  CHECK(!far.best());
}

TEST_CASE("names longer than any file system allows cost nothing") {
  io::NearName near(std::string(100'000, 'a'));
  near.offer(std::string(100'000, 'a'));
  CHECK(!near.best());
}

TEST_CASE("a folder that does not exist has no near file") {
  const TemporaryFolder folder;
  CHECK(!io::near_file(folder.path("none/model.gguf")));
}

}  // namespace
}  // namespace mica::test::near_name_test
