// SPDX-License-Identifier: Apache-2.0
//
// Completion for zsh 5: a file _mica in a folder of $fpath, or a text for `source`.
#include "completion_script.hpp"
#include "mica/base/error.hpp"

namespace mica::program {
namespace {

/// A text inside [..] or :..: of a specification of _arguments.
std::string escaped_spec(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string action_of(const ShellValue& value) {
  if (value.kind == Expected::names) return join(" _mica_names ", escaped_spec(words_joined(value.names)));
  if (value.kind == Expected::file) return "_files";
  if (value.kind == Expected::folder) return "_files -/";
  if (value.kind == Expected::published) return "_mica_published";
  if (value.kind == Expected::named) return "_mica_named";
  if (value.kind == Expected::here) return "_mica_here";
  if (value.kind == Expected::present) return "_mica_present";
  if (value.kind != Expected::model) return " ";
  return join(" _mica_models ", words_joined(value.names));  // the blank: called with these words alone
}

std::string value_spec(const ShellValue& value) {
  return join(":", escaped_spec(value.type), ":", action_of(value));
}

/// One specification a name; a name excludes the others of its flag, unless the flag may be repeated.
std::string specs_of(const ShellFlag& flag) {
  const bool repeats = flag.about.find("may be repeated") != std::string::npos;
  std::string out;
  for (const std::string& name : flag.names) {
    const bool is_switch = flag.value.kind == Expected::nothing;
    const bool equals = !is_switch && name.starts_with("--");
    const std::string spec =
        join(repeats ? "*" : join("(", words_joined(flag.names), ")"), name, equals ? "=" : "", "[",
             escaped_spec(flag.about), "]", is_switch ? std::string() : value_spec(flag.value));
    out += join("    ", single_quoted(spec), " \\\n");
  }
  return out;
}

std::string function_of(const ShellVerb& verb) {
  std::string out = join("_mica_", verb.name, "() {\n  _arguments -S \\\n");
  for (const ShellFlag& flag : verb.flags) out += specs_of(flag);
  for (std::size_t i = 0; i < verb.words.size(); ++i) {
    const bool last = i + 1 == verb.words.size() && verb.repeats;
    out += join("    ", single_quoted(join(last ? std::string("*") : join(i + 1), value_spec(verb.words[i]))),
                " \\\n");
  }
  out.resize(out.size() - 3);
  return out + "\n}\n\n";
}

constexpr std::string_view zsh_behaviour = R"sh(# Names; no space follows one that ends in a colon.
_mica_names() {
  compadd -- ${argv:#*:}
  compadd -S '' -- ${(M)argv:#*:}
}

# Folders and GGUF files, and names that are given.
_mica_models() {
  local ret=1
  (( $# )) && compadd -M 'm:{a-zA-Z}={A-Za-z}' -- "$@" && ret=0
  _path_files -g '*.gguf(-.)' && ret=0
  _path_files -/ && ret=0
  return ret
}

_mica_named() {
  local ret=1
  _mica_published && ret=0
  _mica_models && ret=0
  return ret
}

# Models that are here.
_mica_here() {
  local -a here=(${(f)"$(command mica list --names 2> /dev/null)"})
  compadd -- $here
}

_mica_present() {
  local ret=1
  _mica_here && ret=0
  _mica_models && ret=0
  return ret
}

_mica_first() {
  local ret=1
  _describe -t verbs verb verbs && ret=0
  _mica_models && ret=0
  return ret
}

if [[ $funcstack[1] == _mica ]]; then
  _mica
else
  compdef _mica mica
fi
)sh";

}  // namespace

std::string zsh_completion(const std::vector<ShellVerb>& verbs) {
  std::string out = "#compdef mica\n# Completion of mica for zsh; written by: mica completion zsh\n\n";
  for (const ShellVerb& verb : verbs) {
    if (!verb.flags.empty() || !verb.words.empty()) {
      out += function_of(verb);
    } else {
      out += join("_mica_", verb.name, "() { _message 'no more words' }\n\n");
    }
  }
  out += "_mica() {\n  local -a verbs=(\n";
  for (const ShellVerb& verb : verbs)
    out += join("    ", single_quoted(join(verb.name, ":", escaped_spec(verb.summary))), "\n");
  return out + R"(  )
  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
    _mica_first
  elif (( CURRENT > 2 )) && [[ -n ${(M)verbs:#${words[2]}:*} ]]; then
    local verb=$words[2]
    words=("mica $verb" "${(@)words[3,-1]}")
    (( CURRENT-- ))
    _mica_$verb
  else
    _mica_run
  fi
}

)" +
         join("# Short names of models.\n_mica_published() {\n  compadd -M 'm:{a-zA-Z}={A-Za-z}' -- ",
              words_joined(published_names()), "\n}\n\n", zsh_behaviour);
}

}  // namespace mica::program
