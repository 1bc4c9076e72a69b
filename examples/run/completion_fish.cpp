// SPDX-License-Identifier: Apache-2.0
//
// Completion for fish 3.
#include "completion_script.hpp"
#include "mica/base/error.hpp"

namespace mica::program {
namespace {

std::string fish_quoted(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return single_quoted(doubled, "\\'");
}

std::string arguments_of(const ShellValue& value) {
  switch (value.kind) {
    case Expected::nothing:
      return {};
    case Expected::text:
      return " -x";
    case Expected::names:
      return join(" -x -a ", fish_quoted(words_joined(value.names)));
    case Expected::file:
      return " -r -F";
    case Expected::folder:
      return " -x -a '(__fish_complete_directories)'";
    case Expected::published:
      return " -x -a '(__mica_published)'";
    case Expected::named:
      return " -x -a '(__mica_published) (__mica_models)'";
    case Expected::here:
      return " -x -a '(__mica_here)'";
    case Expected::present:
      return " -x -a '(__mica_here) (__mica_models)'";
    case Expected::model:
      break;
  }
  const std::string names = value.names.empty() ? std::string() : words_joined(value.names) + " ";
  return join(" -x -a ", fish_quoted(names + "(__mica_models)"));
}

/// "-m,--model" as fish has it: -s of a letter, -o of a word behind one dash, -l behind two.
std::string option_of(const std::string& name) {
  if (name.starts_with("--")) return " -l " + name.substr(2);
  return (name.size() == 2 ? " -s " : " -o ") + name.substr(1);
}

std::string flag_lines(const ShellVerb& verb) {
  std::string out;
  for (const ShellFlag& flag : verb.flags) {
    std::string options;
    for (const std::string& name : flag.names) options += option_of(name);
    out += join("complete -c mica -n '__mica_verb_is ", verb.name, "'", options, arguments_of(flag.value),
                " -d ", fish_quoted(flag.about), "\n");
  }
  return out;
}

std::string word_lines(const ShellVerb& verb) {
  std::string out;
  for (std::size_t i = 0; i < verb.words.size(); ++i) {
    const ShellValue& word = verb.words[i];
    if (word.kind == Expected::text || word.kind == Expected::nothing) continue;
    const bool last = i + 1 == verb.words.size() && verb.repeats;
    std::string options = arguments_of(word);
    if (options.starts_with(" -x") || options.starts_with(" -r")) options = options.substr(3);  // of flags
    out += join("complete -c mica -n '__mica_word_is ", verb.name, " ", i + 1, last ? " or_later" : "", "'",
                options, word.kind == Expected::file ? "" : " -f", " -d ", fish_quoted(word.type), "\n");
  }
  return out;
}

std::string valued_flags(const std::vector<ShellVerb>& verbs) {
  std::string out;
  for (const ShellVerb& verb : verbs) {
    std::string names;
    for (const ShellFlag& flag : verb.flags) {
      if (flag.value.kind != Expected::nothing)
        names += join(names.empty() ? "" : " ", words_joined(flag.names));
    }
    if (!names.empty())
      out += join("        case ", verb.name, "\n            string split ' ' -- '", names, "'\n");
  }
  return out;
}

constexpr std::string_view fish_behaviour = R"sh(
# The words behind mica, before the one that is completed.
function __mica_words
    set -l words (commandline -opc)
    set -e words[1]
    string join \n -- $words
end

function __mica_verb
    set -l words (__mica_words)
    if set -q words[1]; and contains -- $words[1] $__mica_verbs
        echo $words[1]
    else
        echo run
    end
end

function __mica_verb_is
    test (__mica_verb) = $argv[1]
end

# Whether the word is the Nth of a verb that is no flag and no value: VERB N [or_later]
function __mica_word_is
    set -l words (__mica_words)
    set -q words[1]; or return 1
    set -l verb (__mica_verb)
    test $verb = $argv[1]; or return 1
    test $words[1] = $verb; and set -e words[1]
    set -l valued (__mica_valued $verb)
    set -l n 1
    set -l skip 0
    set -l only 0
    for word in $words
        if test $skip = 1
            set skip 0
        else if test $only = 1
            set n (math $n + 1)
        else if test "$word" = --
            set only 1
        else if string match -q -- '-?*' "$word"
            contains -- $word $valued; and set skip 1
        else
            set n (math $n + 1)
        end
    end
    test $skip = 0; or return 1
    test $n = $argv[2]; and return 0
    test (count $argv) -gt 2; and test $n -gt $argv[2]
end

# Folders and GGUF files.
function __mica_models
    set -l typed (commandline -ct | string replace -r '^--?[a-z-]+=' '')
    for line in (__fish_complete_path $typed)
        set -l path (string split -f1 \t -- $line)
        string match -qr '(/|\.gguf)$' -- $path; and echo $path
    end
end

# Models that are here.
function __mica_here
    command mica list --names 2>/dev/null
end

complete -c mica -f
complete -c mica -n 'test (count (__mica_words)) = 0' -a '(__mica_models)'
complete -c mica -n 'test (count (__mica_words)) = 0' -l version -d 'the version of the program'
)sh";

}  // namespace

std::string fish_completion(const std::vector<ShellVerb>& verbs) {
  std::string names, out;
  for (const ShellVerb& verb : verbs) {
    names += " " + verb.name;
    out += join("complete -c mica -n 'test (count (__mica_words)) = 0' -a ", verb.name, " -d ",
                fish_quoted(verb.summary), "\n");
  }
  for (const ShellVerb& verb : verbs) out += join("\n", flag_lines(verb), word_lines(verb));
  return join("# Completion of mica for fish; written by: mica completion fish\n\nset -g __mica_verbs", names,
              "\n\n# The flags of a verb that have a value.\nfunction __mica_valued\n    switch $argv[1]\n",
              valued_flags(verbs), "    end\nend\n\n# Short names of models.\nfunction __mica_published\n",
              "    string split ' ' -- '", words_joined(published_names()), "'\nend\n", fish_behaviour, out);
}

}  // namespace mica::program
