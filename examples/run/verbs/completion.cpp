// SPDX-License-Identifier: Apache-2.0
#include "completion_script.hpp"
#include "console.hpp"
#include "mica/base/assert.hpp"

#include <memory>
#include <string>
#include <vector>

namespace mica::program {
namespace {

class CompletionVerb : public Verb {
 public:
  CompletionVerb()
      : Verb({"completion", "a script with which a shell completes verbs, flags and values: SHELL",
              "source <(mica completion bash)"}) {}
  int run() override {
    MICA_CHECK(words.size() == 1, usage, "completion: needed: the name of a shell, one of ",
               words_joined(completion_shells()));
    print(completion_script(words.front()));
    return 0;
  }

 private:
  void declare(Flags& flags) override {
    flags.group("Completion");
    flags.words(words, "SHELL",
                "bash, zsh or fish. For good: a line with the example above in ~/.bashrc or ~/.zshrc; the "
                "output in ~/.config/fish/completions/mica.fish. A file _mica in a folder of $fpath does it "
                "for zsh too. Packages install these files");
    flags.word_likens("SHELL", completion_shells());
  }

  std::vector<std::string> words;
};

}  // namespace

AnyVerb make_completion() { return std::make_unique<CompletionVerb>(); }

}  // namespace mica::program
