// SPDX-License-Identifier: Apache-2.0
//
// Completion for bash 3.2 or newer, with or without the package bash-completion.
#include "completion_script.hpp"
#include "mica/base/error.hpp"

namespace mica::program {
namespace {

std::string_view kind_of(Expected kind) {
  constexpr std::string_view names[] = {"",      "text",      "names", "file", "folder",
                                        "model", "published", "named", "here", "present"};
  return names[static_cast<std::size_t>(kind)];
}

/// "kind=names values='a b'"
std::string assigned(const ShellValue& value) {
  return join(
      "kind=", kind_of(value.kind),
      value.names.empty() ? std::string() : join(" values=", single_quoted(words_joined(value.names))));
}

std::string flag_cases(const ShellVerb& verb) {
  std::string out;
  for (const ShellFlag& flag : verb.flags) {
    if (flag.value.kind != Expected::nothing)
      out += join("        ", words_joined(flag.names, "|"), ") ", assigned(flag.value), " ;;\n");
  }
  return out;
}

std::string word_cases(const ShellVerb& verb) {
  std::string out;
  for (std::size_t i = 0; i < verb.words.size(); ++i) {
    const bool last = i + 1 == verb.words.size() && verb.repeats;
    out += join("        ", last ? std::string("*") : join(i + 1), ") ", assigned(verb.words[i]), " ;;\n");
  }
  return out;
}

/// A case of the verb with the cases of each inside it.
template <class Cases>
std::string by_verb(const std::vector<ShellVerb>& verbs, const Cases& cases) {
  std::string out = "  case $1 in\n";
  for (const ShellVerb& verb : verbs) {
    const std::string inner = cases(verb);
    if (!inner.empty()) out += join("    ", verb.name, ")\n      case $2 in\n", inner, "      esac ;;\n");
  }
  return out + "  esac\n";
}

std::string flag_names(const std::vector<ShellVerb>& verbs) {
  std::string out;
  for (const ShellVerb& verb : verbs) {
    std::string names;
    for (const ShellFlag& flag : verb.flags)
      names += join(names.empty() ? "" : " ", words_joined(flag.names));
    if (!names.empty()) out += join("    ", verb.name, ") flags='", names, "' ;;\n");
  }
  return out;
}

constexpr std::string_view bash_behaviour = R"sh(
# Names that begin with the word, in any case where none has its case.
_mica_names() {
  local name found='' off=''
  for name in $1; do
    case $name in "$2"*) COMPREPLY+=("$3$name") found=1 ;; esac
  done
  case ${COMPREPLY[*]} in *:) compopt -o nospace 2> /dev/null ;; esac  # the value goes on
  [ -n "$found" ] && return
  shopt -q nocasematch || off=1
  shopt -s nocasematch
  for name in $1; do
    [[ $name == "$2"* ]] && COMPREPLY+=("$3$name")
  done
  [ -n "$off" ] && shopt -u nocasematch
}

# Files that begin with the word: all, folders, or folders and models.
_mica_files() {
  local path
  compopt -o filenames 2> /dev/null
  while IFS= read -r path; do
    [ -n "$path" ] && COMPREPLY+=("$3$path")
  done < <(
    case $1 in
      file) compgen -f -- "$2" ;;
      folder) compgen -d -- "$2" ;;
      model) compgen -d -- "$2"; compgen -f -X '!*.gguf' -- "$2" ;;
    esac)
}

# Models that are here and begin with the word, which $3 precedes: readline divides words at colons.
_mica_here() {
  local name
  while IFS= read -r name; do
    case $name in "$3$1"*) COMPREPLY+=("$2${name#"$3"}") ;; esac
  done < <(mica list --names 2> /dev/null)
}

_mica_value() {
  [ -n "$before" ] && [ "$kind" != here ] && [ "$kind" != present ] && return
  case $kind in
    published) _mica_names "$models_of_mica" "$1" "$2" ;;
    named)
      _mica_names "$models_of_mica" "$1" "$2"
      _mica_files model "$1" "$2" ;;
    here) _mica_here "$1" "$2" "$before" ;;
    present)
      _mica_here "$1" "$2" "$before"
      [ -z "$before" ] && _mica_files model "$1" "$2" ;;
    names) _mica_names "$values" "$1" "$2" ;;
    file | folder) _mica_files "$kind" "$1" "$2" ;;
    model)
      [ -n "$values" ] && _mica_names "$values" "$1" "$2"
      _mica_files model "$1" "$2" ;;
  esac
}

_mica() {
  local cur=${COMP_WORDS[COMP_CWORD]} verb=run at=1 n=0 words_only='' pending=''
  local kind='' values='' flags='' word before='' counted=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -gt 1 ]; then
    case " $verbs_of_mica " in *" ${COMP_WORDS[1]} "*) verb=${COMP_WORDS[1]} at=2 ;; esac
  fi
  while [ "$at" -lt "$COMP_CWORD" ]; do
    word=${COMP_WORDS[at]}
    if [ -n "$words_only" ]; then
      n=$((n + 1))
    elif [ "$word" = -- ]; then
      words_only=1
    elif [ "$word" = = ]; then  # a value of a switch follows
      at=$((at + 1))
    elif [ "$word" = : ]; then  # the word before it goes on
      at=$((at + 1))
      if [ "$at" -ge "$COMP_CWORD" ]; then  # a quantisation of the name before it
        [ -n "$counted" ] || return
        before=${COMP_WORDS[at - 2]}: n=$((n - 1))
        break
      fi
    elif [ "${word#-}" != "$word" ] && [ "$word" != - ]; then
      kind='' values='' counted=''
      _mica_flag "$verb" "$word"
      if [ -n "$kind" ]; then  # its value is the next word, or behind an equals sign
        at=$((at + 1))
        [ "${COMP_WORDS[at]}" = = ] && [ "$at" -lt "$COMP_CWORD" ] && at=$((at + 1))
        [ "$at" -ge "$COMP_CWORD" ] && pending=1
      fi
    else
      n=$((n + 1)) counted=1
    fi
    at=$((at + 1))
  done
  if [ -n "$pending" ]; then
    [ "$cur" = = ] && cur=''
    _mica_value "$cur" ''
    return
  fi
  kind='' values=''
  if [ "$cur" = : ] && [ -n "$counted" ]; then
    before=${COMP_WORDS[COMP_CWORD - 1]}: n=$((n - 1)) cur=''
  fi
  if [ -z "$words_only" ]; then
    case $cur in
      -*=*)
        _mica_flag "$verb" "${cur%%=*}"
        _mica_value "${cur#*=}" "${cur%%=*}="
        return ;;
      -*)
        _mica_flags "$verb"
        [ "$COMP_CWORD" -eq 1 ] && flags="$flags --version"
        _mica_names "$flags" "$cur" ''
        return ;;
    esac
  fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    kind=model values=$verbs_of_mica
  else
    _mica_word "$verb" "$((n + 1))"
  fi
  _mica_value "$cur" ''
}

complete -F _mica mica
)sh";

}  // namespace

std::string bash_completion(const std::vector<ShellVerb>& verbs) {
  std::string names;
  for (const ShellVerb& verb : verbs) names += join(names.empty() ? "" : " ", verb.name);
  return join("# Completion of mica for bash; written by: mica completion bash\n# shellcheck shell=bash\n\n",
              "verbs_of_mica='", names, "'\nmodels_of_mica='", words_joined(published_names()), "'\n\n",
              "# Sets kind and values to those of a flag of a verb; a switch has no kind.\n_mica_flag() {\n",
              by_verb(verbs, flag_cases), "}\n\n",
              "# Sets kind and values to those of a word of a verb, by its place.\n_mica_word() {\n",
              by_verb(verbs, word_cases), "}\n\n_mica_flags() {\n  case $1 in\n", flag_names(verbs),
              "  esac\n}\n", bash_behaviour);
}

}  // namespace mica::program
