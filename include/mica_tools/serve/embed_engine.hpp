// SPDX-License-Identifier: Apache-2.0
//
// The texts of one loaded model that become rows: those of all requests share its steps. Beside answers, of
// this model or others, a step of texts takes a part of the time that a step of the answers takes.
//
//   admit() -> bytes are reserved -> EmbedBatch, a step at a time -> Embedded, Ended
#pragma once

#include "mica/alloc/booking.hpp"
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/embed_batch.hpp"
#include "mica_tools/serve/loaded_model.hpp"
#include "mica_tools/serve/metrics.hpp"
#include "mica_tools/serve/service.hpp"
#include "mica_tools/serve/step_pace.hpp"
#include "mica_tools/serve/waiting.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mica::serve {

/// All members: the thread of the scheduler.
class EmbedEngine {
 public:
  /// All of them outlive it. free_memory: frees some that can be restored; false: there is none. halted:
  /// whether other processes have the memory.
  EmbedEngine(LoadedModel& model, budget::Ledger& ledger, const SchedulerOptions& options, Metrics& metrics,
              std::function<bool()> free_memory, std::function<bool()> halted)
      : model_(model),
        ledger_(ledger),
        options_(options),
        metrics_(metrics),
        free_memory_(std::move(free_memory)),
        halted_(std::move(halted)),
        pace_(options.max_stall),
        batch_(model.model().transformer(), LoadedModel::texts_of_step) {}
  EmbedEngine(const EmbedEngine&) = delete;
  EmbedEngine& operator=(const EmbedEngine&) = delete;

  [[nodiscard]] bool busy() const noexcept { return !running_.empty(); }
  /// Bytes of caches that its texts have, and those that they may still take.
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }
  [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved(load()); }

  /// As Engine::admit(). The rows of the job are booked until it ends.
  [[nodiscard]] Admission admit(Waiting& waiting, std::uint64_t& reserved_bytes, std::uint64_t& needed);
  /// One step. beside: seconds of the last steps of all running answers; 0: none runs.
  void step(double beside);
  /// Ends all of its jobs as failed.
  void fail_all(const Failed& failure);
  /// Appends its jobs.
  void describe(std::vector<AnswerState>& answers) const;

 private:
  struct Running {
    std::uint64_t id = 0;
    EmbedTexts embed;
    std::shared_ptr<Answer> answer;
    Stopwatch since_submit;
    double queued_seconds = 0;
    Stopwatch since_begin = {};
    alloc::Booking booked = {};       // of the rows
    std::vector<float> numbers = {};  // rows of all texts
    std::size_t width = 0;            // of a row
    std::size_t completed = 0;        // texts
  };

  /// Texts that are to share steps.
  [[nodiscard]] TextLoad load() const noexcept {
    TextLoad all;
    for (const Running& running : running_) all.add(running.embed);
    return all;
  }
  [[nodiscard]] std::uint64_t reserved(const TextLoad& load) const noexcept {
    const std::uint64_t bytes = model_.cache_bytes(load);
    return bytes - std::min(bytes, held_);
  }
  /// Calls a function that takes or frees caches.
  template <class F>
  decltype(auto) counted(F&& f) {
    struct Count {
      EmbedEngine& its;
      std::uint64_t before;
      ~Count() { its.held_ += its.booked_caches() - before; }  // modulo 2^64, since it may be less
    } count{*this, booked_caches()};
    return f();
  }
  [[nodiscard]] std::uint64_t booked_caches() const noexcept {
    using budget::Account;
    return ledger_.used(Account::kv) + ledger_.used(Account::state) + ledger_.used(Account::checkpoints);
  }
  void start(Running& running);
  void drop_cancelled();
  [[nodiscard]] std::optional<Failed> run(std::size_t max_tokens);
  void end(Running& running, const Failed& failure, StopReason reason);
  void free_if_idle() {
    if (running_.empty()) counted([&] { batch_.free_caches(); });
  }

  LoadedModel& model_;
  budget::Ledger& ledger_;
  const SchedulerOptions& options_;
  Metrics& metrics_;
  std::function<bool()> free_memory_;
  std::function<bool()> halted_;
  StepPace pace_;
  EmbedBatch<AnyModel> batch_;
  std::list<Running> running_;  // addresses stay
  std::uint64_t held_ = 0;
};

inline Admission EmbedEngine::admit(Waiting& waiting, std::uint64_t& reserved_bytes, std::uint64_t& needed) {
  const EmbedTexts& embed = *waiting.job.embed;
  TextLoad with = load();
  with.add(embed);
  const std::uint64_t rows = model_.row_bytes(embed), caches = reserved(with) - reserved();
  needed = rows + caches;
  if (ledger_.left() < reserved_bytes + needed) return Admission::no_memory;
  auto booked = alloc::Booking::make(&ledger_, budget::Account::logits, rows);
  if (!booked) return Admission::no_memory;
  Running& running = running_.emplace_back(
      Running{waiting.id, std::move(*waiting.job.embed), std::move(waiting.answer), waiting.since_submit});
  running.booked = *std::move(booked);
  running.queued_seconds = running.since_submit.seconds();
  start(running);
  reserved_bytes += caches;
  metrics_.queued.add(running.queued_seconds);
  return Admission::admitted;
}

inline void EmbedEngine::start(Running& running) {
  const EmbedTexts& embed = running.embed;
  running.width = model_.row_width(embed.rows);
  running.numbers.resize(embed.row_count() * running.width);
  std::size_t row = 0;
  for (const std::vector<TokenId>& text : embed.texts) {
    const std::size_t rows = embed.rows.each_token ? text.size() : 1;
    batch_.add(running.id, text, embed.rows,
               std::span(running.numbers).subspan(row * running.width, rows * running.width));
    row += rows;
  }
}

/// Their clients have disconnected.
inline void EmbedEngine::drop_cancelled() {
  for (auto at = running_.begin(); at != running_.end();) {
    if (!at->answer->cancelled().load(std::memory_order_relaxed)) {
      ++at;
      continue;
    }
    batch_.remove(at->id);
    end(*at, {}, StopReason::cancelled);
    at = running_.erase(at);
  }
}

/// Empty: the step ran, or memory was freed for the next one.
inline std::optional<Failed> EmbedEngine::run(std::size_t max_tokens) {
  model::StepStatus status = model::StepStatus::no_memory;
  try {
    status = counted([&] { return batch_.step(max_tokens); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::budget) return failed_by(error);
  }
  if (status == model::StepStatus::ok) return std::nullopt;
  if (halted_()) return short_of_memory(1);
  if (status == model::StepStatus::no_memory && free_memory_()) return std::nullopt;
  return Failed{join("the texts could not be embedded: ", model::text(status))};
}

inline void EmbedEngine::step(double beside) {
  drop_cancelled();
  if (running_.empty()) return free_if_idle();
  const std::size_t chunk = model_.model().transformer().chunk();
  if (beside > 0) pace_.count(1, 0, beside);
  const Stopwatch watch;
  if (const auto failure = run(beside > 0 ? pace_.prompt_tokens(chunk) : chunk)) return fail_all(*failure);
  if (beside > 0) pace_.count(1, batch_.last_tokens(), beside + watch.seconds());
  ++metrics_.steps;
  for (const std::size_t owner : batch_.completed()) {
    const auto at =
        std::find_if(running_.begin(), running_.end(), [&](const Running& each) { return each.id == owner; });
    if (++at->completed < at->embed.texts.size()) continue;
    end(*at, {}, StopReason::end_of_text);
    running_.erase(at);
  }
  free_if_idle();
}

/// Ends a job: as failed or, without a failure, for the reason.
inline void EmbedEngine::end(Running& running, const Failed& failure, StopReason reason) {
  const auto finite = [](float x) { return std::isfinite(x); };
  Failed failed = failure;
  const bool whole = reason == StopReason::end_of_text && failed.message.empty();
  if (whole && !std::all_of(running.numbers.begin(), running.numbers.end(), finite))
    failed.message = "a row has a number that is not finite";
  Ended ended;
  ended.reason = reason;
  ended.prompt_tokens = running.embed.tokens();
  ended.timings.prompt = {ended.prompt_tokens, running.since_begin.seconds()};
  ended.queued_seconds = running.queued_seconds;
  const bool ok = failed.message.empty();
  ++(!ok ? metrics_.failed : whole ? metrics_.finished : metrics_.cancelled);
  if (ok && whole) {
    metrics_.prompt_tokens += ended.prompt_tokens;
    metrics_.prompt_seconds += ended.timings.prompt.seconds;
    metrics_.embedded_texts += running.embed.texts.size();
    running.answer->put(Embedded{std::move(running.numbers), running.width});
  }
  if (options_.on_ended) options_.on_ended({running.id, model_.card().id, ended, failed.message});
  running.answer->put(ok ? Event(ended) : Event(std::move(failed)));
}

inline void EmbedEngine::fail_all(const Failed& failure) {
  counted([&] { batch_.clear(); });
  for (Running& running : running_) end(running, failure, StopReason::cancelled);
  running_.clear();
  free_if_idle();
}

inline void EmbedEngine::describe(std::vector<AnswerState>& answers) const {
  for (const Running& running : running_) {
    std::size_t read = 0;
    for (std::size_t i = 0; i < running.completed; ++i) read += running.embed.texts[i].size();
    AnswerState state;
    state.id = running.id;
    state.model = model_.card().id;
    state.prompt_tokens = running.embed.tokens();
    state.read_tokens = read;
    state.bytes = model_.row_bytes(running.embed);
    state.running = true;
    answers.push_back(std::move(state));
  }
}

}  // namespace mica::serve
