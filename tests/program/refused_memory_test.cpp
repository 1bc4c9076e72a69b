// SPDX-License-Identifier: Apache-2.0
//
// Memory that is refused, whichever request it is: a sentence and an exit code, never a signal, and nothing half
// written is left.

#include "program/program.hpp"

#if defined(MICA_PROGRAM) && defined(MICA_REFUSING_MALLOC)

#include "convert/hf_folder.hpp"

#include <filesystem>

namespace mica::test::refused_memory_test {
namespace {

const std::string fairy = std::string(MICA_SOURCE) + "/examples/models/fairy.gguf";

/// Runs the program; its request number `at`, and with `on` all that follow, find no memory.
Ran refused(const Words& words, int at, bool on) {
  ProgramRun run(MICA_PROGRAM, words);
  run.set("LD_PRELOAD", MICA_REFUSING_MALLOC).set("MICA_TEST_REFUSED", std::to_string(at));
  if (on) run.set("MICA_TEST_REFUSED_ON", "1");
  return run.run();
}

/// Each of the first requests, static initialisers' among them, then a sample.
int next(int at) { return at < 30 ? at + 1 : at + 97; }

}  // namespace

TEST_CASE(
    "memory that is refused ends the program with a sentence, before main, in threads and in destructors") {
  const TemporaryFolder folder;
  HfFolder checkpoint;
  fill_small_llama(checkpoint);
  const std::string out = folder.path("out.gguf");
  const std::vector<Words> lines = {{"help"},
                                    {"inspect", fairy, "--json"},
                                    {"complete", fairy, "Once", "-n", "2", "-t", "4", "-c", "64"},
                                    {"quantize", fairy, out, "Q8_0", "-t", "4"},
                                    {"convert", checkpoint.write(), out},
                                    {"fit", MICA_SOURCE "/examples/models/", "--ram", "8G"}};
  for (const Words& words : lines) {
    CAPTURE(words.front());
    for (const bool on : {false, true}) {
      CAPTURE(on);
      int refusals = 0;
      for (int at = 1; at < 2500; at = next(at)) {
        CAPTURE(at);
        const Ran ran = refused(words, at, on);
        CAPTURE(ran.err);
        CHECK(ran.code < 128);
        CHECK((ran.code == 0 || ran.err.find("mica: ") != std::string::npos));
        refusals += ran.code == 4 ? 1 : 0;
        const bool written = std::filesystem::remove(out);
        CHECK((!written || ran.code == 0));
        CHECK(folder.entries() == 0);
        if (on && ran.code == 0) break;  // there are no more requests
      }
      CHECK(refusals > 20);  // or nothing was refused
    }
  }
}

}  // namespace mica::test::refused_memory_test

#endif
