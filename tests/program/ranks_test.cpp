// SPDX-License-Identifier: Apache-2.0
//
// The program on several processes of mpirun: the same text, refusals that name the rank, and a rank that is
// killed.

#include "program/program.hpp"

#if defined(MICA_PROGRAM)

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

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

/// The reply of a server to one request, with its headers; its port is in the line that it has printed.
std::string post(const std::string& announced, const std::string& path, const std::string& body) {
  const std::string line = contents(announced), key = "\"port\":";
  const auto port = static_cast<std::uint16_t>(std::stoi(line.substr(line.find(key) + key.size())));
  const int to = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const std::string request =
      "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
      "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  REQUIRE(::send(to, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<::ssize_t>(request.size()));
  std::string reply;
  std::array<char, 4096> bytes;
  for (::ssize_t n = 0; (n = ::read(to, bytes.data(), bytes.size())) > 0;)
    reply.append(bytes.data(), static_cast<std::size_t>(n));
  ::close(to);
  return reply;
}
/// The first text under a key of a JSON reply.
std::string text_of(const std::string& reply, const std::string& key) {
  const std::size_t at = reply.find("\"" + key + "\":\"");
  return at == std::string::npos ? reply : reply.substr(at, reply.find("\",", at) - at);
}

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
  const Words counted{"complete", fairy, "The old king", "-n", "40", "--temp", "0", "--stats"};
  CHECK(has(OnRanks(start, 2, counted).run().err, " messages for each, exchanges took "));
  const Ran streamed = OnRanks(start, 2, words + Words{"--weights", "streamed"}).run();
  CHECK_MESSAGE(streamed.code == 0, streamed.err);
  CHECK(streamed.out == alone.out);
}

TEST_CASE("ranks that divide layers write the same text, also of a prompt in many parts") {
  const std::string start = mpirun();
  if (start.empty()) return;
  std::string prompt = "The old king";
  for (int i = 0; i < 10; ++i) prompt += " went to the sea, and the sea was wide and blue";
  const TemporaryFolder folder;
  const auto words = [&](const std::string& session) {
    return Words{"complete", fairy,    "-p",  prompt,      "-n",
                 "30",       "--temp", "0.7", "-s",        "7",
                 "-q",       "-b",     "16",  "--session", folder.path(session)};
  };
  const Ran alone = mica(words("1"));
  REQUIRE(alone.code == 0);
  for (const int n : {2, 3}) {
    CAPTURE(n);
    const std::string session = std::to_string(n);
    const Ran ran = OnRanks(start, n, words(session) + Words{"--rank-split", "layers"}).run();
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(ran.out == alone.out);
    CHECK(contents(folder.path(session)) == contents(folder.path("1")));
  }
  const Words penalised{"complete", fairy, "The old king",     "-n", "20", "-s",
                        "7",        "-q",  "--repeat-penalty", "1.2"};
  const Ran all = OnRanks(start, 2, penalised + Words{"--rank-split", "layers"}).run();
  CHECK_MESSAGE(all.code == 0, all.err);
  CHECK(all.out == mica(penalised).out);
  const Ran many = OnRanks(start, 5,
                           Words{"complete", fairy, "The", "-n", "3", "-q", "--rank-split", "layers",
                                 "--rank-shares", "1000,1,1,1,1"})
                       .run();
  CHECK(has(many.err, "layers; take fewer ranks, or give it a larger share"));
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

TEST_CASE("a server on two ranks answers as one process, loads its model again, and ends with all ranks") {
  const std::string start = mpirun();
  if (start.empty()) return;
  const Words words{"serve", fairy, "--port", "0", "-np", "2", "-c", "200", "-q"};
  const auto ask = [](ProgramRun& run, bool on_ranks, std::vector<std::string>& answers) {
    run.after_output([&run, on_ranks, &answers](::pid_t process) {
      const std::string announced = run.folder().path("stdout");
      for (const char* const prompt : {"The old king", "The old king and", "A bear"}) {
        const std::string body =
            std::string(R"({"temperature":0,"n_predict":20,"prompt":")") + prompt + "\"}";
        answers.push_back(text_of(post(announced, "/completion", body), "content"));
        if (answers.size() == 1)  // and the next request loads it
          static_cast<void>(post(announced, "/api/generate", R"({"model":"fairy","keep_alive":0})"));
      }
      const std::string rank_0 = "pkill -INT -o -P " + std::to_string(process);
      CHECK((on_ranks ? std::system(rank_0.c_str()) : ::kill(process, SIGINT)) == 0);
    });
    const Ran ran = run.run();
    CHECK_MESSAGE(ran.code == 0, ran.err);
  };
  std::vector<std::string> expected, found;
  ProgramRun alone(MICA_PROGRAM, words + Words{"-t", "1"});
  ask(alone, false, expected);
  OnRanks several(start, 2, words);
  ask(several, true, found);
  REQUIRE(expected.size() == 3);
  CHECK(expected[0].starts_with("\"content\":\""));
  CHECK(found == expected);
}

TEST_CASE("what several ranks cannot do is one sentence") {
  const std::string start = mpirun();
  if (start.empty()) return;
  const auto refusal = [&](int n, const Words& words) { return OnRanks(start, n, words).run().err; };
  CHECK(has(refusal(2, {"bench", fairy}), "mica bench runs as one process"));
  const TemporaryFolder folder;
  const std::string other = folder.path("other.gguf");
  std::filesystem::copy_file(fairy, other);
  CHECK(has(refusal(2, {"serve", fairy, other}), "serve one model, found 2"));
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
