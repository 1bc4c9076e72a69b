// SPDX-License-Identifier: Apache-2.0
//
// The program on several processes of mpirun: the same text, refusals that name the rank, and a rank that is
// killed.

#include "program/program.hpp"

#if defined(MICA_PROGRAM)

#include <chrono>
#include <filesystem>
#include <string>

namespace mica::test::ranks_test {
namespace {

/// mpirun of Open MPI or MPICH; empty where there is none, or the program has no module for it.
std::string mpirun() {
  const std::filesystem::path module = std::filesystem::path(MICA_PROGRAM).parent_path() / "mica-mpi.so";
  std::error_code error;
  for (const char* const place : {"/usr/bin/mpirun", "/usr/local/bin/mpirun"}) {
    if (std::filesystem::exists(place, error) && std::filesystem::exists(module, error)) return place;
  }
  skipped("the program on several ranks", "no mpirun, or no module for MPI");
  return {};
}

/// `n` processes of the program, one thread each.
struct OnRanks : ProgramRun {
  OnRanks(const std::string& mpirun, int n, const Words& words)
      : ProgramRun(mpirun, Words{"--oversubscribe", "--bind-to", "none", "--enable-recovery", "-n",
                                 std::to_string(n), MICA_PROGRAM} +
                               words + Words{"-t", "1"}) {
    set("OMPI_ALLOW_RUN_AS_ROOT", "1").set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    set("OMPI_MCA_plm_rsh_agent", "");  // one machine: no ssh
  }
};

const std::string fairy = MICA_SOURCE "/examples/models/fairy.gguf";

}  // namespace

TEST_CASE("a text is the same on one, two, three and five ranks, and stands on stdout once") {
  const std::string start = mpirun();
  if (start.empty()) return;
  const Words words{"complete", fairy, "The old king", "-n", "40", "--temp", "0.7", "-s", "7", "-q"};
  const Ran alone = mica(words);
  REQUIRE(alone.code == 0);
  for (const int n : {2, 3, 5}) {
    CAPTURE(n);
    const Ran ran = OnRanks(start, n, words).run();
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(ran.out == alone.out);
  }
  const Ran shares = OnRanks(start, 3, words + Words{"--rank-shares", "5,1,2"}).run();
  CHECK_MESSAGE(shares.code == 0, shares.err);
  CHECK(shares.out == alone.out);
  const Ran streamed = OnRanks(start, 2, words + Words{"--weights", "streamed"}).run();
  CHECK_MESSAGE(streamed.code == 0, streamed.err);
  CHECK(streamed.out == alone.out);
}

TEST_CASE("a chat on two ranks reads its lines on rank 0") {
  const std::string start = mpirun();
  if (start.empty()) return;
  const Words words{"chat", fairy, "-n", "12", "--temp", "0", "-q", "--chat-template", "chatml"};
  const std::string lines = "Hello\nAnd then?\n";
  const Ran alone = mica(words, lines);
  const Ran ran = OnRanks(start, 2, words).input(lines).run();
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.out == alone.out);
}

TEST_CASE("what several ranks cannot do is one sentence") {
  const std::string start = mpirun();
  if (start.empty()) return;
  const auto refusal = [&](int n, const Words& words) { return OnRanks(start, n, words).run().err; };
  CHECK(has(refusal(2, {"complete", fairy, "a", "--session", "s.mica"}),
            "--session: a model on several ranks"));
  CHECK(has(refusal(2, {"bench", fairy}), "mica bench runs as one process"));
  CHECK(has(refusal(3, {"complete", fairy, "a", "--rank-shares", "1,1"}), "found 2 for 3 ranks"));
  CHECK(has(mica({"complete", fairy, "a", "--rank-shares", "1,x"}).err, "numbers above 0"));
}

TEST_CASE("a rank that is killed ends the answer with one sentence") {
  const std::string start = mpirun();
  if (start.empty()) return;
  using Clock = std::chrono::steady_clock;
  Clock::time_point killed;
  OnRanks run(start, 3, {"complete", fairy, "The old king", "-n", "100000", "--on-full", "shift", "-q"});
  run.after_output([&](::pid_t launcher) {
    const std::string command = "pkill -KILL -n -P " + std::to_string(launcher);  // its newest process
    killed = Clock::now();
    CHECK(std::system(command.c_str()) == 0);
  });
  const Ran ran = run.run();
  CHECK(has(ran.err, "another rank is gone, or did not answer in time"));
  CHECK(Clock::now() - killed < std::chrono::seconds(20));  // with the end of mpirun itself
}

}  // namespace mica::test::ranks_test

#endif
