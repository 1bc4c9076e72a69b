// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include "mica/base/assert.hpp"
#include "mica/budget/detail/own_pages.hpp"
#include "mica/io/file.hpp"
#include "mica/io/map_fault.hpp"
#include "mica/version.hpp"
#include "output_options.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace mica::program {
namespace {

std::atomic<bool> stop_wanted{false};
std::atomic<bool> something_printed{false};
std::atomic<int> last_interrupt{0};    // its number
std::atomic<int> last_termination{0};  // SIGTERM, SIGHUP
std::atomic_flag faulted;

std::string& error_text() {
  static std::string text;
  return text;
}

/// Writes all bytes; false if that fails.
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
  if (!text.empty()) something_printed = true;
  if (write_all(STDOUT_FILENO, text)) return;
  if (errno == EPIPE) throw Stop{0, {}};  // the reader has closed the pipe
  raise(ErrorCode::failed, "stdout: writing failed: ", std::strerror(errno));
}

std::atomic<bool> status_shown{false};

void clear_status() {
  if (status_shown.exchange(false)) write_sequence("\r\x1b[K");
}

void on_interrupt(int number) {
  if (number != SIGINT) last_termination = number;
  stop_wanted = true;
  if (last_interrupt.exchange(number) != number || number == SIGHUP) return;
  clear_status();
  ::_exit(130);
}

/// Several threads may fault; the first one writes the sentence.
void on_fault(int number, ::siginfo_t* info, void*) {
  char text[io::fault_text_bytes];
  const std::size_t size = io::fault_text(info->si_addr, text);
  if (size == 0) {  // the fault repeats, and ends the program as without a handler
    std::signal(number, SIG_DFL);
    return;
  }
  while (faulted.test_and_set()) ::pause();
  write_all(STDERR_FILENO, "mica: ");
  write_all(STDERR_FILENO, std::string_view(text, size));
  ::_exit(1);
}

/// As read(2), but a signal after which stop() is true ends it with EINTR even if the signal came just before.
template <class Stop>
::ssize_t read_input(int input, std::span<char> to, Stop stop) {
  sigset_t watched, before;
  sigemptyset(&watched);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched, number);
  ::pthread_sigmask(SIG_BLOCK, &watched, &before);
  ::fd_set inputs;
  FD_ZERO(&inputs);
  FD_SET(input, &inputs);
  const bool ready = !stop() && ::pselect(input + 1, &inputs, nullptr, nullptr, nullptr, &before) >= 0;
  const int error = stop() ? EINTR : errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return ready ? ::read(input, to.data(), to.size()) : -1;
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

void print(std::string_view text) { deliver(printable(text)); }

bool has_printed() noexcept { return something_printed; }

DataOutput::DataOutput(const OutputOptions& options) {
  if (::isatty(STDOUT_FILENO) == 1 && !options.raw_output) filter_.emplace(colored(options, STDOUT_FILENO));
}

void DataOutput::write(std::string_view piece) { deliver(filter_ ? filter_->filter(piece) : piece); }

void DataOutput::finish() {
  if (filter_) deliver(filter_->finish());
}

ThoughtOutput::ThoughtOutput(const OutputOptions& options) : dim_(colored(options, STDERR_FILENO)) {
  if (::isatty(STDERR_FILENO) == 1 && !options.raw_output) filter_.emplace(false);
  clear_status();
  write_sequence(dim_ ? "\x1b[2m" : "<think>\n");
}

void ThoughtOutput::write(std::string_view piece) {
  write_sequence(filter_ ? filter_->filter(piece) : piece);
}

void ThoughtOutput::finish() {
  if (filter_) write_sequence(filter_->finish());
  write_sequence(dim_ ? "\x1b[0m\n\n" : "\n</think>\n");
}

void print_data(const OutputOptions& options, std::string_view text) {
  DataOutput output(options);
  output.write(text);
  output.finish();
}

void note(const OutputOptions& options, std::string_view text) {
  if (options.quiet) return;
  const bool dim = colored(options, STDERR_FILENO);
  clear_status();
  write_sequence(join(dim ? "\x1b[2m" : "", message_text(text), dim ? "\x1b[0m\n" : "\n"));
}

void write_error_line(std::string_view message, std::string_view before) noexcept try {
  clear_status();
  write_sequence(join(before, message_text(message, {}), "\n"));
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

LogSink log_to_stderr(const OutputOptions& options) {
  const auto write = [](void* context, LogLevel level, std::string_view message) {
    const auto& o = *static_cast<const OutputOptions*>(context);
    if (level == LogLevel::error) {
      error_text() = message;
      return write_error_line(message);
    }
    if (level == LogLevel::warning || o.verbose) note(o, join("mica: ", message));
  };
  return {write, const_cast<OutputOptions*>(&options)};
}

const std::string& last_error() { return error_text(); }

bool colored(const OutputOptions& options, int descriptor) {
  if (options.color != ColorMode::automatic) return options.color == ColorMode::always;
  const std::string_view force = variable("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return ::isatty(descriptor) == 1 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

const std::atomic<bool>& interrupted() { return stop_wanted; }

bool terminated() { return last_termination != 0; }

void forget_interrupt() {
  last_interrupt = 0;
  stop_wanted = false;
}

int code_after_signals(int code) { return code == 130 && last_termination == SIGHUP ? 129 : code; }

void fill_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // For reading alone: stdin is at its end, and writing to stdout fails, as if it were closed.
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction former {};
  const bool ignored = ::sigaction(SIGHUP, nullptr, &former) == 0 && former.sa_handler == SIG_IGN;  // nohup
  if (!ignored) ::sigaction(SIGHUP, &action, nullptr);
  struct sigaction fault {};
  fault.sa_sigaction = on_fault;
  fault.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &fault, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
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

std::uint64_t resident_bytes() {
  const auto statm = budget::detail::read_text("/proc/self/statm");
  return budget::detail::page_bytes() * budget::detail::OwnPages::of(statm.value_or("")).resident;
}

void release_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

/// Of stdin, which may have no end.
static constexpr std::size_t max_input_bytes = std::size_t{256} << 20;

std::optional<std::string> LineReader::next() {
  while (true) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      if (line.ends_with('\r')) line.pop_back();
      pending_.erase(0, end + 1);
      return line;
    }
    char buffer[1 << 14];
    const bool ends = on_interrupt_ == OnInterrupt::end;
    const ::ssize_t got =
        read_input(STDIN_FILENO, buffer, [&] { return ends ? interrupted().load() : terminated(); });
    if (ends && interrupted()) throw Stop{130, {}};
    if (got < 0 && errno == EINTR && !terminated()) continue;
    if (got <= 0) return pending_.empty() ? std::nullopt : std::optional(std::exchange(pending_, {}));
    pending_.append(buffer, static_cast<std::size_t>(got));
    MICA_CHECK(pending_.size() <= max_input_bytes, limit, "stdin: found a line of more than ",
               max_input_bytes >> 20, " MiB, allowed are as many");
  }
}

std::string read_text(const std::string& path) {
  std::optional<io::File> file;
  if (path != "-") file = io::File::open(path);
  std::string text;
  if (file && file->size() != 0) {
    text.resize(static_cast<std::size_t>(file->size()));
    file->read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    return text;
  }
  char buffer[1 << 16];  // stdin, or a file of /proc, which has size 0
  for (::ssize_t got = 1; got != 0;) {
    got = read_input(file ? file->descriptor() : STDIN_FILENO, buffer, [] { return interrupted().load(); });
    if (got < 0 && errno == EINTR) {
      if (interrupted()) throw Stop{130, {}};
      continue;
    }
    MICA_CHECK(got >= 0, file, file ? path : "stdin", ": reading failed: ", std::strerror(errno));
    text.append(buffer, static_cast<std::size_t>(got));
    MICA_CHECK(text.size() <= max_input_bytes, limit, file ? path : "stdin", ": found more than ",
               max_input_bytes >> 20, " MiB, allowed are as many; give a file, or less text");
  }
  return text;
}

}  // namespace mica::program
