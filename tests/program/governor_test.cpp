// SPDX-License-Identifier: Apache-2.0
//
// A neighbour that needs memory gets it from a model that runs, nobody is killed, and the text is the same; a
// processor that shall stay cool, or rest.

#include "program/memory_cage.hpp"
#include "program/program.hpp"

#ifdef MICA_PROGRAM

namespace mica::test::governor_test {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// Words of a run that writes some hundred tokens.
Words writing(const std::string& model, const std::string& governor) {
  return {"complete", model, "-p",     "Once", "-n",           "500",        "-c",    "600",
          "-t",       "1",   "--temp", "0",    "--ignore-eos", "--governor", governor};
}

}  // namespace

TEST_CASE("a neighbour takes memory beside a run, which gives way and writes what it would have written") {
  if (sanitized) return;
  const TemporaryFolder folder;
  const std::string model = folder.path("model.gguf");
  REQUIRE(mica({"synth", "stories-15m", "F32", model, "-q"}).code == 0);
  const Ran alone = mica(writing(model, "off"));
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  CHECK(alone.err.find("governor") == std::string::npos);

  const MemoryCage cage(alone.peak_bytes + 20 * mib);  // libraries that others use are not charged to it
  if (!cage) {
    MESSAGE("skipped: no control group of memory can be made here");
    return;
  }
  // The neighbour wants 5 MiB more than are left, which the model can yield: its layers are 24 MiB. It takes
  // them slowly: a model ends where a neighbour takes all that is left within the time of a layer. Where the
  // cores are busy, it may come when the run is over, or nearly.
  bool yielded = false;
  for (int round = 0; round < 10 && !yielded; ++round) {
    ProgramRun run("/bin/sh", cage.inside(Words{MICA_PROGRAM} + writing(model, "on")));
    Hog hog(cage, run.folder().path("stdout"), 25 * mib, std::chrono::milliseconds(40));
    const Ran beside = run.run();
    CHECK(hog.leave());
    CHECK(cage.kills() == 0);
    REQUIRE_MESSAGE(beside.code == 0, beside.err);
    CHECK(beside.out == alone.out);
    const auto said = [&](const char* words) { return beside.err.find(words) != std::string::npos; };
    yielded = said(": weights in memory ") || said(" of weights left memory at once");  // or within a step
    if (yielded) {
      CHECK(said("mica: governor: "));
      CHECK(said(" left of the control group"));
    }
  }
  CHECK(yielded);
}

TEST_CASE("what --governor, --keep-free and --pace take") {
  CHECK(mica({"complete", "--governor", "maybe"}).code == 2);
  CHECK(mica({"serve", "--governor", "maybe"}).code == 2);
  for (const char* const wrong : {"0", "5%", "much"})
    CHECK(mica({"complete", "x.gguf", "--keep-free", wrong}).code == 2);
  CHECK(has(mica({"serve", "x.gguf", "--keep-free", "5%"}).err, "--keep-free needs a size above 0"));
  CHECK(mica({"run", "-n", "5", "--keep-free", "500MB"}).code == 0);
  const Ran words = mica({"complete", "x.gguf", "--pace", "85"});
  CHECK(words.code == 2);
  CHECK(has(words.err, "--pace: found \"85\", allowed a temperature, a power or a part of the time"));
  const Ran half = mica({"run", "-n", "5", "--pace", "50%"});
  CHECK(half.code == 0);
  CHECK(has(half.err, "mica: pace: 50 % of the time"));
  const Ran watts = mica({"run", "-n", "5", "--pace", "100W"});
  const bool sensed = watts.code == 0 && watts.err.find("100 W of intel-rapl:") != std::string::npos;
  CHECK((sensed || (watts.code == 5 && has(watts.err, "no counter of energy can be read"))));
}

}  // namespace mica::test::governor_test

#endif
