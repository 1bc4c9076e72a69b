// SPDX-License-Identifier: Apache-2.0
//
// The program mica: one verb, one function; errors become one sentence on stderr and an exit code.
//
//   0 done   1 failed while running   2 usage   3 file missing, unreadable or damaged   4 does not fit the budget
//   5 not supported   6 a limit was reached   130 interrupted
#include "console.hpp"
#include "mica/base/error.hpp"
#include "options.hpp"
#include "remote.hpp"
#include "targets.hpp"
#include "verbs.hpp"

#include <iterator>
#include <new>
#include <string_view>

namespace mica::program {
namespace {

struct Verb {
  std::string_view name;
  int (*function)(const Options&);
  bool header_is_enough = false;  // of a model, which may then be on a server
};

constexpr Verb verbs[] = {
    {"run", run},
    {"chat", run},
    {"complete", complete},
    {"inspect", inspect, true},
    {"tokenize", tokenize, true},
    {"detokenize", detokenize, true},
    {"template", render_template, true},
    {"logits", logits},
    {"bench", bench},
    {"perplexity", perplexity},
    {"imatrix", imatrix},
    {"quantize", quantize_file},
    {"convert", convert_folder},
    {"pack", pack_model},
    {"synth", synth},
    {"plan", plan, true},
    {"fit", fit_models},
    {"doctor", doctor},
};

int dispatch(int argc, char** argv) {
  const Options options = parse(argc, argv);
  for (const std::string& line : options.notes) note(options, join("mica: ", line));
  if (!options.targets.empty()) limit_targets(options.targets);
  for (const Verb& verb : verbs) {
    if (verb.name != options.verb) continue;
    require_files(options, verb.header_is_enough);
    return verb.function(options);
  }
  return 2;
}

}  // namespace
}  // namespace mica::program

int main(int argc, char** argv) {
  namespace program = mica::program;
  program::watch_interrupts();
  try {
    return program::dispatch(argc, argv);
  } catch (const program::Stop& stop) {
    if (stop.code == 0) {
      program::print(stop.text);
    } else {
      program::write_error(stop.text);
    }
    return stop.code;
  } catch (const mica::Error& error) {
    program::write_error_line(error.message());
    return program::exit_code(error.code());
  } catch (const std::bad_alloc&) {
    program::write_sequence("mica: out of memory\n");
    return 4;
  } catch (const std::exception& error) {
    program::write_error_line(error.what());
    return 1;
  }
}
