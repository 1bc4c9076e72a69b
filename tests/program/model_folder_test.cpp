// SPDX-License-Identifier: Apache-2.0
//
// A folder in place of a model: the best file for the memory that is free.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

namespace mica::test::model_folder_test {

TEST_CASE("of a folder the file runs that fits best, and the line says why") {
  const TemporaryFolder folder;
  REQUIRE(mica({"synth", "stories-15m", "Q8_0", folder.path("large.gguf"), "-q"}).code == 0);
  REQUIRE(mica({"synth", "stories-15m", "Q4_0", folder.path("small.gguf"), "-q"}).code == 0);
  folder.file("notes.txt", "no model");
  const auto complete = [&](const std::string& memory) {
    return mica({"complete", folder.path("") + "/", "-p", "Once", "-n", "3", "-c", "64", "--memory", memory});
  };
  const Ran roomy = complete("400MiB");
  REQUIRE_MESSAGE(roomy.code == 0, roomy.err);
  CHECK(has(roomy.err, ": large.gguf: quick, "));
  CHECK(has(roomy.err, "; then small.gguf: quick, "));
  std::filesystem::rename(folder.path("large.gguf"), folder.path("l\nmica: well.gguf"));
  CHECK(has(complete("400MiB").err, ": l\\x0amica: well.gguf: quick, "));
  const Ran tight = complete("36MiB");
  REQUIRE_MESSAGE(tight.code == 0, tight.err);
  CHECK(has(tight.err, ": small.gguf: "));
  const Ran none = complete("3MiB");
  CHECK(none.code == 4);
  CHECK(has(none.err, "none of 2 models fits 3.0 MiB; the nearest is "));
}

TEST_CASE("a folder without models, and one in which none can be opened") {
  const TemporaryFolder empty, broken;
  const Ran none = mica({"complete", empty.path(""), "-p", "x"});
  CHECK(none.code == 3);
  CHECK(has(none.err, ": a folder without GGUF files"));
  broken.file("a.gguf", "no model");
  const Ran bad = mica({"complete", broken.path(""), "-p", "x"});
  CHECK(bad.code == 3);
  CHECK(has(bad.err, "mica: left out: "));
  CHECK(has(bad.err, "no GGUF file of this folder can be run"));
}

}  // namespace mica::test::model_folder_test

#endif
