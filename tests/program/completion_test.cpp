// SPDX-License-Identifier: Apache-2.0
//
// The completions of three shells, asked as Tab asks: bash by the variables of a completion, fish by
// `complete -C`, zsh in a terminal of its own (zpty), where compadd prints in place of completing.

#include "program/help_page.hpp"

#include <fstream>
#include <set>

#ifdef MICA_PROGRAM

namespace mica::test::completion_test {
namespace {

using Candidates = std::set<std::string>;

/// A shell for which `mica` is this program, with two models in the cache.
Ran shell(Words words, const std::string& input = {}) {
  ProgramRun run("/usr/bin/env", std::move(words));
  run.set("HOME", run.folder().path("")).set("TERM", "xterm");
  const std::string hub = run.folder().path("hub"), repo = hub + "/models--org--small-GGUF";
  const std::string snapshot = repo + "/snapshots/0123456789abcdef0123456789abcdef01234567/";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_directories(repo + "/refs");
  std::ofstream(repo + "/refs/main") << "0123456789abcdef0123456789abcdef01234567";
  for (const char* const quant : {"Q4_K_M", "Q8_0"})
    std::ofstream(snapshot + "small-" + quant + ".gguf") << "x";
  std::filesystem::create_directories(run.folder().path("bin"));
  std::filesystem::create_symlink(MICA_PROGRAM, run.folder().path("bin/mica"));
  run.set("HF_HUB_CACHE", hub).set("PATH", run.folder().path("bin:") + std::getenv("PATH"));
  return run.input(input).run();
}

bool has_shell(const std::string& name) {
  if (shell({name, "-c", "exit 0"}).code == 0) return true;
  skipped("completion of " + name, "there is no " + name);
  return false;
}

constexpr const char* in_bash = R"(
source "$1"; cd "$2"; shift 2
COMP_WORDS=(mica "$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_mica
printf '%s\n' "${COMPREPLY[@]}"
)";

constexpr const char* in_fish = R"(
source $argv[1]; cd $argv[2]
complete -C $argv[3]
)";

constexpr const char* in_zsh = R"(
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $1; cd $2; print READY"
while zpty -r shell line; do [[ $line == *READY[^\;]* && $line != *print* ]] && break; done
zpty -w -n shell "$3"$'\t'
while zpty -r shell line; do print -r -- "$line"; [[ $line == *END* ]] && break; done
zpty -d shell
)";

/// What the shell in the terminal reads first: Tab prints the candidates and ends the shell.
constexpr const char* zsh_terminal = R"(
PROMPT= RPROMPT=
unsetopt zle_bracketed_paste 2> /dev/null
autoload -U compinit; compinit -u -D
bindkey '^I' complete-word
compadd() {
  local -a found words=("$@")
  if [[ ${(j: :)words[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  builtin compadd -O found "$@"
  local each
  for each in $found; do print -r -- "=$each"; done
  (( $#found ))
}
begins() { print }
ends() { print END; exit }
compprefuncs=(begins) comppostfuncs=(ends)
)";

/// Tab behind words in a folder with models, files and a folder.
class Asked {
 public:
  Asked() {
    for (const char* const name : {"first.gguf", "second.gguf", "notes.txt"}) folder_.file(name, "");
    std::filesystem::create_directory(folder_.path("models"));
    for (const char* const each : {"bash", "zsh", "fish"}) {
      const Ran ran = mica({"completion", each});
      REQUIRE_MESSAGE(ran.code == 0, ran.err);
      scripts_.file(each, ran.out);
    }
    scripts_.file("in-zsh", in_zsh);
    scripts_.file("terminal", std::string(zsh_terminal) + "source " + scripts_.path("zsh") + "\n");
  }

  [[nodiscard]] Candidates in(const std::string& name, const Words& words) const {
    return name == "bash" ? bash(words) : name == "zsh" ? zsh(words) : fish(words);
  }
  [[nodiscard]] Candidates bash(const Words& words) const {
    return lines(
        shell(Words{"bash", "--norc", "-c", in_bash, "bash", scripts_.path("bash"), folder_.path("")} + words)
            .out);
  }
  [[nodiscard]] Candidates fish(const Words& words) const {
    return lines(shell({"fish", "-c", in_fish, scripts_.path("fish"), folder_.path(""), line(words)}).out);
  }
  [[nodiscard]] Candidates zsh(const Words& words) const {
    const Ran ran = shell(
        {"zsh", "-f", scripts_.path("in-zsh"), scripts_.path("terminal"), folder_.path(""), line(words)});
    Candidates out;
    for (const std::string& each : lines(ran.out)) {
      if (each.starts_with('=')) out.insert(each.substr(1));
    }
    return out;
  }

 private:
  static std::string line(const Words& words) {
    std::string out = "mica";
    for (const std::string& word : words) out += " " + word;
    return out;
  }
  /// Without descriptions, the ends of a terminal's lines, and slashes of folders.
  static Candidates lines(const std::string& text) {
    Candidates out;
    std::istringstream in(text);
    for (std::string each; std::getline(in, each);) {
      each = each.substr(0, each.find_first_of("\t\r"));
      if (each.ends_with('/')) each.pop_back();
      if (!each.empty()) out.insert(each);
    }
    return out;
  }

  TemporaryFolder folder_, scripts_;
};

std::string text(const Candidates& candidates) {
  std::string out;
  for (const std::string& each : candidates) out += each + " ";
  return out;
}

struct Case {
  Words words;           // the last one is completed
  Words some;            // are among the candidates
  Words none;            // are not
  bool exactly = false;  // `some` are all
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{"inspe"}, {"inspect"}, {"run"}, true},
      {{"fi"}, {"fit", "first.gguf"}, {"plan", "notes.txt"}, true},
      {{"hel"}, {"help"}, {}, true},
      {{"help", "mem"}, {"memory"}, {}, true},
      {{"help", "qu"}, {"quantize"}, {}, true},
      {{"run", "--no-h"}, {"--no-history"}, {}, true},
      {{"run", "--kv", "spilled-"}, {"spilled-paged"}, {}, true},
      {{"run", "--kv", ""}, {"segmented", "paged", "reserved"}, {"first.gguf", "exact"}},
      {{"plan", "-ctk", "q5"}, {"q5_0", "q5_1"}, {}, true},
      {{"bench", "--kernels", "f"}, {"fast8"}, {}, true},
      {{"run", "--evict", "s"}, {"sinks:"}, {}, true},
      {{"run", "--evict", ""}, {"none", "sinks:", "heavy:"}, {}, true},
      {{"run", "-m", ""}, {"first.gguf", "second.gguf", "models"}, {"notes.txt", "segmented"}},
      {{"run", "-m", "se"}, {"second.gguf"}, {}, true},
      {{"run", "fi"}, {"first.gguf"}, {}, true},
      {{"run", "-f", ""}, {"notes.txt", "models"}, {}},
      {{"run", "--draft", ""}, {"first.gguf"}, {"notes.txt"}},
      {{"synth", "qwen3-0"}, {"qwen3-0.6b"}, {}, true},
      {{"synth", "llama-8b", "Q4_K"}, {"Q4_K_M", "Q4_K_S"}, {}, true},
      {{"synth", "-t", "2", "llama-8b", "Q4_K"}, {"Q4_K_M", "Q4_K_S"}, {}, true},
      {{"synth", "llama-8b", "Q4_K_M", "no"}, {"notes.txt"}, {}, true},
      {{"quantize", "first.gguf", "out.gguf", "IQ4"}, {"IQ4_NL", "IQ4_XS"}, {}, true},
      {{"quantize", "first.gguf", "out.gguf", "COP"}, {"COPY"}, {}, true},
      {{"fit", "llama-3.2-1"}, {"llama-3.2-1b"}, {}, true},
      {{"fit", "qwen2.5-coder-1"}, {"qwen2.5-coder-1.5b", "qwen2.5-coder-14b"}, {}, true},
      {{"fit", "--quant", "IQ4"}, {"IQ4_NL", "IQ4_XS"}, {}, true},
      {{"completion", "z"}, {"zsh"}, {}, true},
      {{"run", "qwen2.5-0"}, {"qwen2.5-0.5b"}, {}, true},
      {{"chat", "-m", "qwen2.5-0"}, {"qwen2.5-0.5b"}, {}, true},
      {{"plan", "smollm2-1.7"}, {"smollm2-1.7b"}, {}, true},
      {{"pull", "qwen2.5-0"}, {"qwen2.5-0.5b"}, {}, true},
      {{"pull", ""}, {"qwen2.5-0.5b"}, {"first.gguf", "models"}},
      {{"inspect", ""}, {"qwen2.5-0.5b", "first.gguf"}, {"hf.co/org/small-GGUF:Q8_0"}},
      {{"rm", ""}, {"hf.co/org/small-GGUF:Q4_K_M", "hf.co/org/small-GGUF:Q8_0"}, {"first.gguf"}, true},
      {{"rm", "hf.co/org/none", "hf"},
       {"hf.co/org/small-GGUF:Q4_K_M", "hf.co/org/small-GGUF:Q8_0"},
       {},
       true},
      {{"show", "hf"}, {"hf.co/org/small-GGUF:Q4_K_M", "hf.co/org/small-GGUF:Q8_0"}, {}, true},
      {{"show", "fi"}, {"first.gguf"}, {}, true},
  };
  return all;
}

TEST_CASE("Tab completes verbs, flags, values, models, shapes and topics in each shell") {
  const Asked asked;
  for (const std::string name : {"bash", "zsh", "fish"}) {
    if (!has_shell(name)) continue;
    for (const Case& each : cases()) {
      const Candidates found = asked.in(name, each.words);
      CAPTURE(name);
      CAPTURE(each.words.front() + " ... " + each.words.back());
      CAPTURE(text(found));
      for (const std::string& word : each.some) CHECK(found.contains(word));
      for (const std::string& word : each.none) CHECK_FALSE(found.contains(word));
      if (each.exactly) CHECK(found.size() == each.some.size());
    }
  }
}

TEST_CASE("bash completes behind an equals sign, divided by readline or not, and nothing behind --") {
  const Asked asked;
  CHECK(asked.bash({"run", "--kv", "=", "spilled-"}) == Candidates{"spilled-paged"});
  CHECK(asked.bash({"run", "--kv", "="}).contains("segmented"));
  CHECK(asked.bash({"run", "--kv=spilled-"}) == Candidates{"--kv=spilled-paged"});
  CHECK(asked.bash({"run", "--json", "=", "false", "fi"}) == Candidates{"first.gguf"});
  CHECK(asked.bash({"run", "first.gguf", "--", "--k"}).empty());
  CHECK(asked.bash({"run", "first.gguf", "fi"}).empty());  // a prompt is no file
  CHECK(asked.bash({"run", "--evict", "sinks", ":", "64", "fi"}) == Candidates{"first.gguf"});
  CHECK(asked.bash({"run", "--evict", "sinks", ":", "6"}).empty());  // readline divides at colons
  CHECK(asked.bash({"-m", "fi"}) == Candidates{"first.gguf"});       // run, without its name
  CHECK(asked.bash({"rm", "hf.co/org/small-GGUF", ":"}) == Candidates{"Q4_K_M", "Q8_0"});
  CHECK(asked.bash({"rm", "x", "hf.co/org/small-GGUF", ":", "Q4"}) == Candidates{"Q4_K_M"});
  CHECK(asked.bash({"show", "hf.co/org/small-GGUF", ":", "Q8"}) == Candidates{"Q8_0"});
  CHECK(asked.bash({"run", "hf.co/org/small-GGUF", ":", "fi"}).empty());       // no file
  CHECK(asked.bash({"synth", "llama-8b", "q4_k_m"}) == Candidates{"Q4_K_M"});  // in any case
}

TEST_CASE("bash completes every flag of every verb") {
  const Asked asked;
  for (const std::string& verb : verbs_of_help()) {
    CAPTURE(verb);
    Candidates known;
    for (const HelpFlag& flag : flags_of_help(verb)) known.insert(flag.names.begin(), flag.names.end());
    CHECK(text(asked.bash({verb, "-"})) == text(known));
  }
}

TEST_CASE("bash completes every name that the parser of a flag knows") {
  const Asked asked;
  std::size_t flags = 0;
  for (const HelpFlag& flag : flags_of_help("bench")) {
    if (flag.type.empty() || flag.is_parsers()) continue;
    CAPTURE(flag.key());
    const Ran wrong = mica({"bench", "--" + flag.key(), "wrong"});
    const std::string before = "mica bench: --" + flag.key() + " needs one of ";
    if (!wrong.err.starts_with(before)) continue;
    ++flags;
    std::istringstream names(wrong.err.substr(before.size(), wrong.err.find(',') - before.size()));
    Candidates expected;
    for (std::string each; names >> each;) expected.insert(each);
    CHECK(text(asked.bash({"bench", "--" + flag.key(), ""})) == text(expected));
  }
  CHECK(flags >= 5);
}

TEST_CASE("a script of an unknown shell is refused with the known ones") {
  const Ran ran = mica({"completion", "zhs"});
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "unknown shell 'zhs'. Did you mean zsh? Known: bash zsh fish"));
  CHECK(mica({"completion"}).code == 2);
}

}  // namespace
}  // namespace mica::test::completion_test

#endif
