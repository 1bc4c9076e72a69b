// SPDX-License-Identifier: Apache-2.0
//
// Runs the program mica as its users do and keeps what it said, on which stream, and how it ended.

#pragma once

#include "io/temporary_folder.hpp"
#include "sanitized.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mica::test {

/// A command line, or a part of one.
using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// How a run ended and what it printed.
struct Ran {
  int code = 0;                  // exit code; 128 + n for signal n
  std::string out;               // stdout
  std::string err;               // stderr
  std::uint64_t peak_bytes = 0;  // resident
};

/// One run, prepared step by step. The environment is the test's own, without MICA_ARG_* and without a
/// configuration.
class ProgramRun {
 public:
  ProgramRun(std::string program, std::vector<std::string> words) : words_(std::move(words)) {
    words_.insert(words_.begin(), std::move(program));
    set("XDG_CONFIG_HOME", folder_.path("no-config"));
    set("XDG_STATE_HOME", folder_.path("state"));
    set("XDG_CACHE_HOME", folder_.path("cache"));
  }

  /// What the program reads on stdin; nothing by default.
  ProgramRun& input(std::string text) {
    input_ = std::move(text);
    return *this;
  }
  ProgramRun& set(std::string name, std::string value) {
    environment_.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  /// Calls action(process) as soon as something stands on stdout.
  ProgramRun& after_output(std::function<void(::pid_t)> action) {
    action_ = std::move(action);
    return *this;
  }
  /// Calls action(process) as soon as the program handles SIGINT; where the system does not tell, after a
  /// second.
  ProgramRun& after_start(std::function<void(::pid_t)> action) {
    at_start_ = true;
    return after_output(std::move(action));
  }
  /// Sends SIGINT so long after the program began to handle it.
  ProgramRun& interrupt_after(::useconds_t time) {
    return after_start([time](::pid_t child) {
      ::usleep(time);
      ::kill(child, SIGINT);
    });
  }
  /// Sends a signal as soon as something stands on stdout.
  ProgramRun& signal_after_output(int number) {
    return after_output([number](::pid_t child) { ::kill(child, number); });
  }
  /// The program cannot make a file larger than this.
  ProgramRun& limit_files(::rlim_t bytes) {
    file_bytes_ = bytes;
    return *this;
  }
  /// What stands on stdin is not its end: the program waits for more.
  ProgramRun& keep_input_open() {
    input_ends_ = false;
    return *this;
  }
  [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }

  [[nodiscard]] Ran run() {
    folder_.file("stdin", input_);
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) become();
    if (action_ && at_start_) wait_for_handler(child);
    if (action_) act(child);
    int status = 0;
    ::rusage usage{};
    REQUIRE(::wait4(child, &status, 0, &usage) == child);
    Ran ran;
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ran.out = contents(folder_.path("stdout"));
    ran.err = contents(folder_.path("stderr"));
#ifdef __APPLE__
    ran.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss);
#else
    ran.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
#endif
    return ran;
  }

 private:
  [[noreturn]] void become() {
    std::vector<char*> argv;
    for (std::string& word : words_) argv.push_back(word.data());
    argv.push_back(nullptr);
    for (const auto& [name, value] : environment_) ::setenv(name.c_str(), value.c_str(), 1);
    ::signal(SIGINT, SIG_DFL);  // not the handler of the test, which wait_for_handler() would see
    ::signal(SIGHUP, SIG_DFL);  // tests that run under nohup ignore it
    const ::rlimit seconds{120, 120};
    const ::rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CPU, &seconds);
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(input_ends_ ? ::open(folder_.path("stdin").c_str(), O_RDONLY) : endless_input(), STDIN_FILENO);
    ::dup2(create("stdout"), STDOUT_FILENO);
    ::dup2(create("stderr"), STDERR_FILENO);
    const ::rlimit files{file_bytes_, file_bytes_};
    if (file_bytes_ != RLIM_INFINITY) ::setrlimit(RLIMIT_FSIZE, &files);
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  [[nodiscard]] int create(const char* name) const {
    return ::open(folder_.path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  /// A pipe with the input in it and a writer that never goes: the program itself.
  [[nodiscard]] int endless_input() const {
    const std::string path = folder_.path("endless");
    if (::mkfifo(path.c_str(), 0600) != 0) ::_exit(127);
    const int pipe = ::open(path.c_str(), O_RDWR);
    const bool whole = ::write(pipe, input_.data(), input_.size()) == static_cast<::ssize_t>(input_.size());
    if (!whole) ::_exit(127);
    return pipe;
  }
  void act(::pid_t child) const {
    std::error_code error;
    for (int tries = 0; tries < 6000 && !at_start_; ++tries) {
      if (std::filesystem::file_size(folder_.path("stdout"), error) > 0 && !error) break;
      ::usleep(10'000);
    }
    action_(child);
  }

  static void wait_for_handler(::pid_t child) {
    const std::string process = "/proc/" + std::to_string(child);
    const auto program_of = [](const std::string& of) {
      std::error_code error;
      return std::filesystem::read_symlink(of + "/exe", error);
    };
    for (int tries = 0; tries < 6000; ++tries) {
      const bool begun = program_of(process) != program_of("/proc/self");  // read before its status
      const std::string status = contents(process + "/status");
      const std::size_t at = status.find("SigCgt:");
      if (at == std::string::npos) break;
      if (begun && (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGINT - 1) & 1) != 0) return;
      ::usleep(10'000);
    }
    ::sleep(1);
  }

  TemporaryFolder folder_;
  std::vector<std::string> words_;
  std::string input_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::function<void(::pid_t)> action_;
  ::rlim_t file_bytes_ = RLIM_INFINITY;
  bool input_ends_ = true;
  bool at_start_ = false;  // the action, not after output
};

#ifdef MICA_PROGRAM
/// Runs the program with these words.
inline Ran mica(std::vector<std::string> words, std::string input = {}) {
  return ProgramRun(MICA_PROGRAM, std::move(words)).input(std::move(input)).run();
}
#endif

inline bool has(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text);
  return found;
}

/// Whether the part is not there; the text is shown where it is.
inline bool lacks(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != std::string::npos;
  if (found) MESSAGE(text);
  return !found;
}

/// The first number of that name in an answer in JSON.
inline std::uint64_t number(const Ran& ran, const std::string& key) {
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const std::size_t at = ran.out.find("\"" + key + "\":");
  REQUIRE(at != std::string::npos);
  return std::stoull(ran.out.substr(at + key.size() + 3));
}

}  // namespace mica::test
