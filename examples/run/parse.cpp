// SPDX-License-Identifier: Apache-2.0
#include "parse.hpp"

#include "command_line.hpp"
#include "config_file.hpp"
#include "console.hpp"
#include "foreign_flags.hpp"
#include "help_text.hpp"
#include "man_page.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/io/detail/near_name.hpp"
#include "mica_tools/remote/url.hpp"
#include "model_name.hpp"
#include "suggestion.hpp"
#include "topics.hpp"

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

/// Whether a first word is a model rather than a verb.
bool names_model(const std::string& word) {
  std::error_code error;
  return word.find('/') != std::string::npos || word.ends_with(".gguf") || remote::is_url(word) ||
         std::filesystem::exists(word, error) || is_model_name(word);
}

/// The words of a command line: a verb and its arguments. The other verbs say what a name may mean.
struct Call {
  std::vector<AnyVerb> verbs;
  Verb* verb = nullptr;
  std::vector<std::string> arguments;
};

/// Words that may stand first, besides models and flags.
std::vector<std::string_view> first_words(const std::vector<AnyVerb>& verbs) {
  std::vector<std::string_view> names = {"help", "version"};
  for (const AnyVerb& verb : verbs) names.push_back(verb->about.name);
  return names;
}

std::string near_verb(const std::vector<AnyVerb>& verbs, const std::string& name) {
  return suggestion(name, verbs, [](const AnyVerb& verb) { return verb->about.name; });
}

Verb& verb_named(const std::vector<AnyVerb>& verbs, const std::string& name) {
  if (Verb* const verb = find_verb(verbs, name)) return *verb;
  if (const ForeignVerb* const verb = find_foreign(foreign::verbs, name))
    raise(ErrorCode::usage, "there is no verb ", name, ": ", verb->why, ". See mica help.");
  if (find_topic(name) != nullptr)
    raise(ErrorCode::usage, "'", name, "' is a topic, no verb. See mica help ", name, ".");
  raise(ErrorCode::usage, "unknown verb '", escaped(name), "', and no file of that name.",
        suggestion(name, first_words(verbs)), " See mica help.");
}

/// The text of `mica help NAME`.
std::string text_about(const std::vector<AnyVerb>& verbs, const std::string& name) {
  if (Verb* const verb = find_verb(verbs, name)) return help_text(*verb);
  if (const Topic* const topic = find_topic(name)) return std::string(topic->text);
  if (const ForeignVerb* const verb = find_foreign(foreign::verbs, name))
    raise(ErrorCode::usage, "there is no verb ", name, ": ", verb->why, ". See mica help.");
  std::vector<std::string_view> names = first_words(verbs);
  std::string all;
  for (const Topic& topic : topics()) {
    names.push_back(topic.name);
    all += join(" ", topic.name);
  }
  raise(ErrorCode::usage, "help: no verb and no topic '", escaped(name), "'.", suggestion(name, names),
        " Topics:", all, ". See mica help.");
}

/// `mica help` with the words after it.
[[noreturn]] void help(const std::vector<AnyVerb>& verbs, const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "help") throw Stop{0, help_text(verbs)};
  if (words[0] == "--man")
    throw Stop{0, words.size() < 2 ? man_page(verbs) : man_page(verb_named(verbs, words[1]))};
  if (words[0] == "--files") {
    MICA_CHECK(words.size() == 2, usage, "help --files: needed: one folder");
    write_pages(verbs, words[1]);
    throw Stop{0, {}};
  }
  throw Stop{0, text_about(verbs, words[0])};
}

/// Flags without a verb, and a model without a verb, are for run.
Call call_of(std::vector<std::string> words) {
  Call call;
  call.verbs = make_verbs();
  const std::string first = words.empty() ? "help" : words.front();
  if (first == "--version" || first == "-V" || first == "version") throw Stop{0, version_text()};
  if (first == "help" || first == "--help" || first == "-h") {
    words.erase(words.begin(), words.begin() + (words.empty() ? 0 : 1));
    help(call.verbs, words);
  }
  const bool is_verb = find_verb(call.verbs, first) != nullptr;
  if (!is_verb && (first.starts_with('-') || names_model(first))) {
    call.verb = find_verb(call.verbs, "run");
  } else {
    call.verb = &verb_named(call.verbs, first);
    words.erase(words.begin());
  }
  call.arguments = std::move(words);
  return call;
}

/// Sets the flags of one verb from a configuration file. Names that no verb has are noted, not refused: a
/// later version of the program may have them.
class FileValues {
 public:
  FileValues(const Call& call, Flags& flags, std::vector<std::string>& notes)
      : verbs_(call.verbs), verb_(call.verb->about.name), flags_(flags), notes_(notes) {}

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
  /// The flag of a key of a file; null if there is none.
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
    if (find_verb(verbs_, entry.section) == nullptr)
      note(place, join("[", entry.section, "] is no verb"), near_verb(verbs_, entry.section));
  }

  /// Notes a key that the verb of its section, or at the top every verb, lacks.
  void check_key(const ConfigFile::Entry& entry, const std::string& place, const std::string& section) {
    if (!section.empty() && find_verb(verbs_, section) == nullptr) return;
    bool known = false;
    std::vector<std::string> keys;
    for (const AnyVerb& verb : verbs_) {
      if (!section.empty() && verb->about.name != section) continue;
      Flags flags = verb->flags();
      known = known || find(flags, entry.key) != nullptr;
      for (const std::string& name : flags.names()) {
        if (name.starts_with("--")) keys.push_back(name.substr(2));
      }
    }
    if (!known)
      note(place, join(entry.key, " is no flag of ", section.empty() ? "any verb" : join("mica ", section)),
           suggestion(entry.key, keys));
  }

  void note(const std::string& place, const std::string& what, const std::string& near) {
    notes_.push_back(join(place, ": ", what, "; ignored.", near));
  }

  const std::vector<AnyVerb>& verbs_;
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

/// Notes variables that no verb reads, such as a mistyped name.
void check_environment(const std::vector<AnyVerb>& verbs, const Flags& flags,
                       std::vector<std::string>& notes) {
  const auto known = [](const Flags& of, std::string_view name) {
    return std::any_of(of.all().begin(), of.all().end(),
                       [&](const Flag& flag) { return flag.variable() == name; });
  };
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const std::string prefix = variable_of(""), name(variable.substr(0, variable.find('=')));
    if (!name.starts_with(prefix) || known(flags, name)) continue;
    bool read = false;
    io::NearName near(name.substr(prefix.size()));
    for (const AnyVerb& verb : verbs) {
      const Flags of = verb->flags();
      read = read || known(of, name);
      for (const Flag& flag : of.all()) near.offer(flag.variable(), flag.variable().substr(prefix.size()));
    }
    if (!read)
      notes.push_back(join(name, ": no flag has this variable; it is ignored.",
                           near.best() ? join(" Did you mean ", *near.best(), "?") : std::string()));
  }
}

/// The first word is the model, unless a flag names it; the others are the verb's.
void place_words(Flags& flags, std::vector<std::string> words, std::string_view verb) {
  Flag* const model = flags.model_flag();
  const Flag* const repo = flags.find("--hf-repo");
  const bool is_named =
      model != nullptr && (model->source == Source::flag || (repo && repo->source == Source::flag));
  if (model != nullptr && !is_named && !words.empty()) {
    model->take(words.front(), Source::flag, "MODEL");
    words.erase(words.begin());
  }
  if (flags.words_to() != nullptr) {
    *flags.words_to() = std::move(words);
  } else if (!words.empty()) {
    raise(ErrorCode::usage, "'", escaped(words.front()), "' is one word too many; mica ", verb,
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

/// Sets all values of the verb of a call. Raises ErrorCode::usage with a complete sentence.
Request read(Call& call) {
  Verb& verb = *call.verb;
  Flags flags = verb.flags();
  CommandLine line = read_command_line(flags, call.arguments);
  Request request;
  request.notes = std::move(line.notes);
  for (const CommandLine::Value& value : line.values) {
    if (value.flag->key() == "help") value.flag->take(value.text, Source::flag, value.name);
  }
  if (verb.help) throw Stop{0, help_text(verb)};
  if (const std::string path = config_path_of(line); !path.empty())
    FileValues(call, flags, request.notes).apply(ConfigFile(path));
  take_environment(flags);
  check_environment(call.verbs, flags, request.notes);
  for (const CommandLine::Value& value : line.values) value.flag->take(value.text, Source::flag, value.name);
  place_words(flags, std::move(line.words), verb.about.name);
  if (verb.print_config) request.config = config_text(verb.about.name, flags);
  flags.settle(request.notes);
  const auto mine = std::find_if(call.verbs.begin(), call.verbs.end(),
                                 [&](const AnyVerb& each) { return each.get() == &verb; });
  request.verb = std::move(*mine);
  return request;
}

}  // namespace

Request parse(int argc, char** argv) {
  Call call = call_of(std::vector<std::string>(argv + 1, argv + argc));
  const std::string_view verb = call.verb->about.name;
  try {
    return read(call);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    throw Stop{2, join(verb, ": ", sentence(error.message()), " See mica ", verb, " --help.")};
  }
}

}  // namespace mica::program
