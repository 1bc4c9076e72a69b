// SPDX-License-Identifier: Apache-2.0
#include "answer.hpp"
#include "console.hpp"
#include "load.hpp"
#include "saved_session.hpp"
#include "verbs.hpp"

#include <optional>
#include <string>
#include <unistd.h>

namespace mica::program {
namespace {

class Complete final : public AnswerVerb {
 public:
  Complete()
      : AnswerVerb({"complete", "continue a text, without a template",
                    "mica complete model.gguf \"Once upon a time\" -n 100"}) {}
  bool runs_on_ranks() const noexcept override { return true; }
  int run() override {
    constraint.prepare();
    check_session_file(*this);
    std::optional<std::string> text = prompt_with_stdin(*this);
    if (!text && ::isatty(STDIN_FILENO) == 0) text = read_text("-");
    Model model = open_model(*this);
    return complete_text(*this, model, text.value_or(""));
  }

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    PromptOptions::add_to(flags);
    add_session(flags);
    RunningOptions::add_to(flags);
    add_ranks(flags);
    add_degrade(flags);
    AnswerOptions::add_to(flags);
  }
};

}  // namespace

AnyVerb make_complete() { return std::make_unique<Complete>(); }

}  // namespace mica::program
