// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include "mica/base/assert.hpp"
#include "mica/io/file.hpp"
#include "mica/version.hpp"
#include "options.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <utility>
#include <sys/resource.h>
#include <unistd.h>

namespace mica::program {
namespace {

std::atomic<bool> stop_wanted{false};

/// Delivers all bytes or says no.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ::ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void deliver(std::string_view text) {
  if (write_all(STDOUT_FILENO, text)) return;
  if (errno == EPIPE) ::_exit(0);  // the reader has seen enough
  raise(ErrorCode::failed, "stdout: writing failed: ", std::strerror(errno));
}

std::atomic<bool> status_shown{false};

void clear_status() {
  if (status_shown.exchange(false)) write_sequence("\r\x1b[K");
}

void on_interrupt(int) {
  if (stop_wanted.exchange(true)) ::_exit(130);
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

void print(std::string_view text) { deliver(printable(text)); }

DataOutput::DataOutput(const Options& options) {
  if (::isatty(STDOUT_FILENO) == 1 && !options.raw_output) filter_.emplace(colored(options, STDOUT_FILENO));
}

void DataOutput::write(std::string_view piece) { deliver(filter_ ? filter_->filter(piece) : piece); }

void DataOutput::finish() {
  if (filter_) deliver(filter_->finish());
}

void print_data(const Options& options, std::string_view text) {
  DataOutput output(options);
  output.write(text);
  output.finish();
}

void note(const Options& options, std::string_view text) {
  if (options.quiet) return;
  const bool dim = colored(options, STDERR_FILENO);
  clear_status();
  write_sequence(join(dim ? "\x1b[2m" : "", message_text(text), dim ? "\x1b[0m\n" : "\n"));
}

void write_error_line(std::string_view message) noexcept try {
  clear_status();
  write_sequence(join("mica: ", message_text(message, {}), "\n"));
} catch (const std::bad_alloc&) {
  write_sequence("mica: out of memory\n");
}

void write_error(std::string_view text) {
  clear_status();
  write_sequence(printable(text));
}

void show_status(std::string_view text) {
  if (text.empty()) return clear_status();
  status_shown = true;
  write_sequence(join("\r", printable(text, {}), "\x1b[K"));
}

void write_sequence(std::string_view text) { static_cast<void>(write_all(STDERR_FILENO, text)); }

LogSink log_to_stderr(const Options& options) {
  const auto write = [](void* context, LogLevel level, std::string_view message) {
    const auto& o = *static_cast<const Options*>(context);
    if (level == LogLevel::error) return write_error_line(message);
    if (level == LogLevel::warning || o.verbose) note(o, join("mica: ", message));
  };
  return {write, const_cast<Options*>(&options)};
}

bool colored(const Options& options, int descriptor) {
  if (options.color != ColorMode::automatic) return options.color == ColorMode::always;
  const std::string_view force = variable("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return ::isatty(descriptor) == 1 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

const std::atomic<bool>& interrupted() { return stop_wanted; }

void forget_interrupt() { stop_wanted = false; }

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int exit_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::failed:
      return 1;
    case ErrorCode::usage:
      return 2;
    case ErrorCode::file:
      return 3;
    case ErrorCode::budget:
      return 4;
    case ErrorCode::unsupported:
      return 5;
    case ErrorCode::limit:
      return 6;
  }
  return 1;
}

std::string version_text() { return join("mica ", MICA_PROGRAM_VERSION, "\n"); }

std::string default_config_file() {
  const std::string_view home = variable("HOME"), xdg = variable("XDG_CONFIG_HOME");
  const std::string folder = xdg.empty() ? join(home, "/.config") : std::string(xdg);
  const std::string path = join(folder, "/mica/config.toml");
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? path : std::string();
}

std::string variable_of(std::string_view flag) {
  std::string name = "MICA_ARG_";
  for (const char c : flag)
    name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::uint64_t clock_seed() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

std::uint64_t peak_bytes() {
#ifdef __linux__
  // getrusage() would answer for the process that started this one, too.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
#endif
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<std::uint64_t>(usage.ru_maxrss);
#else
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
#endif
}

std::optional<std::string> LineReader::next() {
  while (true) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    char buffer[1 << 14];
    const ::ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return pending_.empty() ? std::nullopt : std::optional(std::exchange(pending_, {}));
    pending_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string read_text(const std::string& path) {
  std::string text;
  if (path == "-") {
    char buffer[1 << 16];
    for (::ssize_t got = 1; got != 0;) {
      got = ::read(STDIN_FILENO, buffer, sizeof buffer);
      const int error = errno;
      if (got < 0 && interrupted()) throw Stop{130, {}};
      if (got < 0 && error == EINTR) continue;
      MICA_CHECK(got >= 0, file, "stdin: reading failed: ", std::strerror(error));
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }
  const io::File file = io::File::open(path);
  text.resize(static_cast<std::size_t>(file.size()));
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

}  // namespace mica::program
