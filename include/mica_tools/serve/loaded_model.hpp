// SPDX-License-Identifier: Apache-2.0
//
// An open model with its chat format, as a server has it. Its texts are for any thread, the model itself is
// for the thread of the scheduler.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/constraint/token_trie.hpp"
#include "mica/format/concept.hpp"
#include "mica/runtime/embedder.hpp"
#include "mica/runtime/open.hpp"
#include "mica_tools/chat/chat_tokens.hpp"
#include "mica_tools/chat/marked_messages.hpp"
#include "mica_tools/embed/text_tokens.hpp"
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
#include <type_traits>
#include <utility>
#include <vector>

namespace mica::serve {

/// Texts that are to share steps, of one job or several.
struct TextLoad {
  std::size_t texts = 0, longest = 0, tokens = 0;  // longest: tokens of one text; tokens: of all

  void add(const EmbedTexts& embed) noexcept {
    texts += embed.texts.size();
    tokens += embed.tokens();
    for (const std::vector<TokenId>& text : embed.texts) longest = std::max(longest, text.size());
  }
};

/// Members of ServedModel: any thread; model(): one thread.
class LoadedModel final : public ServedModel {
 public:
  /// card: its numbers of the loaded model are filled in. bytes: from Plan::sequence_bytes of the same
  /// choices.
  LoadedModel(Model model, ModelCard card, ChatFunctions chat, SequenceBytes bytes)
      : model_(std::move(model)),
        transformer_(model_.transformer()),
        chunk_(transformer_.chunk()),
        text_tokens_(model_.tokenizer(), model_.document().metadata(),
                     EmbedBatch<AnyModel>::max_tokens(transformer_)),
        card_(std::move(card)),
        chat_(std::move(chat)),
        bytes_(std::move(bytes)) {
    const arch::Config& config = model_.config();
    card_.n_ctx = model_.transformer().n_ctx();
    card_.n_vocab = config.n_vocab;
    card_.n_embd = config.width;
    card_.trained_ctx = config.n_ctx_train;
    card_.loaded = true;
    card_.writes = !config.encodes;
    card_.embeds = config.pooling != arch::Pooling::none && !config.ranks;
    card_.ranks = config.ranks;
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

  std::size_t max_text_tokens() const noexcept override { return text_tokens_.max_tokens(); }
  std::vector<TokenId> text_tokens(std::string_view text, TextUse use, bool truncate,
                                   std::string_view name) const override {
    return refusing([&] { return text_tokens_.of_text(text, use, truncate, name); });
  }
  std::vector<TokenId> pair_tokens(std::string_view query, std::string_view document, bool truncate,
                                   std::string_view name) const override {
    return refusing([&] { return text_tokens_.of_pair(query, document, truncate, name); });
  }
  std::size_t row_width(const RowOptions& options) const override {
    return refusing([&] { return mica::row_width(transformer_, options); });
  }

  // Specific to LoadedModel
  static constexpr std::size_t texts_of_step = EmbedderOptions().texts;  // at most
  /// Bytes of the caches of all texts in a step. Each text has tiles of its own, and all together have no
  /// more than the tokens of a step fill; of decoders, which divide texts, and those of one longest text. Any
  /// thread.
  [[nodiscard]] std::uint64_t cache_bytes(const TextLoad& load) const noexcept {
    if (load.texts == 0) return 0;
    const auto tiles_of = [](std::size_t tokens) { return ceil_div(tokens, format::tile_tokens); };
    const std::size_t texts = std::min(load.texts, texts_of_step);
    const std::size_t tiles = std::min(load.tokens / format::tile_tokens + texts, tiles_of(chunk_)) +
                              (model_.config().encodes ? 0 : tiles_of(load.longest));
    const std::uint64_t empty = bytes_.at(0), tile = bytes_.at(1) - std::min(empty, bytes_.at(1));
    return texts * empty + tiles * tile;
  }
  /// Bytes of the rows of a job, and of the pooled rows of a step. Any thread.
  [[nodiscard]] std::uint64_t row_bytes(const EmbedTexts& embed) const {
    const std::size_t pooled = std::min(embed.texts.size(), texts_of_step) * model_.config().width;
    return (embed.row_count() * row_width(embed.rows) + pooled) * sizeof(float);
  }
  /// The model, and the bytes of a sequence by its tokens.
  [[nodiscard]] Model& model() noexcept { return model_; }
  [[nodiscard]] const SequenceBytes& bytes() const noexcept { return bytes_; }

 private:
  /// What an error says about the request is its refusal.
  template <class F>
  [[nodiscard]] static std::invoke_result_t<F&> refusing(F&& f) {
    try {
      return f();
    } catch (const Error& error) {
      throw Refusal(Cause::invalid, error.message());
    }
  }
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
  const AnyModel& transformer_;
  std::size_t chunk_;  // tokens of a step, as it was opened
  TextTokens text_tokens_;
  ModelCard card_;
  ChatFunctions chat_;
  SequenceBytes bytes_;
  bool wants_marks_ = false;  // whether sequences begin only where one was stored
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const constraint::TokenTrie> tokens_;  // under the mutex; empty: not needed yet
  mutable std::optional<ServedCalls> calls_;                     // the same
};

}  // namespace mica::serve
