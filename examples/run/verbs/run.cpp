// SPDX-License-Identifier: Apache-2.0
//
// run: answers, completes a text, chats or tells a story, depending on model, prompt and stdin.
#include "chat.hpp"
#include "console.hpp"
#include "conversation.hpp"
#include "load.hpp"
#include "saved_session.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <unistd.h>

namespace mica::program {
namespace {

constexpr std::string_view story_beginning = "Once upon a time";
constexpr std::int64_t story_tokens = 300;
constexpr std::int64_t story_prompt_tokens = 16;  // the maximum of tokens of the prompt

/// Its flags are those of an AnswerVerb (answer_options.cpp).
class Run final : public AnswerVerb {
 public:
  Run()
      : AnswerVerb({"run", "complete or answer once; chat when there is no prompt",
                    "mica run model.gguf \"Why is the sky blue?\""}) {}
  bool runs_on_ranks() const noexcept override { return true; }
  int run() override;

 private:
  int answer_to(const std::string& text);
  int resume();
  int tell_story();
};

/// Says which flags of a conversation have no effect on a text that is continued.
void note_unused_chat_flags(const AnswerVerb& verb, bool think_is_noted) {
  constexpr std::string_view why = "; --chat-template NAME chooses a format";
  if (!verb.system_prompt.empty() || !verb.system_prompt_file.empty())
    note(verb,
         join("mica: the text is continued without a chat template, so the system prompt is not used", why));
  if (!think_is_noted && (verb.think == Think::on || verb.think == Think::off))
    note(verb,
         join("mica: --think: the text is continued without a chat template, so there is no switch for it",
              why));
}

/// Without a usable template there is no chat; the model still completes texts.
int Run::answer_to(const std::string& text) {
  Model model = open_model(*this);
  const bool has_template = !chat_template.empty() || !chat_template_file.empty() ||
                            model.document().metadata().contains("tokenizer.chat_template");
  const bool asks_template = conversation != false && has_template;
  if (asks_template) {
    ChatFormat format = format_of(*this, model);
    if (format.is_sure()) return answer_once(*this, model, std::move(format), text);
  }
  note_unused_chat_flags(*this, asks_template);
  return complete_text(*this, model, text);
}

/// Without a prompt on a terminal, and with a saved session: continues plain text, or the conversation.
int Run::resume() {
  Model model = open_model(*this);
  if (holds_plain_text(*this, model)) return complete_text(*this, model, {});
  return chat(*this, model, std::nullopt);
}

int Run::tell_story() {
  Model model = open_model(*this);
  note_unused_chat_flags(*this, false);
  const bool can_continue = session_waits(*this);
  const auto max = static_cast<std::int64_t>(model.transformer().n_ctx()) - story_prompt_tokens;
  if (!n_predict) n_predict = std::clamp<std::int64_t>(max, 1, story_tokens);
  const bool begins = !json && !jsonl && !can_continue;
  if (begins) print(story_beginning);
  return complete_text(*this, model, can_continue ? std::string() : std::string(story_beginning), begins);
}

int Run::run() {
  constraint.prepare();
  if (conversation == true) return chat(*this);
  check_session_file(*this);
  if (const auto text = prompt_with_stdin(*this)) return answer_to(*text);
  if (model_path.empty()) return tell_story();
  if (::isatty(STDIN_FILENO) == 0) return answer_to(read_text("-"));
  return session_waits(*this) && !single_turn ? resume() : chat(*this);
}

}  // namespace

AnyVerb make_run() { return std::make_unique<Run>(); }

}  // namespace mica::program
