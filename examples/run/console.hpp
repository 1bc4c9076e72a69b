// SPDX-License-Identifier: Apache-2.0
//
// The terminal and the environment of the program: the answer goes to stdout, everything else to stderr;
// signals; variables.
#pragma once

#include "mica/base/error.hpp"
#include "mica/base/log.hpp"
#include "terminal_filter.hpp"

#include <atomic>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>

namespace mica::program {

struct OutputOptions;

/// The program is to end now: `text` goes to stdout for code 0; otherwise it follows "mica " on stderr.
struct Stop {
  int code = 0;
  std::string text;
};

/// Writes text of the program to stdout at once, through printable(), so that text of a file cannot
/// control the terminal. JSON, which has its own escapes, is written unchanged. Raises ErrorCode::failed when
/// the bytes cannot be written; throws a Stop with 0 and no text if the reader of a pipe has closed it.
void print(std::string_view text);
/// Whether anything was written to stdout, or an attempt was made.
[[nodiscard]] bool has_printed() noexcept;

/// Text of a model or a file on its way to stdout, in pieces: unchanged to a pipe or a file, through a
/// TerminalFilter to a terminal without --raw-output.
class DataOutput {
 public:
  explicit DataOutput(const OutputOptions& options);
  /// Raises like print().
  void write(std::string_view piece);
  /// The end of the text.
  void finish();

 private:
  std::optional<TerminalFilter> filter_;
};

/// Thoughts of a model on their way to stderr: dim where it has colours, between lines with <think> and
/// </think> where not. A terminal gets them through a TerminalFilter, without --raw-output.
class ThoughtOutput {
 public:
  explicit ThoughtOutput(const OutputOptions& options);
  void write(std::string_view piece);
  /// The end of the thoughts: the cursor is at the beginning of a line.
  void finish();

 private:
  std::optional<TerminalFilter> filter_;
  bool dim_;
};

/// Writes a whole text like a DataOutput.
void print_data(const OutputOptions& options, std::string_view text);

/// Writes a message to stderr at once, unless the program is quiet: through message_text(), dim on a
/// terminal.
void note(const OutputOptions& options, std::string_view text);
/// The same of text(), after a file was written: where memory is refused for it, the work is done all the
/// same, and nothing is said.
template <class Text>
void last_note(const OutputOptions& options, const Text& text) {
  try {
    note(options, text());
  } catch (const std::bad_alloc&) {  // the exit code stays that of the file
  }
}

/// Writes `before`, the message in one line, and its end to stderr, through message_text().
void write_error_line(std::string_view message, std::string_view before = "mica: ") noexcept;

/// Writes lines to stderr, through printable().
void write_error(std::string_view text);

/// Shows a line on the terminal of stderr in place of the one before; an empty text takes it away, and so
/// does the next message. Any thread.
void show_status(std::string_view text);

/// Writes to stderr as it is: control sequences of the program's own.
void write_sequence(std::string_view text);

/// A sink that shows warnings, and with --verbose everything, on stderr.
[[nodiscard]] LogSink log_to_stderr(const OutputOptions& options);
/// The last error that came through such a sink; empty when there was none.
[[nodiscard]] const std::string& last_error();

/// Whether a stream is to be coloured: a terminal that can, unless NO_COLOR, TERM or --color say otherwise.
[[nodiscard]] bool colored(const OutputOptions& options, int descriptor);

/// Set by SIGINT, SIGTERM and SIGHUP. The same one of the first two again ends the program at once, with 130;
/// SIGHUP never does, since a terminal that closes may send it twice.
[[nodiscard]] const std::atomic<bool>& interrupted();
/// Whether SIGTERM or SIGHUP came: the program saves its session and ends.
[[nodiscard]] bool terminated();
/// Ready for the next interrupt; terminated() stays.
void forget_interrupt();
/// The exit code of a verb that ended with `code`: 129 in place of 130 after SIGHUP.
[[nodiscard]] int code_after_signals(int code);
/// Opens what is closed of stdin, stdout and stderr, so that no file of the program takes its place.
void fill_streams();
/// Handles the signals above and faults of mapped files, which end the program with a sentence and 1. A
/// closed pipe and the limit on the size of files become errors of write().
void watch_signals();

/// The exit code of an error.
[[nodiscard]] int exit_code(ErrorCode code) noexcept;

[[nodiscard]] std::string version_text();
/// `$XDG_CONFIG_HOME/mica/config.toml` if it exists, else empty.
[[nodiscard]] std::string default_config_file();
/// "top-k" -> "MICA_ARG_TOP_K"
[[nodiscard]] std::string variable_of(std::string_view flag);
[[nodiscard]] std::uint64_t clock_seed();

/// Bytes of memory that this process has now; 0 where the system does not say.
[[nodiscard]] std::uint64_t resident_bytes();
/// Gives freed memory back to the system.
void release_memory();

/// The largest resident memory of this process so far, in bytes.
[[nodiscard]] std::uint64_t peak_bytes();

/// The lines of stdin, as they come.
class LineReader {
 public:
  /// The effect of SIGINT while the program waits for a line: a chat prompts again, other verbs end.
  enum class OnInterrupt : std::uint8_t { go_on, end };
  explicit LineReader(OnInterrupt on_interrupt = OnInterrupt::go_on) : on_interrupt_(on_interrupt) {}

  /// The next line without its end, LF or CR LF; empty when there are no more. An interrupt that ends the
  /// verb is a Stop.
  [[nodiscard]] std::optional<std::string> next();

 private:
  OnInterrupt on_interrupt_;
  std::string pending_;  // bytes beyond the last line
};

/// A whole file, or stdin for "-". Raises ErrorCode::file, and limit for more than 256 MiB of stdin; an
/// interrupt while stdin is read is a Stop.
[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace mica::program
