// SPDX-License-Identifier: Apache-2.0
//
// The program mica runs one verb; errors become one sentence on stderr and an exit code (exit_code() of
// console.cpp maps them):
//
//   0 done   1 failed while running   2 usage   3 file missing, unreadable or damaged   4 over the budget
//   5 not supported   6 a limit was reached   129 hung up   130 interrupted
#include "command_line.hpp"
#include "console.hpp"
#include "mica/base/error.hpp"
#include "model_name.hpp"
#include "parse.hpp"
#include "remote.hpp"
#include "report.hpp"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <span>
#include <string_view>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace mica::program {
namespace {

thread_local bool memory_refused = false;
std::terminate_handler former_terminate = nullptr;

/// Throws like operator new without a handler, and remembers that.
[[noreturn]] void on_refusal() {
  memory_refused = true;
  throw std::bad_alloc();
}

/// Also called if memory is refused where nothing may be thrown, such as in the destructor of a JSON value,
/// which allocates. There is no exception then, and no function that allocates can be called.
[[noreturn]] void on_terminate() noexcept {
  if (memory_refused) {
    write_sequence("mica: out of memory\n");
    ::_exit(4);
  }
  former_terminate();
  std::abort();
}

#if defined(__linux__)
/// Blocks of a quarter of a MiB are mapped by themselves, so that they return to the system when they are freed.
/// Without a number glibc raises this limit, up to 32 MiB, and keeps most of what a model allocated while it was
/// read (measured: 36 MiB after 20 models). Two arenas are enough for threads that seldom allocate.
void give_back_memory() {
#if defined(__GLIBC__)
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  ::mallopt(M_ARENA_MAX, 2);
#endif
}

/// Before all other initialisers, some of which allocate.
[[gnu::constructor(101)]]
#endif
void watch_memory() {
  give_back_memory();
  std::set_new_handler(on_refusal);
  if (former_terminate == nullptr) former_terminate = std::set_terminate(on_terminate);
}

/// The exit code of the verb. Sets `form` from its options.
int run_program(int argc, char** argv, ErrorForm& form) {
  const Request request = parse(argc, argv);
  Verb& verb = *request.verb;
  form = verb.error_form();
  for (const std::string& line : request.notes) note(verb, join("mica: ", line));
  if (!request.config.empty()) return print(request.config), 0;
  find_named_model(verb);
  refuse_url(verb);
  verb.prepare();
  return verb.run();
}

/// The exit code of the verb, or of what it threw.
int code_of_program(int argc, char** argv) {
  ErrorForm form = error_form_of(std::span<char* const>(argv + 1, argv + argc));
  try {
    try {
      return run_program(argc, argv, form);
    } catch (const Stop& stop) {
      if (stop.code != 0) return report_error(stop.code, stop.text, form, "mica ");
      print(stop.text);
      return 0;
    }
  } catch (const Stop& stop) {  // the reader of a help text has closed stdout
    return stop.code;
  } catch (const Error& error) {
    return report_error(exit_code(error.code()), error.message(), form);
  } catch (const std::bad_alloc&) {
    return report_error(4, "out of memory", ErrorForm::text);
  } catch (const std::filesystem::filesystem_error& error) {
    return report_error(1, join(error.path1().string(), ": ", error.code().message()), form);
  } catch (const std::exception& error) {
    return report_error(1, error.what(), form);
  }
}

}  // namespace
}  // namespace mica::program

int main(int argc, char** argv) {
  mica::program::watch_memory();
  mica::program::fill_streams();
  mica::program::watch_signals();
  return mica::program::code_after_signals(mica::program::code_of_program(argc, argv));
}
