// SPDX-License-Identifier: Apache-2.0
//
// Runs the program mica on a terminal of its own: what a person would see, and keys as they would arrive.

#pragma once

#include "program/program.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

namespace mica::test {

/// One run whose stdin, stdout and stderr are a terminal of 100 columns, as far as they are not given
/// elsewhere.
class TerminalRun {
 public:
  explicit TerminalRun(Words words) : words_(std::move(words)) {
    words_.insert(words_.begin(), MICA_PROGRAM);
    set("XDG_CONFIG_HOME", folder_.path("no-config"));
    set("XDG_STATE_HOME", folder_.path("state"));
    set("TERM", "xterm");
    set("LC_ALL", "C.UTF-8");
    set("CLICOLOR_FORCE", "");
    set("NO_COLOR", "");
  }
  TerminalRun(const TerminalRun&) = delete;
  TerminalRun& operator=(const TerminalRun&) = delete;
  ~TerminalRun() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    if (terminal_ >= 0) ::close(terminal_);
  }

  TerminalRun& set(std::string name, std::string value) {
    environment_.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  /// stdin is this descriptor instead.
  TerminalRun& input(int descriptor) {
    stdin_ = descriptor;
    return *this;
  }
  TerminalRun& start();
  /// Waits until this stands on the terminal behind what was seen before; a failed check when it does not
  /// come.
  TerminalRun& expect(std::string_view text);
  /// Presses keys. Enter is "\r".
  TerminalRun& type(std::string_view keys);
  /// The terminal has this number of columns from now on.
  TerminalRun& resize(unsigned short columns) {
    const struct ::winsize size { 40, columns, 0, 0 };
    REQUIRE(::ioctl(terminal_, TIOCSWINSZ, &size) == 0);
    return *this;
  }
  /// Waits for the end, and answers the exit code.
  int finish();
  /// Everything that came, control sequences too.
  [[nodiscard]] const std::string& output() const { return output_; }
  [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }

 private:
  [[noreturn]] void become(const char* terminal);
  /// More output; false at the end, and when there is none for a minute.
  bool read_more();

  TemporaryFolder folder_;
  Words words_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::string output_;
  std::size_t seen_ = 0;
  int stdin_ = -1;
  int terminal_ = -1;
  ::pid_t child_ = -1;
};

inline TerminalRun& TerminalRun::start() {
  terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal_ >= 0);
  REQUIRE(::grantpt(terminal_) == 0);
  REQUIRE(::unlockpt(terminal_) == 0);
  const std::string name = ::ptsname(terminal_);
  child_ = ::fork();
  REQUIRE(child_ >= 0);
  if (child_ == 0) become(name.c_str());
  return *this;
}

inline void TerminalRun::become(const char* terminal) {
  ::setsid();
  const int own = ::open(terminal, O_RDWR);
  ::ioctl(own, TIOCSCTTY, 0);
  const struct ::winsize size { 40, 100, 0, 0 };
  ::ioctl(own, TIOCSWINSZ, &size);
  ::dup2(stdin_ < 0 ? own : stdin_, STDIN_FILENO);
  ::dup2(own, STDOUT_FILENO);
  ::dup2(own, STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words_) argv.push_back(word.data());
  argv.push_back(nullptr);
  for (const auto& [key, value] : environment_) ::setenv(key.c_str(), value.c_str(), 1);
  ::execv(argv.front(), argv.data());
  ::_exit(127);
}

inline bool TerminalRun::read_more() {
  ::pollfd wanted{terminal_, POLLIN, 0};
  if (::poll(&wanted, 1, 60'000) <= 0) return false;
  char bytes[4096];
  const ::ssize_t got = ::read(terminal_, bytes, sizeof bytes);  // an error once the program has ended
  if (got > 0) output_.append(bytes, static_cast<std::size_t>(got));
  return got > 0;
}

inline TerminalRun& TerminalRun::expect(std::string_view text) {
  std::size_t at = 0;
  while ((at = output_.find(text, seen_)) == std::string::npos && read_more()) {
  }
  CAPTURE(output_.substr(seen_));
  REQUIRE_MESSAGE(at != std::string::npos, text);
  seen_ = at + text.size();
  return *this;
}

inline TerminalRun& TerminalRun::type(std::string_view keys) {
  REQUIRE(::write(terminal_, keys.data(), keys.size()) == static_cast<::ssize_t>(keys.size()));
  return *this;
}

inline int TerminalRun::finish() {
  while (read_more()) {
  }
  int status = 0;
  REQUIRE(::waitpid(std::exchange(child_, -1), &status, 0) > 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace mica::test
