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

TEST_CASE("a session goes on with another number of ranks, and its file is that of one") {
  const std::string start = mpirun();
  if (start.empty()) return;
  const TemporaryFolder folder;
  const auto words = [&](const std::string& file) {
    return Words{"complete", fairy, "-n", "20",        "--temp",         "0.7",
                 "-s",       "7",   "-q", "--session", folder.path(file)};
  };
  const Words prompt{"-p", "The old king"};
  const std::string begun = mica(words("1") + prompt).out, rest = mica(words("1")).out;
  REQUIRE(rest.size() > 20);
  for (const int n : {2, 3}) {
    CAPTURE(n);
    const std::string file = std::to_string(n);
    const Ran first = OnRanks(start, n, words(file) + prompt).run();
    CHECK_MESSAGE(first.code == 0, first.err);
    CHECK(first.out == begun);
    const Ran second = OnRanks(start, 5 - n, words(file)).run();
    CHECK_MESSAGE(second.code == 0, second.err);
    CHECK(second.out == rest);
    CHECK(contents(folder.path(file)) == contents(folder.path("1")));
  }
}

TEST_CASE("what several ranks cannot do is one sentence") {
  const std::string start = mpirun();
  if (start.empty()) return;
  const auto refusal = [&](int n, const Words& words) { return OnRanks(start, n, words).run().err; };
  CHECK(has(refusal(2, {"bench", fairy}), "mica bench runs as one process"));
  CHECK(has(refusal(3, {"complete", fairy, "a", "--rank-shares", "1,1"}), "found 2 for 3 ranks"));
  CHECK(has(mica({"complete", fairy, "a", "--rank-shares", "1,x"}).err, "numbers above 0"));
}

TEST_CASE("a rank that is killed ends the answer with one sentence, and the session goes on without it") {
  const std::string start = mpirun();
  if (start.empty()) return;
  const TemporaryFolder folder;
  const std::string saved = folder.path("saved");
  using Clock = std::chrono::steady_clock;
  Clock::time_point killed;
  OnRanks run(start, 3,
              {"complete", fairy, "The old king", "-n", "100000", "-c", "100000", "--temp", "0",
               "--ignore-eos", "--session", saved});
  run.after_output([&](::pid_t launcher) {
    const std::string command = "pkill -KILL -n -P " + std::to_string(launcher);  // its newest process
    killed = Clock::now();
    CHECK(std::system(command.c_str()) == 0);
  });
  const Ran ran = run.run();
  CHECK(has(ran.err, "another rank is gone, or did not answer in time"));
  CHECK(has(ran.err, "continues the text, on fewer ranks too"));
  CHECK(Clock::now() - killed < std::chrono::seconds(20));  // with the end of mpirun itself
  const Ran on = mica({"complete", fairy, "-n", "20", "-c", "100000", "--temp", "0", "--ignore-eos",
                       "--session", saved, "-q"});
  REQUIRE_MESSAGE(on.code == 0, on.err);
  const auto line = [](std::string text) { return text.substr(0, text.find_last_not_of('\n') + 1); };
  const std::string tokens = std::to_string(ran.out.size() + 20);  // more than there are
  const Ran whole = mica(
      {"complete", fairy, "The old king", "-n", tokens, "-c", "100000", "--temp", "0", "--ignore-eos", "-q"});
  CHECK(whole.out.starts_with(line(ran.out)));
  CHECK(whole.out.find(line(on.out), line(ran.out).size()) <= ran.out.size());
}

}  // namespace mica::test::ranks_test

#endif
