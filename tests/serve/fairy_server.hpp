// SPDX-License-Identifier: Apache-2.0
//
// A scheduler over real models on a thread of its own, and what its answers are when they are alone.
#pragma once

#include "mica/plan/plan.hpp"
#include "mica/runtime/generate.hpp"
#include "mica_tools/embed/text_embedder.hpp"
#include "mica_tools/serve/scheduler.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace mica::test {

/// Opens models as a program does; their chat format is a line for each message.
class FileLoader final : public serve::Loader {
 public:
  /// watch: weights can leave memory then.
  explicit FileLoader(std::size_t n_ctx, std::size_t chunk = 64, std::shared_ptr<MemoryWatch> watch = {})
      : n_ctx_(n_ctx), chunk_(chunk), watch_(std::move(watch)) {}

  std::uint64_t bytes(const serve::ModelCard& card, std::uint64_t /*budget*/ = 0,
                      std::size_t /*answers*/ = 0) override {
    return plan_of(card.path).peak_bytes - plan::any_process_bytes;
  }
  std::shared_ptr<serve::LoadedModel> load(const serve::ModelCard& card,
                                           const std::shared_ptr<budget::Ledger>& ledger,
                                           std::size_t answers) override {
    const plan::Plan plan = plan_of(card.path);
    OpenOptions options = options_of(answers, gguf::open(card.path));
    options.ledger = ledger;
    serve::ChatFunctions chat{[](std::span<const text::Message> messages, const serve::Conversation&,
                                 bool with_answer, const text::MarkedMessages&) {
      std::string text;
      for (const text::Message& message : messages) text += message.role + ": " + message.content + "\n";
      return with_answer ? text + "assistant:" : text;
    }};
    return std::make_shared<serve::LoadedModel>(mica::open(card.path, options), card, std::move(chat),
                                                serve::SequenceBytes(plan.sequence_bytes));
  }
  /// Of a text encoder: with steps of whole texts, which have no more tokens than it has positions.
  [[nodiscard]] OpenOptions options_of(std::size_t answers, const gguf::Document& document) const {
    const arch::Config config = arch::AnyOf<arch::All>::config(document);
    OpenOptions options = options_of(answers);
    if (!config.encodes) return options;
    options.n_ctx = std::min(n_ctx_, config.n_ctx_train);
    return embedding_options(std::move(options), config);
  }
  [[nodiscard]] OpenOptions options_of(std::size_t answers) const {
    OpenOptions options{.n_ctx = n_ctx_, .chunk = chunk_, .logits_rows = answers, .threads = 1};
    options.choice.kv = kv::Choice::paged;
    if (watch_) options.choice.weights = paging::Choice::streamed;
    options.watch = watch_;
    return options;
  }

 private:
  [[nodiscard]] plan::Plan plan_of(const std::string& path) const {
    const gguf::Document document = gguf::open(path);
    const OpenOptions options = options_of(rows_, document);
    plan::Question question;
    question.model = {.n_ctx = options.n_ctx, .chunk = options.chunk, .logits_rows = rows_, .log = {}};
    question.choice = options.choice;
    question.sequences = options.sequences;
    question.sequence_bytes = true;
    return plan::make_plan(document, question);
  }

  static constexpr std::size_t rows_ = 4;
  std::size_t n_ctx_, chunk_;
  std::shared_ptr<MemoryWatch> watch_;
};

/// A running scheduler. Ends with the object.
class Running {
 public:
  Running(std::vector<std::string> paths, std::uint64_t budget, serve::SchedulerOptions options = {},
          std::size_t n_ctx = 256, std::size_t chunk = 64)
      : loader(n_ctx, chunk, options.watch),
        ledger(std::make_shared<budget::Ledger>(budget)),
        scheduler(cards(std::move(paths)), loader, ledger, options),
        thread_([this] { scheduler.run(); }) {}
  ~Running() { finish(); }
  /// Waits until all answers have ended.
  void finish() {
    scheduler.drain();
    if (thread_.joinable()) thread_.join();
  }

  FileLoader loader;
  std::shared_ptr<budget::Ledger> ledger;
  serve::Scheduler scheduler;

 private:
  /// Models are named "0", "1", ...
  static std::vector<serve::ModelCard> cards(std::vector<std::string> paths) {
    std::vector<serve::ModelCard> cards;
    for (std::string& path : paths) {
      serve::ModelCard card;
      card.id = std::to_string(cards.size());
      card.path = std::move(path);
      cards.push_back(std::move(card));
    }
    return cards;
  }
  std::thread thread_;
};

/// Waits until f() is true; the test case fails when that takes a minute.
template <class F>
void wait_until(F&& f) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!f()) {
    REQUIRE(std::chrono::steady_clock::now() < patience);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// SchedulerOptions::resident_bytes of a scheduler that pauses before each step, so that an answer of many
/// tokens is still there when the thread of the test comes back to it.
inline std::uint64_t nothing_slowly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return 0;
}

/// A whole answer.
struct Collected {
  std::string text;
  std::vector<serve::ScoredPiece> tokens;
  serve::Ended ended;
  std::string failure;
  serve::Failed failed;
};

/// The whole answer. Checks that it begins once, before its text, and with the counts of its end.
inline Collected collect(serve::Answer& answer) {
  Collected all;
  std::vector<serve::Begun> begun;
  for (;;) {
    auto event = answer.next(std::chrono::seconds(30));
    REQUIRE(event.has_value());
    if (auto* const first = std::get_if<serve::Begun>(&*event)) begun.push_back(*first);
    if (auto* const text = std::get_if<serve::Text>(&*event)) {
      CHECK(begun.size() == 1);
      all.text += text->text;
      all.tokens.insert(all.tokens.end(), text->tokens.begin(), text->tokens.end());
    } else if (auto* const ended = std::get_if<serve::Ended>(&*event)) {
      all.ended = *ended;
      if (begun.empty()) {  // its client disconnected while it waited
        CHECK(ended->reason == StopReason::cancelled);
        return all;
      }
      CHECK(begun.size() == 1);
      CHECK(begun[0].prompt_tokens == ended->prompt_tokens);
      CHECK(begun[0].cached_tokens == ended->cached_tokens);
      return all;
    } else if (auto* const failed = std::get_if<serve::Failed>(&*event)) {
      all.failure = failed->message;
      all.failed = *failed;
      return all;
    }
  }
}

}  // namespace mica::test
