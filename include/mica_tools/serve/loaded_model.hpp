// SPDX-License-Identifier: Apache-2.0
//
// An open model with its chat format, as a server has it. Its texts are for any thread, the model itself is
// for the thread of the scheduler.
#pragma once

#include "mica/constraint/token_trie.hpp"
#include "mica/runtime/open.hpp"
#include "mica_tools/chat/chat_tokens.hpp"
#include "mica_tools/chat/marked_messages.hpp"
#include "mica_tools/serve/chat_functions.hpp"
#include "mica_tools/serve/refusal.hpp"
#include "mica_tools/serve/sequence_bytes.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

/// Members of ServedModel: any thread; model(): one thread.
class LoadedModel final : public ServedModel {
 public:
  /// card: its numbers of the loaded model are filled in. bytes: from Plan::sequence_bytes of the same
  /// choices.
  LoadedModel(Model model, ModelCard card, ChatFunctions chat, SequenceBytes bytes)
      : model_(std::move(model)), card_(std::move(card)), chat_(std::move(chat)), bytes_(std::move(bytes)) {
    const arch::Config& config = model_.config();
    card_.n_ctx = model_.transformer().n_ctx();
    card_.n_vocab = config.n_vocab;
    card_.n_embd = config.width;
    card_.trained_ctx = config.n_ctx_train;
    card_.loaded = true;
    const auto& vocabulary = model_.tokenizer().vocabulary();
    if (const auto id = vocabulary.special().bos; id && card_.bos.empty()) card_.bos = vocabulary.text(*id);
    if (const auto id = vocabulary.special().eos; id && card_.eos.empty()) card_.eos = vocabulary.text(*id);
    const block::StatePlan state = config.state();
    wants_marks_ = state.floats() != 0 || std::any_of(state.kv().begin(), state.kv().end(),
                                                      [](const auto& kv) { return kv.window() != 0; });
  }

  // Required by ServedModel
  const ModelCard& card() const noexcept override { return card_; }
  Prompt prompt(const Conversation& conversation) const override {
    const text::ChatText chat = rendered_chat(conversation, true);
    Prompt prompt{text::chat_tokens(model_.tokenizer(), chat), {}, chat_.stop, {}};
    prompt.end = chat.text.substr(chat.text.size() - std::min(chat.text.size(), end_bytes));
    if (wants_marks_) prompt.marks = marks_of(conversation, prompt.tokens);
    return prompt;
  }
  std::string rendered(const Conversation& conversation) const override {
    return rendered_chat(conversation, true).text;
  }
  std::vector<TokenId> encode(std::string_view text, bool begin, bool special) const override {
    return model_.tokenizer().encode(text, {.add_special = begin, .parse_special = special});
  }
  std::string decode(std::span<const TokenId> tokens) const override {
    for (const TokenId id : tokens) check(id);
    return model_.tokenizer().decode(tokens, {.show_special = true});
  }
  std::string piece(TokenId token) const override {
    check(token);
    return model_.tokenizer().piece(token, true);
  }
  std::shared_ptr<const constraint::TokenTrie> tokens() const override {
    const std::lock_guard lock(mutex_);
    if (!tokens_) tokens_ = std::make_shared<constraint::TokenTrie>(model_.tokenizer());
    return tokens_;
  }

  const ServedCalls& calls() const override {
    const std::lock_guard lock(mutex_);
    if (!calls_) calls_ = find_calls();
    return *calls_;
  }

  // Specific to LoadedModel
  /// The model, and the bytes of a sequence by its tokens.
  [[nodiscard]] Model& model() noexcept { return model_; }
  [[nodiscard]] const SequenceBytes& bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t end_bytes = 64;  // the longest mark of thoughts has fewer

  void check(TokenId id) const {
    if (id >= model_.tokenizer().vocabulary().size())
      throw Refusal(Cause::invalid, join("token ", id, " is outside the vocabulary of ",
                                         model_.tokenizer().vocabulary().size(), " tokens"));
  }
  [[nodiscard]] text::ChatText rendered_chat(const Conversation& conversation, bool with_answer) const {
    if (conversation.messages.empty()) throw Refusal(Cause::invalid, "messages: there is none to answer");
    if (!chat_.render)
      throw Refusal(Cause::option, "messages: this server has no chat format for the model; use completions");
    const text::MarkedMessages marked(conversation.messages, model_.tokenizer().vocabulary());
    auto messages = marked.messages();
    const text::Message& last = messages.back();
    const bool continues = conversation.continues && last.role == "assistant" && last.calls.empty();
    if (continues) messages = messages.first(messages.size() - 1);
    try {
      std::string text = chat_.render(messages, conversation, with_answer, marked);
      if (continues && with_answer) text += marked.messages().back().content;
      return marked.unmarked(text);
    } catch (const Error& error) {  // of the template, about these messages or variables
      throw Refusal(Cause::invalid, join("messages: ", error.message()));
    }
  }
  [[nodiscard]] ServedCalls find_calls() const {
    ServedCalls out;
    if (chat_.calls) out.its = chat_.calls();
    const calls::CallFormat& format = out.its.format;
    const auto& vocabulary = model_.tokenizer().vocabulary();
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const text::TokenType type = vocabulary.type(id);
      if (type != text::TokenType::control && type != text::TokenType::user_defined) continue;
      const std::string_view text = vocabulary.text(id);
      if (calls::is_mark(format, text)) out.marks.push_back({std::string(text), id, vocabulary.is_end(id)});
    }
    return out;
  }
  /// The ends of the system prompt and of the last message, in tokens.
  [[nodiscard]] std::vector<std::size_t> marks_of(const Conversation& conversation,
                                                  std::span<const TokenId> tokens) const {
    std::vector<std::size_t> marks;
    const auto add = [&](Conversation part) {
      try {
        const auto ids = text::chat_tokens(model_.tokenizer(), rendered_chat(part, false));
        const auto differs = std::mismatch(ids.begin(), ids.end(), tokens.begin(), tokens.end()).first;
        const auto common = static_cast<std::size_t>(differs - ids.begin());
        if (common > (marks.empty() ? 0 : marks.back()) && common < tokens.size()) marks.push_back(common);
      } catch (const Error&) {  // a template that wants a question
      }
    };
    Conversation part = conversation;
    const std::string_view first = conversation.messages.front().role;
    if (conversation.messages.size() > 1 && (first == "system" || first == "developer")) {
      part.messages.resize(1);
      add(part);
      part = conversation;
    }
    if (part.messages.back().role == "assistant") part.messages.pop_back();
    if (!part.messages.empty()) add(part);
    return marks;
  }

  Model model_;
  ModelCard card_;
  ChatFunctions chat_;
  SequenceBytes bytes_;
  bool wants_marks_ = false;  // whether sequences begin only where one was stored
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const constraint::TokenTrie> tokens_;  // under the mutex; empty: not needed yet
  mutable std::optional<ServedCalls> calls_;                     // the same
};

}  // namespace mica::serve
