// SPDX-License-Identifier: Apache-2.0
//
// A service with one model whose tokens are bytes, and whose answers are scripts; rows are numbers of their
// texts. It records jobs. Connections that record pieces, and can leave.
#pragma once

#include "mica_tools/http/fields.hpp"
#include "mica_tools/http/request_reply.hpp"
#include "mica_tools/serve/service.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test {

/// Tokens are bytes; 0 is <s>, 1 is </s>. A prompt is "role: content\n" for each message, with "assistant:",
/// and "<think>" at the end where thinking was asked for.
class FakeModel final : public serve::ServedModel {
 public:
  FakeModel() {
    card_.id = "tiny";
    card_.path = "/models/tiny.gguf";
    card_.architecture = "llama";
    card_.quantisation = "Q4_0";
    card_.file_bytes = 1000;
    card_.parameters = 2000;
    card_.trained_ctx = 4096;
    card_.n_ctx = 512;
    card_.n_vocab = 256;
    card_.n_embd = 64;
    card_.modified = 1'700'000'000;
    card_.chat_template = "chatml";
    card_.bos = "<s>";
    card_.eos = "</s>";
    card_.loaded = true;
  }

  [[nodiscard]] const serve::ModelCard& card() const noexcept override { return card_; }
  [[nodiscard]] serve::Prompt prompt(const serve::Conversation& conversation) const override {
    const std::string text = rendered(conversation);
    conversations.push_back(conversation);
    return {encode(text, true, true), text, {}};
  }
  [[nodiscard]] std::string rendered(const serve::Conversation& conversation) const override {
    if (conversation.messages.empty()) throw serve::Refusal(serve::Cause::invalid, "messages: none");
    std::string text;
    for (const text::Message& each : conversation.messages) {
      text += each.role + ": ";
      if (!each.thoughts.empty()) text += "(" + each.thoughts + ") ";
      text += each.content + "\n";
    }
    if (conversation.continues) {
      text.pop_back();
    } else {
      text += "assistant:";
    }
    return text + (conversation.thinking.value_or(false) ? "<think>" : "");
  }
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, bool begin, bool) const override {
    std::vector<TokenId> out;
    if (begin) out.push_back(0);
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
    return out;
  }
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens) const override {
    std::string out;
    for (const TokenId id : tokens) out += piece(id);
    return out;
  }
  [[nodiscard]] std::string piece(TokenId token) const override {
    if (token >= card_.n_vocab) throw serve::Refusal(serve::Cause::invalid, "token outside of 256");
    if (token == 0) return "<s>";
    return token == 1 ? "</s>" : std::string(1, static_cast<char>(static_cast<unsigned char>(token)));
  }

  [[nodiscard]] std::shared_ptr<const constraint::TokenTrie> tokens() const override {
    std::vector<constraint::TokenBytes> all;
    for (TokenId id = 2; id < card_.n_vocab; ++id) all.push_back({id, piece(id)});
    for (TokenId id = 0; id < 2; ++id) all.push_back({id, constraint::TokenTrie::special_text(id)});
    return std::make_shared<constraint::TokenTrie>(std::move(all), card_.n_vocab, std::vector<TokenId>{1}, 1);
  }

  [[nodiscard]] const serve::ServedCalls& calls() const override { return calls_; }

  /// Texts and pairs have at most 16 tokens: <s>, their bytes, </s>; a pair has </s> between its texts.
  [[nodiscard]] std::size_t max_text_tokens() const noexcept override { return 16; }
  [[nodiscard]] std::vector<TokenId> text_tokens(std::string_view text, TextUse use, bool truncate,
                                                 std::string_view name) const override {
    const char* const prefixes[] = {"", "q:", "d:"};
    auto out = encode(prefixes[static_cast<std::size_t>(use)] + std::string(text), true, false);
    out.push_back(1);
    if (out.size() > 16 && !truncate)
      throw serve::Refusal(serve::Cause::invalid, std::string(name) + " is too large");
    out.resize(std::min<std::size_t>(out.size(), 16));
    return out;
  }
  [[nodiscard]] std::vector<TokenId> pair_tokens(std::string_view query, std::string_view document,
                                                 bool truncate, std::string_view name) const override {
    return text_tokens(std::string(query) + '\1' + std::string(document), TextUse::any, truncate, name);
  }
  [[nodiscard]] std::size_t row_width(const RowOptions& options) const override {
    return card_.ranks ? 1 : options.dims == 0 ? 4 : options.dims;
  }
  /// A model that embeds, or ranks.
  void become(bool writes, bool embeds, bool ranks) {
    card_.writes = writes;
    card_.embeds = embeds;
    card_.ranks = ranks;
  }

  mutable std::vector<serve::Conversation> conversations;  // that were rendered

 private:
  serve::ModelCard card_;
  serve::ServedCalls calls_;  // of Hermes
};

/// Answers with `script`, or with that of the job's number. Loads and unloads the one model.
class FakeService final : public serve::Service {
 public:
  FakeService() {
    script = {serve::Begun{7, 3}, serve::Text{"Hello", {}}, serve::Text{" world", {}}, ended()};
    state.budget_bytes = 10'000;
    state.used_bytes = 6'000;
    state.peak_bytes = 7'000;
    state.accounts[budget::Account::weights] = 5'000;
    state.accounts[budget::Account::kv] = 1'000;
    state.reserved_bytes = 500;
  }
  [[nodiscard]] static serve::Ended ended(StopReason reason = StopReason::end_of_text) {
    return {reason, {}, 7, 3, 2, {{4, 0.5}, {2, 0.25}}, 0.125};
  }

  [[nodiscard]] std::vector<serve::ModelCard> models() const override {
    serve::ModelCard other = model_->card();
    other.id = "other";
    other.loaded = false;
    other.n_ctx = other.n_vocab = other.n_embd = 0;
    return {model_->card(), other};
  }
  [[nodiscard]] std::shared_ptr<const serve::ServedModel> model(std::string_view name,
                                                                const std::function<bool()>& = {}) override {
    asked.emplace_back(name);
    if (name.empty() || name == "tiny") return model_;
    throw serve::Refusal(serve::Cause::not_found,
                         "model '" + std::string(name) + "': there is no such model");
  }
  bool unload(std::string_view name) override {
    if (name != "tiny") throw serve::Refusal(serve::Cause::not_found, "there is no such model");
    return std::exchange(loaded, false);
  }
  void keep_alive(std::string_view name, std::optional<std::chrono::seconds> time) override {
    kept.emplace_back(name, time);
  }
  [[nodiscard]] std::shared_ptr<serve::Answer> submit(serve::Job job) override {
    const std::size_t number = jobs.size();
    if (refusal && number >= refuse_from) throw *refusal;
    if (job.embed && !scripts.contains(number)) scripts[number] = {rows_of(job), rows_ended(job)};
    jobs.push_back(std::move(job));
    auto answer = std::make_shared<serve::Answer>();
    const auto own = scripts.find(number);
    const std::vector<serve::Event>& events = own == scripts.end() ? script : own->second;
    pending_.emplace_back(events.begin(), events.end());
    answers.push_back(answer);
    step();
    while (!stepwise && !pending_.back().empty()) step();
    return answer;
  }
  serve::SlotResult slot(serve::SlotTask task) override {
    if (slot_refusal) throw *slot_refusal;
    slot_tasks.push_back(std::move(task));
    return {84, 1234, 0.5};
  }
  [[nodiscard]] serve::Snapshot snapshot() const override { return state; }
  /// The numbers of a row: its tokens, the last one before the end of the text, and -0.25, as many as it has.
  [[nodiscard]] static serve::Embedded rows_of(const serve::Job& job) {
    serve::Embedded out{{}, job.model->row_width(job.embed->rows)};
    for (const auto& text : job.embed->texts) {
      for (std::size_t row = 0; row < (job.embed->rows.each_token ? text.size() : 1); ++row) {
        for (std::size_t k = 0; k < out.width; ++k)
          out.numbers.push_back(
              k == 0   ? static_cast<float>(text.size())
              : k == 1 ? static_cast<float>(text[text.size() - std::min<std::size_t>(text.size(), 2)])
                       : -0.25f);
      }
    }
    return out;
  }
  [[nodiscard]] static serve::Ended rows_ended(const serve::Job& job) {
    serve::Ended out;
    out.reason = StopReason::end_of_text;
    out.prompt_tokens = job.embed->tokens();
    return out;
  }
  /// Puts the next event of each answer.
  void step() {
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (pending_[i].empty()) continue;
      answers[i]->put(std::move(pending_[i].front()));
      pending_[i].pop_front();
    }
  }

  std::vector<serve::Event> script;                          // of each answer without its own
  std::map<std::size_t, std::vector<serve::Event>> scripts;  // by the number of the job
  std::optional<serve::Refusal> refusal;                     // of submit()
  std::size_t refuse_from = 0;                               // the first job that is refused
  std::vector<serve::SlotTask> slot_tasks;                   // as they were given
  std::optional<serve::Refusal> slot_refusal;                // of slot()
  serve::Snapshot state;
  std::vector<serve::Job> jobs;  // as they were submitted
  std::vector<std::shared_ptr<serve::Answer>> answers;
  std::vector<std::string> asked;  // names of models
  std::vector<std::pair<std::string, std::optional<std::chrono::seconds>>> kept;
  bool loaded = true;
  bool stepwise = false;  // submit() puts the first event; texts that wait together are joined
  [[nodiscard]] const FakeModel& tiny() const noexcept { return *model_; }
  [[nodiscard]] FakeModel& tiny() noexcept { return *model_; }

 private:
  std::shared_ptr<FakeModel> model_ = std::make_shared<FakeModel>();
  std::vector<std::deque<serve::Event>> pending_;  // of each answer
};

/// The pieces that a reply writes. The client leaves after a number of pieces, or of calls of open().
struct Recorder {
  std::vector<std::string> pieces = {};
  std::size_t max_pieces = SIZE_MAX;
  std::size_t max_questions = SIZE_MAX;
  std::function<void()> between = [] {};  // called at each piece and question: FakeService::step()

  [[nodiscard]] serve::Connection connection() {
    return {[this](std::string_view piece) {
              between();
              if (pieces.size() >= max_pieces) return false;
              pieces.emplace_back(piece);
              return true;
            },
            [this] {
              between();
              return max_questions > 0 && max_questions-- > 0;
            }};
  }
  /// A reply that is made later is one piece.
  void read(const serve::HttpReply& reply) {
    if (!reply.later) return reply.stream(connection());
    if (const auto made = reply.later(connection().open)) pieces.push_back(made->body);
  }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const std::string& piece : pieces) out += piece;
    return out;
  }
};

/// A reply that is made later, and that the client waits for; others as they are.
[[nodiscard]] inline serve::HttpReply made(const serve::HttpReply& reply) {
  return reply.later ? reply.later([] { return true; }).value() : reply;
}
/// The body of a reply, also where it is made later or written in pieces.
[[nodiscard]] inline std::string body_of(const serve::HttpReply& reply) {
  if (!reply.stream && !reply.later) return reply.body;
  Recorder recorder;
  recorder.read(reply);
  return recorder.text();
}
[[nodiscard]] inline serve::Json json_of(const serve::HttpReply& reply) {
  return serve::Json::parse(body_of(reply));
}
[[nodiscard]] inline serve::HttpRequest post(std::string path, std::string body) {
  return {"POST", std::move(path), {}, {}, std::move(body)};
}

}  // namespace mica::test
