// SPDX-License-Identifier: Apache-2.0
//
// run and chat: which of the things that people mean by "run" is meant here.
#include "chat.hpp"
#include "chat_format.hpp"
#include "console.hpp"
#include "conversation.hpp"
#include "input.hpp"
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
constexpr std::int64_t story_room = 16;  // tokens of the context that the beginning may take

ChatFormat format_of(const Options& options, const Model& model) {
  ChatFormat format(options, model.document().metadata(), model.tokenizer().vocabulary());
  if (!format.note().empty()) note(options, join("mica: ", format.note()));
  return format;
}

bool mentions_a_template(const Options& options, const Model& model) {
  return !options.chat_template.empty() || !options.chat_template_file.empty() ||
         model.document().metadata().contains("tokenizer.chat_template");
}

int answer_once(const Options& options, Model& model, ChatFormat format, const std::string& prompt) {
  Conversation conversation(options, model, std::move(format));
  Answerer answerer(options, model, conversation.format().stop());
  conversation.messages().push_back({"user", prompt});
  const int code = conversation.answer(answerer);
  conversation.save(answerer);
  answerer.raise_undelivered();
  return code;
}

/// A template that cannot be used costs the chat, not the model.
int run_prompt(const Options& options, const std::string& prompt) {
  Model model = open_model(options);
  if (options.conversation != false && mentions_a_template(options, model)) {
    ChatFormat format = format_of(options, model);
    if (format.is_sure()) return answer_once(options, model, std::move(format), prompt);
  }
  if (!options.system_prompt.empty() || !options.system_prompt_file.empty())
    note(options,
         "mica: the model has no usable template, so the system prompt is not used; --chat-template NAME "
         "chooses one");
  return complete_text(options, model, prompt);
}

int run_chat(const Options& options, const std::optional<std::string>& prompt) {
  Model model = open_model(options);
  ChatFormat format = format_of(options, model);
  if (options.single_turn && prompt) return answer_once(options, model, std::move(format), *prompt);
  return chat(options, model, std::move(format), prompt);
}

int tell_story(const Options& options) {
  Model model = open_model(options);
  Options told = options;
  const bool goes_on = session_waits(options);
  const auto most = static_cast<std::int64_t>(model.transformer().n_ctx()) - story_room;
  if (!told.n_predict) told.n_predict = std::clamp<std::int64_t>(most, 1, story_tokens);
  const bool begins = !told.json && !told.jsonl && !goes_on;
  if (begins) print(story_beginning);
  return complete_text(told, model, goes_on ? std::string() : std::string(story_beginning), begins);
}

}  // namespace

int run(const Options& options) {
  check_session_file(options);
  const bool chats = options.verb == "chat" || options.conversation == true;
  const bool reads_lines = chats && !options.single_turn;  // of stdin, as messages
  const auto prompt = reads_lines ? prompt_of(options) : prompt_with_stdin(options);
  if (chats) return run_chat(options, prompt);
  if (prompt) return run_prompt(options, *prompt);
  if (options.model.empty()) return tell_story(options);
  if (::isatty(STDIN_FILENO) == 1) return run_chat(options, prompt);
  return run_prompt(options, read_text("-"));
}

}  // namespace mica::program
