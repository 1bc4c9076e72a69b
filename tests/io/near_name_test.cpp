// SPDX-License-Identifier: Apache-2.0

#include "mica/io/near_name.hpp"

#include "io/temporary_folder.hpp"

namespace mica::test {
namespace {

TEST_CASE(
    "the edit distance counts insertions, deletions, changes and neighbours that changed places, and ignores "
    "case") {
  CHECK(io::edit_distance("", "") == 0);
  CHECK(io::edit_distance("abc", "") == 3);
  CHECK(io::edit_distance("", "ab") == 2);
  CHECK(io::edit_distance("kitten", "sitting") == 3);
  CHECK(io::edit_distance("MODEL", "model") == 0);
  CHECK(io::edit_distance("/hepl", "/help") == 1);  // neighbours that changed places
  CHECK(io::edit_distance("rnu", "run") == 1);
  CHECK(io::edit_distance("ba", "acb") == 3);  // and are not changed again
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
}  // namespace mica::test
