// SPDX-License-Identifier: Apache-2.0
//
// From a command line, the environment and a configuration file to Options.
#include "options.hpp"

#include "command_line.hpp"
#include "config_file.hpp"
#include "console.hpp"
#include "foreign_flags.hpp"
#include "help_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/ceiling.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica/io/near_name.hpp"
#include "mica_tools/remote/url.hpp"
#include "suggestion.hpp"
#include "verb_flags.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <unistd.h>

namespace mica::program {
namespace {

constexpr std::string_view parser_keys[] = {"help", "config", "print-config"};  // not in files and variables

bool is_parser_key(std::string_view key) {
  return std::find(std::begin(parser_keys), std::end(parser_keys), key) != std::end(parser_keys);
}

/// A verb and its arguments.
struct Request {
  const VerbText* verb;
  std::vector<std::string> arguments;
  bool help = false;
};

/// Whether a first word is a model rather than a verb.
bool names_model(const std::string& word) {
  std::error_code error;
  return word.find('/') != std::string::npos || word.ends_with(".gguf") || remote::is_url(word) ||
         std::filesystem::exists(word, error);
}

const VerbText& verb_named(const std::string& name) {
  if (const VerbText* const verb = find_verb(name)) return *verb;
  if (const ForeignVerb* const verb = find_foreign(foreign::verbs, name))
    raise(ErrorCode::usage, "there is no verb ", name, ": ", verb->why, ".  See mica help.");
  raise(ErrorCode::usage, "unknown verb '", escaped(name), "', and no file of that name.",
        suggestion(name, verb_names()), "  See mica help.");
}

/// The verb and its arguments. Flags without a verb, and a model without a verb, are for run.
Request request_of(std::vector<std::string> words) {
  const std::string first = words.empty() ? "help" : words.front();
  if (first == "--version" || first == "-V" || first == "version") throw Stop{0, version_text()};
  if (first == "help" || first == "--help" || first == "-h") {
    if (words.size() < 2 || words[1] == "help") throw Stop{0, help_text()};
    return {&verb_named(words[1]), {}, true};
  }
  const bool is_verb = find_verb(first) != nullptr;
  if (!is_verb && (first.starts_with('-') || names_model(first))) return {find_verb("run"), std::move(words)};
  const VerbText& verb = verb_named(first);
  words.erase(words.begin());
  return {&verb, std::move(words)};
}

/// Calls f(verb, flags) for every verb.
template <class F>
void for_each_verb(F&& f) {
  for (const VerbText& verb : all_verbs()) {
    Options options;
    CommonFlags common;
    Flags flags = flags_of(verb, options, common);
    f(verb, flags);
  }
}

/// Gives what a configuration file says to the flags of one verb. Names that no verb has are noted, not
/// refused: a file serves versions of the program that have them, too.
class FileValues {
 public:
  FileValues(const VerbText& verb, Flags& flags, std::vector<std::string>& notes)
      : verb_(verb.name), flags_(flags), notes_(notes) {}

  void apply(const ConfigFile& file) {
    for (const ConfigFile::Entry& entry : file.entries()) {
      const std::string place = file.place(entry);
      Flag* const flag = find(flags_, entry.key);
      if (entry.key.empty()) {
        check_section(entry, place);
      } else if (!entry.section.empty() && entry.section != verb_) {
        check_key(entry, place, entry.section);
      } else if (flag == nullptr) {
        check_key(entry, place, entry.section);
      } else {
        give(*flag, entry, join(place, ": ", entry.key));
      }
    }
  }

 private:
  /// The flag that a key of a file gives a value to; null when there is none.
  static Flag* find(Flags& flags, const std::string& key) {
    Flag* const flag = flags.find_key(key);
    return flag == nullptr || is_parser_key(flag->key()) ? nullptr : flag;
  }

  static void give(Flag& flag, const ConfigFile::Entry& entry, const std::string& where) {
    if (flag.source == Source::file) flag.drop();
    if (flag.collects) {
      for (const std::string& value : entry.values) flag.take(value, Source::file, where);
    } else if (entry.is_list && flag.type == "LIST") {
      std::string joined;
      for (const std::string& value : entry.values) joined += join(joined.empty() ? "" : ",", value);
      flag.take(joined, Source::file, where);
    } else {
      MICA_CHECK(entry.values.size() == 1, usage, where, " needs ", flag.needs, ", found ",
                 entry.values.size(), " values.");
      flag.take(entry.values.front(), Source::file, where);
    }
  }

  void check_section(const ConfigFile::Entry& entry, const std::string& place) {
    if (find_verb(entry.section) == nullptr)
      note(place, join("[", entry.section, "] is no verb"), suggestion(entry.section, verb_names()));
  }

  /// Notes a key that the verb of its section, or at the top every verb, lacks.
  void check_key(const ConfigFile::Entry& entry, const std::string& place, const std::string& section) {
    if (!section.empty() && find_verb(section) == nullptr) return;
    bool known = false;
    std::vector<std::string> keys;
    for_each_verb([&](const VerbText& verb, Flags& flags) {
      if (!section.empty() && verb.name != section) return;
      known = known || find(flags, entry.key) != nullptr;
      for (const std::string& name : flags.names()) {
        if (name.starts_with("--")) keys.push_back(name.substr(2));
      }
    });
    if (!known)
      note(place, join(entry.key, " is no flag of ", section.empty() ? "any verb" : join("mica ", section)),
           suggestion(entry.key, keys));
  }

  void note(const std::string& place, const std::string& what, const std::string& near) {
    notes_.push_back(join(place, ": ", what, "; ignored.", near));
  }

  std::string_view verb_;
  Flags& flags_;
  std::vector<std::string>& notes_;
};

void take_environment(Flags& flags) {
  for (Flag& flag : flags.all()) {
    if (is_parser_key(flag.key())) continue;
    const std::string variable = flag.variable();
    const char* const value = std::getenv(variable.c_str());
    if (value != nullptr && *value != '\0') flag.take(value, Source::environment, variable);
  }
}

/// Notes variables that no verb reads: a name that was mistyped, most of all.
void check_environment(Flags& flags, std::vector<std::string>& notes) {
  const auto known = [](Flags& of, std::string_view name) {
    return std::any_of(of.all().begin(), of.all().end(),
                       [&](const Flag& flag) { return flag.variable() == name; });
  };
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const std::string prefix = variable_of(""), name(variable.substr(0, variable.find('=')));
    if (!name.starts_with(prefix) || known(flags, name)) continue;
    bool read = false;
    io::NearName near(name.substr(prefix.size()));
    for_each_verb([&](const VerbText&, Flags& of) {
      read = read || known(of, name);
      for (const Flag& flag : of.all()) near.offer(flag.variable(), flag.variable().substr(prefix.size()));
    });
    if (!read)
      notes.push_back(join(name, ": no flag has this variable; it is ignored.",
                           near.best() ? join("  Did you mean ", *near.best(), "?") : std::string()));
  }
}

/// The first word is the model, unless a flag names it; the others are the verb's.
void place_words(Flags& flags, std::vector<std::string> words, const VerbText& verb) {
  Flag* const model = flags.model_flag();
  if (model != nullptr && model->source != Source::flag && !words.empty()) {
    model->take(words.front(), Source::flag, "MODEL");
    words.erase(words.begin());
  }
  if (flags.words_to() != nullptr) {
    *flags.words_to() = std::move(words);
  } else if (!words.empty()) {
    raise(ErrorCode::usage, "'", escaped(words.front()), "' is one word too many; mica ", verb.name,
          " takes a model alone.");
  }
}

std::string config_path_of(const CommandLine& line) {
  std::string path = default_config_file();
  for (const CommandLine::Value& value : line.values) {
    if (value.flag->key() == "config") path = value.text;
  }
  return path;
}

/// Limits are read once, here; plans and ledgers use these numbers.
void settle_memory(Options& o) {
  o.limits = budget::memory_limits();
  if (o.memory.empty()) return;
  const std::uint64_t asked = budget::parse_size(o.memory, o.limits.usable(), "--memory");
  MICA_CHECK(asked != 0, usage, "--memory: found \"", escaped(o.memory),
             "\", needed a size above 0; without --memory the limits of the process and the machine count.");
  const budget::Ceiling ceiling = budget::ceiling_of(asked, o.limits);
  const bool plan = o.verb == "plan";  // its budget may be that of another machine
  o.memory_bytes = plan ? asked : ceiling.bytes;
  if (ceiling.lowered())
    o.notes.push_back(join("--memory ", budget::text(ceiling), plan ? " in a run here" : ""));
}

void check(Options& o) {
  if (o.prompt && !o.words.empty())
    raise(ErrorCode::usage, "a prompt was given twice: as a word and with --prompt.");
  if (!o.draft.empty() && !o.speculate.empty())
    raise(ErrorCode::usage, "--draft and --speculate exclude each other; choose one.");
  if (o.bench_format == BenchFormat::markdown) {
    if (o.json) o.bench_format = BenchFormat::json;
    if (o.jsonl) o.bench_format = BenchFormat::jsonl;
  }
  o.sampler.seed = seed_of(o);
  if (o.threads == 0) return;
  const std::size_t cores = budget::cpu_limits().threads();
  if (o.threads > cores)
    o.notes.push_back(join(o.threads, " threads share ", cores, cores == 1 ? " core" : " cores",
                           "; that is slower, and -t 0 takes one for each usable core"));
}

/// What the words of a verb mean. Raises ErrorCode::usage with a whole sentence.
Options read(const Request& request) {
  const VerbText& verb = *request.verb;
  Options options;
  options.verb = verb.name;
  CommonFlags common;
  Flags flags = flags_of(verb, options, common);
  if (request.help) throw Stop{0, help_text(verb, flags)};
  CommandLine line = read_command_line(flags, request.arguments);
  options.notes = std::move(line.notes);
  for (const CommandLine::Value& value : line.values) {
    if (value.flag->key() == "help") value.flag->take(value.text, Source::flag, value.name);
  }
  if (common.help) throw Stop{0, help_text(verb, flags)};
  if (const std::string path = config_path_of(line); !path.empty())
    FileValues(verb, flags, options.notes).apply(ConfigFile(path));
  take_environment(flags);
  check_environment(flags, options.notes);
  for (const CommandLine::Value& value : line.values) value.flag->take(value.text, Source::flag, value.name);
  place_words(flags, std::move(line.words), verb);
  if (common.print_config) options.config = config_text(options.verb, flags);
  check(options);
  settle_memory(options);
  return options;
}

}  // namespace

Options parse(int argc, char** argv) {
  const Request request = request_of(std::vector<std::string>(argv + 1, argv + argc));
  try {
    return read(request);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    const std::string_view verb = request.verb->name;
    throw Stop{2, join(verb, ": ", error.message(), "  See mica ", verb, " --help.")};
  }
}

std::uint64_t seed_of(const Options& options) {
  return options.seed >= 0 ? static_cast<std::uint64_t>(options.seed) : clock_seed();
}

OpenOptions open_options(const Options& o) {
  OpenOptions open;
  open.n_ctx = o.n_ctx;
  open.chunk = o.chunk;
  open.logits_rows = std::max(1 + (o.draft.empty() ? o.drafts.drafts : o.draft_max), o.parallel);
  open.sequences.count = o.parallel;
  open.threads = o.threads;
  open.choice = choice_of(o.choice);
  open.memory_bytes = o.memory_bytes;
  open.limits = o.limits;
  return open;
}

}  // namespace mica::program
