// SPDX-License-Identifier: Apache-2.0
//
// The damaged and lying files of the conformance kit through the program, as its user meets them: each loads,
// is refused or is reported as index.json says, by an exit status and never by a signal, within its time and
// memory.

#include "io/temporary_folder.hpp"
#include "sanitized.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(MICA_PROGRAM) && __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

namespace mica::test::hostile_test {
namespace {

/// How a program ended, and all that it printed.
struct Outcome {
  int status = 0;     // of waitpid
  long peak_kib = 0;  // resident
  std::string text;

  [[nodiscard]] bool orderly() const { return WIFEXITED(status) && WEXITSTATUS(status) < 128; }
  [[nodiscard]] bool refused() const { return orderly() && WEXITSTATUS(status) != 0; }
  [[nodiscard]] bool done() const { return orderly() && WEXITSTATUS(status) == 0; }
};

/// Runs a program with its output in a pipe, and at most `cpu_limit` seconds of processor time.
Outcome run_program(std::vector<std::string> words, unsigned cpu_limit) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const ::rlimit seconds{cpu_limit, cpu_limit};
    const ::rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CPU, &seconds);
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  Outcome outcome;
  std::array<char, 4096> part;
  for (::ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;) {
    if (outcome.text.size() < 200'000) outcome.text.append(part.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  ::rusage usage{};
  REQUIRE(::wait4(child, &outcome.status, 0, &usage) == child);
#ifdef __APPLE__
  outcome.peak_kib = usage.ru_maxrss / 1024;
#else
  outcome.peak_kib = usage.ru_maxrss;
#endif
  return outcome;
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// Lower case, and without the file's own name, which does not count as naming the fault.
std::string comparable(std::string text, const std::string& path, const std::string& name) {
  for (const std::string& part : {path, name}) {
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part))
      text.erase(at, part.size());
  }
  return lower(std::move(text));
}

bool names_fault(const std::string& text, const nlohmann::json& groups) {
  for (const auto& group : groups) {
    bool named = false;
    for (const std::string word : group) named = named || text.find(lower(word)) != std::string::npos;
    if (!named) return false;
  }
  return true;
}

void check_case(const std::filesystem::path& folder, const nlohmann::json& one) {
  const std::string name = one["main"];
  const std::string path = (folder / name).string();
  const std::string verb = one["mode"] == "chat" ? "run" : "complete";
  const unsigned limit_s = one["limit_s"].get<unsigned>() * (sanitized ? 10 : 1);
  // Greedy: a sampled answer may have any byte, and a pipe gets it as it is.
  const Outcome outcome =
      run_program({MICA_PROGRAM, verb, path, one["prompt"], "-n", "4", "--temp", "0"}, limit_s);
  const std::string text = comparable(outcome.text, path, name);
  CAPTURE(name);
  CAPTURE(outcome.text);
  CHECK_MESSAGE(outcome.orderly(), "ended by a signal: wait status ", outcome.status);
  CHECK(outcome.text.find('\x1b') == std::string::npos);
  if (!sanitized) CHECK(outcome.peak_kib <= one["limit_mb"].get<long>() * 1024);
  if (one["expect"] == "load") CHECK(outcome.done());
  if (one["expect"] == "reject") CHECK(outcome.refused());
  if (one["expect"] == "reject" || one["expect"] == "report") {
    CHECK(names_fault(text, one.value("names", nlohmann::json::array())));
  }
}

TEST_CASE("every damaged or lying file ends as its index says, through the program") {
  const auto folder = shared_dir("damaged files through the program", "hostile");
  if (!folder) return;
  std::ifstream in(*folder / "index.json");
  const auto index = nlohmann::json::parse(in);
  REQUIRE(index["cases"].size() == index["count"].get<std::size_t>());
  for (const auto& one : index["cases"]) check_case(*folder, one);
}

TEST_CASE("a file that is not there, a folder and an empty file are refused with status 3") {
  const TemporaryFolder folder;
  const std::string empty = folder.path("empty");
  REQUIRE(std::filesystem::create_directory(empty));
  for (const std::string& path : {folder.path("no-such-model.gguf"), empty, std::string("/dev/null")}) {
    const Outcome outcome = run_program({MICA_PROGRAM, "complete", path, "hello", "-n", "4"}, 60);
    CAPTURE(outcome.text);
    CHECK(outcome.refused());
    CHECK(WEXITSTATUS(outcome.status) == 3);
    CHECK(outcome.text.find(path) != std::string::npos);
  }
}

}  // namespace
}  // namespace mica::test::hostile_test

#else

TEST_CASE("every damaged or lying file ends as its index says, through the program") {
  mica::test::skipped("damaged files through the program", "the program is not part of this build");
}

#endif
