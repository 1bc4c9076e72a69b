// SPDX-License-Identifier: Apache-2.0
#include "completion_script.hpp"

#include "mica_tools/fit/catalogue.hpp"
#include "suggestion.hpp"
#include "topics.hpp"

#include <algorithm>
#include <utility>

namespace mica::program {
namespace {

ShellValue value_of(std::string type, std::vector<std::string> names, bool is_model) {
  const auto kind = !names.empty()                    ? Expected::names
                    : is_model || type == "MODEL"     ? Expected::model
                    : type == "FILE" || type == "OUT" ? Expected::file
                    : type == "DIR"                   ? Expected::folder
                                                      : Expected::text;
  return {kind, std::move(type), std::move(names)};
}

/// The model of a verb: pull needs a name, and show looks at what is here.
Expected model_of(const Verb& verb) {
  if (verb.about.name == "pull") return Expected::published;
  if (verb.about.name == "show") return Expected::present;
  return verb.needs == Verb::Needs::local ? Expected::model : Expected::named;
}

ShellFlag flag_of(const Flag& flag, const Verb& verb) {
  ShellFlag out{flag.names, flag.about, {}};
  out.names.insert(out.names.end(), flag.off.begin(), flag.off.end());
  if (flag.is_switch()) return out;
  out.value = value_of(flag.type, flag.known, flag.is_model);
  if (flag.is_model) out.value.kind = model_of(verb);
  return out;
}

ShellVerb verb_of(Verb& verb) {
  Flags flags = verb.flags();
  ShellVerb out{std::string(verb.about.name), std::string(verb.about.summary), {}, {}, false};
  for (const Flag& flag : flags.all()) out.flags.push_back(flag_of(flag, verb));
  if (flags.model_flag() != nullptr) out.words.push_back({model_of(verb), "MODEL", {}});
  for (const Word& word : flags.each_word()) {
    out.words.push_back(value_of(word.name, word.known, false));
    // A name or a file: both are expected of a MODEL that has names.
    if (word.name == "MODEL") out.words.back().kind = Expected::model;
    if (verb.about.name == "rm") out.words.back().kind = Expected::here;
  }
  out.repeats = flags.each_word().size() == 1 && out.words.back().kind != Expected::names;
  return out;
}

ShellVerb help_of(const std::vector<ShellVerb>& verbs) {
  ShellVerb out{"help", "this text, or that of a verb or a topic", {}, {}, false};
  ShellValue topic{Expected::names, "TOPIC", {}};
  for (const ShellVerb& verb : verbs) topic.names.push_back(verb.name);
  for (const Topic& each : topics()) topic.names.emplace_back(each.name);
  out.words.push_back(std::move(topic));
  out.flags.push_back({{"--man"}, "the same as a manual page", {}});
  out.flags.push_back(
      {{"--files"}, "write all manual pages and completions below a folder", {Expected::folder, "DIR", {}}});
  return out;
}

}  // namespace

std::vector<ShellVerb> shell_verbs() {
  std::vector<ShellVerb> out;
  for (const AnyVerb& verb : make_verbs()) out.push_back(verb_of(*verb));
  out.push_back(help_of(out));
  out.push_back({"version", "the version of the program", {}, {}, false});
  return out;
}

std::vector<std::string> published_names() {
  std::vector<std::string> names;
  for (const fit::Row& each : fit::catalogue) {
    if (!each.gguf.empty()) names.emplace_back(each.name);
  }
  return names;
}

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_completion(shell_verbs());
  if (shell == "zsh") return zsh_completion(shell_verbs());
  if (shell == "fish") return fish_completion(shell_verbs());
  raise(ErrorCode::usage, "completion: unknown shell '", escaped(shell), "'.",
        suggestion(shell, completion_shells()), " Known: ", words_joined(completion_shells()));
}

std::string completion_file(std::string_view shell) {
  return shell == "zsh" ? std::string("_mica") : join("mica.", shell);
}

std::string single_quoted(std::string_view text, std::string_view quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string words_joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += join(out.empty() ? std::string_view() : between, word);
  return out;
}

}  // namespace mica::program
