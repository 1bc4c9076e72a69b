// SPDX-License-Identifier: Apache-2.0
//
// The server's core: one thread that loads models, admits jobs by bytes, and advances all answers. Everything
// is inside one ledger:
//
//   submit() -> queue, first in first out -> Engine of the model -> Answer, or rows of texts
//   model()  -> wanted models            -> Loader
//   slot()   -> tasks between two steps  -> Engine
//   MemoryWatch -> ServerGovernor        -> memory for other processes
#pragma once

#include "mica_tools/serve/engine.hpp"
#include "mica_tools/serve/loader.hpp"
#include "mica_tools/serve/model_memory.hpp"
#include "mica_tools/serve/server_governor.hpp"
#include "mica_tools/serve/service.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

/// One thread calls run(); all others may call the members of Service. model() and slot() wait for the thread
/// of run(): without one they wait for ever, and that thread itself must not call them. Join it before the
/// scheduler is destroyed; a scheduler does not run twice.
class Scheduler final : public Service {
 public:
  /// cards: the models that can be asked for, one at least, the default one first; only their files are known
  /// yet. The loader outlives it.
  Scheduler(std::vector<ModelCard> cards, Loader& loader, std::shared_ptr<budget::Ledger> ledger,
            const SchedulerOptions& options);
  ~Scheduler() override {
    if (options_.watch) options_.watch->on_short({});
  }

  // Required by Service
  inline std::vector<ModelCard> models() const override;
  inline std::shared_ptr<const ServedModel> model(std::string_view name,
                                                  const std::function<bool()>& open = {}) override;
  inline bool unload(std::string_view name) override;
  inline void keep_alive(std::string_view name, std::optional<std::chrono::seconds> time) override;
  inline std::shared_ptr<Answer> submit(Job job) override;
  inline SlotResult slot(SlotTask task) override;
  inline Snapshot snapshot() const override;

  // Specific to Scheduler
  /// Does all the work, until drain() or stop().
  void run();
  /// From now on jobs and models are refused; run() returns when all answers have ended. Any thread.
  void drain();
  /// The present step is completed, then run() returns; answers end as failed. Any thread.
  void stop();
  /// Whether run() has returned because other processes took the memory and nothing was left to release. Any
  /// thread.
  [[nodiscard]] bool is_lost() const noexcept { return lost_.load(std::memory_order_acquire); }

 private:
  using Clock = std::chrono::steady_clock;
  using Entry = ModelEntry;

  struct Queued {
    Entry* entry;
    Waiting waiting;
  };
  struct WaitingSlot {
    SlotTask task;
    std::promise<SlotResult> result;
  };

  [[nodiscard]] Entry& find(std::string_view name) const;
  [[nodiscard]] std::size_t free_answers(const Entry& entry) const;
  [[nodiscard]] std::uint64_t seconds_to_retry() const;
  void check_slot(std::size_t slot) const;
  static void check_ids(std::span<const TokenId> ids, std::size_t n_vocab);
  static void check_prompt(const Job& job);
  static void check_texts(const Job& job);
  [[nodiscard]] std::uint64_t check_size(const Job& job, const Entry& entry);
  void refuse_if_ending() const;
  void refuse_if_short() const;
  [[nodiscard]] bool models_change() const;

  // The thread of run()
  void watch_memory();
  void fail_every_answer(const Failed& failure);
  void wait_for_work();
  void take_inbox();
  void do_slots();
  [[nodiscard]] SlotResult do_slot(const SlotTask& task);
  void load_wanted();
  [[nodiscard]] Refusal refusal_of_load(const Error& error) const;
  void load(Entry& entry);
  [[nodiscard]] bool unload_now(Entry& entry);
  void admit();
  void admit_texts_behind(std::uint64_t reserved);
  void note_admitted(Entry& entry);
  void fail_first(const Failed& failure);
  void step();
  [[nodiscard]] bool save_one();
  void save_while_idle();
  void unload_in_time();
  void publish();
  void publish_in_time();
  void end_all();

  std::vector<std::unique_ptr<Entry>> entries_;
  Loader& loader_;
  std::shared_ptr<budget::Ledger> ledger_;
  SchedulerOptions options_;
  ModelMemory memory_;

  mutable std::mutex mutex_;
  std::condition_variable work_;    // for run()
  std::condition_variable loaded_;  // for model()
  std::vector<Queued> inbox_;       // jobs that were submitted since the last step
  std::size_t in_queue_ = 0;        // jobs of inbox_ and queue_
  std::vector<WaitingSlot> slots_;  // tasks that were given since the last step
  std::uint64_t next_id_ = 1;
  bool draining_ = false;
  bool stopping_ = false;  // draining_ too
  Snapshot published_;
  std::optional<std::uint64_t> retry_after_;  // memory is short: requests are refused, with these seconds
  mutable bool asked_ = false;                // for a snapshot since the last one
  double tokens_per_second_ = 0;              // of all answers together, lately

  std::atomic<bool> lost_{false};

  // The thread of run()
  std::optional<ServerGovernor> governor_;  // empty: memory is not watched
  std::deque<Queued> queue_;
  Metrics metrics_;
  bool stuck_ = false;    // a wanted model has no memory, and no running answer will free it
  bool blocked_ = false;  // the first job of the queue has to wait for an answer or a model
  Clock::time_point active_ = Clock::now();  // the last time with an answer
  Clock::time_point published_at_ = {};
};

inline Scheduler::Scheduler(std::vector<ModelCard> cards, Loader& loader,
                            std::shared_ptr<budget::Ledger> ledger, const SchedulerOptions& options)
    : loader_(loader),
      ledger_(std::move(ledger)),
      options_(options),
      memory_(entries_, *ledger_, options_, [this](Entry& entry) { return unload_now(entry); }) {
  MICA_CHECK(!cards.empty(), usage, "a server needs a model");
  MICA_CHECK(options.parallel > 0 && options.max_waiting > 0, usage,
             "a server needs SchedulerOptions::parallel and max_waiting of one at least");
  for (ModelCard& card : cards) {
    const auto same = [&](const auto& entry) { return entry->card.id == card.id; };
    MICA_CHECK(std::none_of(entries_.begin(), entries_.end(), same), usage, "two models have the name ",
               escaped(card.id));
    entries_.push_back(std::make_unique<Entry>(Entry{std::move(card)}));
    entries_.back()->keep = options.keep_alive;
  }
  if (options_.watch) {
    governor_.emplace(entries_, memory_, options_,
                      [this](const Failed& failure) { fail_every_answer(failure); });
    options_.watch->on_short([this] { work_.notify_one(); });
  }
  published_.budget_bytes = ledger_->limit();
}

/// Raises Refusal (invalid) for an id outside the vocabulary.
inline void Scheduler::check_ids(std::span<const TokenId> ids, std::size_t n_vocab) {
  for (const TokenId id : ids) {
    if (id >= n_vocab)
      throw Refusal(Cause::invalid, join("token ", id, " is outside the vocabulary of ", n_vocab, " tokens"));
  }
}

inline ModelEntry& Scheduler::find(std::string_view name) const {
  if (name.empty()) return *entries_.front();
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const auto& entry) { return entry->card.id == name; });
  if (at != entries_.end()) return **at;
  std::string known;
  for (const auto& entry : entries_) known += join(known.empty() ? "" : ", ", entry->card.id);
  Refusal refusal(Cause::not_found, join("model '", escaped(name), "' is not here; there are: ", known));
  refusal.field = "model";
  throw refusal;
}

inline void Scheduler::refuse_if_ending() const {
  if (draining_) throw Refusal(Cause::unavailable, "the server is ending");
}

inline void Scheduler::refuse_if_short() const {
  if (retry_after_) throw refusal_of(short_of_memory(*retry_after_));
}

/// Whether a model is to be loaded or unloaded. Under the mutex.
inline bool Scheduler::models_change() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry->wanted || entry->unwanted; });
}

inline std::vector<ModelCard> Scheduler::models() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelCard> cards;
  for (const auto& entry : entries_) {
    cards.push_back(entry->loaded ? entry->loaded->card() : entry->card);
    if (!entry->loaded) continue;
    cards.back().memory_bytes = entry->memory_bytes;
    if (entry->keep && entry->idle_since)
      cards.back().unload_at = *entry->idle_since + static_cast<std::int64_t>(entry->keep->count());
  }
  return cards;
}

inline std::shared_ptr<const ServedModel> Scheduler::model(std::string_view name,
                                                           const std::function<bool()>& open) {
  constexpr std::chrono::milliseconds look(200);  // whether the client is still there
  std::unique_lock lock(mutex_);
  Entry& entry = find(name);
  refuse_if_ending();
  refuse_if_short();
  entry.unwanted = false;
  if (entry.loaded) return entry.loaded;
  entry.refusal.reset();
  ++entry.waiters;
  while (!entry.loaded && !entry.refusal && !draining_) {
    entry.wanted = true;  // again, where it was loaded and unloaded before this thread could take it
    work_.notify_one();
    loaded_.wait_for(lock, look);
    if (!open) continue;
    lock.unlock();
    const bool there = open();
    lock.lock();
    if (there) continue;
    if (--entry.waiters == 0) entry.wanted = false;  // the queue wants it again, if it needs it
    throw Refusal(Cause::unavailable, "the client has disconnected");
  }
  --entry.waiters;
  if (entry.loaded) return entry.loaded;
  refuse_if_ending();
  throw *entry.refusal;
}

inline bool Scheduler::unload(std::string_view name) {
  const std::lock_guard lock(mutex_);
  Entry& entry = find(name);
  if (!entry.loaded) return false;
  entry.unwanted = true;
  work_.notify_one();
  return true;
}

inline void Scheduler::keep_alive(std::string_view name, std::optional<std::chrono::seconds> time) {
  const std::lock_guard lock(mutex_);
  Entry& entry = find(name);
  entry.keep = time;
  entry.renewed = true;
  work_.notify_one();
}

inline std::shared_ptr<Answer> Scheduler::submit(Job job) {
  if (!job.model) throw Refusal(Cause::invalid, "a job needs a model, as Service::model() returns it");
  job.embed ? check_texts(job) : check_prompt(job);
  if (job.slot) check_slot(*job.slot);
  const std::lock_guard lock(mutex_);
  Entry& entry = find(job.model->card().id);
  const std::uint64_t bytes = check_size(job, entry);
  if (bytes > entry.capacity) {
    ++published_.metrics.refused_size;
    throw Refusal(Cause::too_large,
                  join(job.embed ? "the request needs " : "the answer needs ", bytes, " bytes",
                       job.embed ? "" : join(" at ", end_of(job, job.model->card().n_ctx), " tokens"),
                       "; the memory budget leaves ", entry.capacity, " beside the model; ",
                       job.embed ? "send fewer texts" : "use a smaller max_tokens"));
  }
  refuse_if_ending();
  refuse_if_short();
  if (in_queue_ >= options_.max_waiting + free_answers(entry)) {
    ++published_.metrics.refused_busy;
    Refusal refusal(Cause::busy, join(in_queue_, " answers wait in the queue already"));
    refusal.retry_after = seconds_to_retry();
    throw refusal;
  }
  auto answer = std::make_shared<Answer>();
  job.model.reset();  // a job in the queue does not keep its model in memory
  inbox_.push_back({&entry, {next_id_++, std::move(job), answer}});
  ++in_queue_;
  ++published_.metrics.requests;
  work_.notify_one();
  return answer;
}

/// Raises Refusal, as submit().
inline void Scheduler::check_prompt(const Job& job) {
  require_writer(job.model->card());
  if (job.prompt.tokens.empty()) throw Refusal(Cause::invalid, "a job needs a prompt of one token at least");
  check_ids(job.prompt.tokens, job.model->card().n_vocab);
  try {
    static_cast<void>(sample::Standard<>(job.sampler, 1));
  } catch (const Error& error) {
    throw Refusal(Cause::invalid, error.message());
  }
}

inline void Scheduler::check_texts(const Job& job) {
  const std::vector<std::vector<TokenId>>& texts = job.embed->texts;
  const std::size_t max = job.model->max_text_tokens();
  if (texts.empty()) throw Refusal(Cause::invalid, "a job needs a text to embed");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || texts[i].size() > max)
      throw Refusal(Cause::invalid,
                    join("text ", i, " has ", texts[i].size(), " tokens; allowed: 1 to ", max));
    check_ids(texts[i], job.model->card().n_vocab);
  }
  static_cast<void>(job.model->row_width(job.embed->rows));
}

/// The bytes that a job takes beside its model; 0 where that is not loaded. Under the mutex. Raises Refusal
/// (too_long).
inline std::uint64_t Scheduler::check_size(const Job& job, const Entry& entry) {
  if (job.embed) {
    if (!entry.loaded) return 0;
    TextLoad load;
    load.add(*job.embed);
    return entry.loaded->cache_bytes(load) + entry.loaded->row_bytes(*job.embed);
  }
  const std::size_t prompt = job.prompt.tokens.size(), n_ctx = job.model->card().n_ctx;
  if (prompt >= n_ctx) {
    ++published_.metrics.refused_size;
    Refusal refusal(Cause::too_long,
                    join("the prompt of ", prompt, " tokens exceeds the available context size of ", n_ctx,
                         ": an answer needs one token at least"));
    refusal.prompt_tokens = prompt;
    refusal.n_ctx = n_ctx;
    throw refusal;
  }
  return (entry.loaded ? entry.loaded->bytes().at(end_of(job, n_ctx)) : 0) +
         (job.constraint ? options_.constraint_bytes : 0);
}

inline void Scheduler::check_slot(std::size_t slot) const {
  if (slot < options_.parallel) return;
  Refusal refusal(Cause::invalid, join("id_slot: found ", slot, ", allowed: 0 to ", options_.parallel - 1));
  refusal.field = "id_slot";
  throw refusal;
}

inline SlotResult Scheduler::slot(SlotTask task) {
  if (options_.slots.empty())
    throw Refusal(Cause::unsupported, join("slots are not saved: there is no folder for them",
                                           options_.slots_hint.empty() ? "" : "; ", options_.slots_hint));
  if (!task.model) throw Refusal(Cause::invalid, "a slot needs a model, as Service::model() returns it");
  check_slot(task.slot);
  if (task.action != SlotAction::erase) check_file_name(task.file);
  std::future<SlotResult> result;
  {
    const std::lock_guard lock(mutex_);
    refuse_if_ending();
    slots_.push_back({std::move(task), {}});
    result = slots_.back().result.get_future();
    work_.notify_one();
  }
  return result.get();
}

/// Answers of a model that may run beside those of the last snapshot.
inline std::size_t Scheduler::free_answers(const Entry& entry) const {
  const auto running = static_cast<std::size_t>(
      std::count_if(published_.answers.begin(), published_.answers.end(),
                    [&](const AnswerState& each) { return each.running && each.model == entry.card.id; }));
  return options_.parallel - std::min(options_.parallel, running);
}

/// By the speed of the last steps: until the answer that is nearest to its end has ended.
inline std::uint64_t Scheduler::seconds_to_retry() const {
  std::size_t min = 0, running = 0;
  for (const AnswerState& each : published_.answers) {
    if (!each.running) continue;
    const std::size_t left = each.prompt_tokens - each.read_tokens + each.max_tokens - each.answer_tokens;
    min = running == 0 ? left : std::min(min, left);
    ++running;
  }
  if (running == 0 || tokens_per_second_ <= 0) return 1;
  const double seconds = static_cast<double>(min * running) / tokens_per_second_;
  return static_cast<std::uint64_t>(std::clamp(std::ceil(seconds), 1.0, 3600.0));
}

inline Snapshot Scheduler::snapshot() const {
  const std::lock_guard lock(mutex_);
  asked_ = true;
  return published_;
}

inline void Scheduler::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  work_.notify_one();
  loaded_.notify_all();
}

inline void Scheduler::stop() {
  const std::lock_guard lock(mutex_);
  draining_ = stopping_ = true;
  work_.notify_one();
  loaded_.notify_all();
}

inline void Scheduler::run() {
  for (;;) {
    wait_for_work();
    take_inbox();
    watch_memory();
    if (is_lost()) break;
    memory_.book_process();
    do_slots();
    load_wanted();
    admit();
    const bool was_busy = memory_.busy();
    step();
    if (was_busy && !memory_.busy()) blocked_ = false;  // the next one need not wait for a wake-up
    save_while_idle();
    unload_in_time();
    publish_in_time();
    const std::lock_guard lock(mutex_);
    if (stopping_ || (draining_ && in_queue_ == 0 && !memory_.busy())) break;
  }
  end_all();
}

inline void Scheduler::watch_memory() {
  if (!governor_) return;
  (*governor_)();
  metrics_.sheds = governor_->times();
  lost_.store(governor_->is_lost(), std::memory_order_release);
  const std::lock_guard lock(mutex_);
  retry_after_ = governor_->retry_after();
  if (!governor_->sheds()) return;
  for (const auto& entry : entries_) {
    if (!std::exchange(entry->wanted, false)) continue;
    entry->refusal = refusal_of(short_of_memory(*retry_after_));
    loaded_.notify_all();
  }
}

/// Running and waiting ones.
inline void Scheduler::fail_every_answer(const Failed& failure) {
  for (const auto& entry : entries_) {
    if (entry->engine) entry->engine->fail_all(failure);
  }
  while (!queue_.empty()) fail_first(failure);
}

/// Until there is something to do; at least twice a second, for models to be unloaded in time and clients
/// that disconnect.
inline void Scheduler::wait_for_work() {
  if (memory_.busy() || (!queue_.empty() && !blocked_)) return;
  std::unique_lock lock(mutex_);
  if (!inbox_.empty() || !slots_.empty() || stopping_ || (draining_ && in_queue_ == 0)) return;
  if (models_change()) {
    work_.wait_for(lock, std::chrono::milliseconds(1));
    return;
  }
  work_.wait_for(lock, std::chrono::milliseconds(500));
}

inline void Scheduler::take_inbox() {
  {
    const std::lock_guard lock(mutex_);
    for (Queued& queued : inbox_) queue_.push_back(std::move(queued));
    inbox_.clear();
  }
  const auto has_left = [&](const Queued& queued) {
    if (!queued.waiting.answer->cancelled().load(std::memory_order_relaxed)) return false;
    ++metrics_.cancelled;
    end_waiting(queued.waiting, queued.entry->card.id, {}, options_);
    return true;
  };
  const std::size_t left = std::erase_if(queue_, has_left);
  const std::lock_guard lock(mutex_);
  in_queue_ -= left;
}

inline void Scheduler::do_slots() {
  std::vector<WaitingSlot> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(slots_);
  }
  for (WaitingSlot& each : all) {
    try {
      each.result.set_value(do_slot(each.task));
    } catch (const Refusal&) {
      each.result.set_exception(std::current_exception());
    } catch (const std::exception& error) {
      const auto* const known = dynamic_cast<const Error*>(&error);
      const bool memory = known != nullptr && known->code() == ErrorCode::budget;
      const bool disk = known == nullptr || each.task.action == SlotAction::save;
      const Cause cause = memory ? Cause::too_large : disk ? Cause::failed : Cause::invalid;
      each.result.set_exception(
          std::make_exception_ptr(Refusal(cause, known != nullptr ? known->message() : error.what())));
    }
  }
}

inline SlotResult Scheduler::do_slot(const SlotTask& task) {
  Entry& entry = find(task.model->card().id);
  if (!entry.engine) throw Refusal(Cause::unavailable, "the model was unloaded; send the request again");
  const std::string path = (std::filesystem::path(options_.slots) / task.file).string();
  std::error_code error;
  const auto kind = std::filesystem::symlink_status(path, error).type();
  if (task.action != SlotAction::erase && kind != std::filesystem::file_type::regular &&
      kind != std::filesystem::file_type::not_found)
    throw Refusal(Cause::invalid, join("filename: ", escaped(task.file), " is not a plain file"));
  if (task.action == SlotAction::erase) return {entry.engine->erase_slot(task.slot), 0, 0};
  if (task.action == SlotAction::save) return entry.engine->save_slot(task.slot, path);
  const auto make_room = [&](std::uint64_t bytes) {
    const std::uint64_t all = ledger_->left() + memory_.prefix_bytes(),
                        taken = std::min(all, memory_.reserved());
    if (bytes > all - taken)
      throw Refusal(Cause::too_large, join("the file needs ", bytes, " bytes of keys, values and states; ",
                                           all - taken, " are free beside models and answers"));
    while (ledger_->left() < taken + bytes && memory_.drop_prefix()) {
    }
  };
  return entry.engine->restore_slot(task.slot, path, make_room);
}

inline void Scheduler::load_wanted() {
  stuck_ = false;
  for (const auto& entry : entries_) {
    {
      const std::lock_guard lock(mutex_);
      if (!entry->wanted) continue;
    }
    try {
      const std::uint64_t max = ledger_->limit() - options_.process_bytes;
      if (entry->bytes == 0)
        entry->bytes = loader_.bytes(entry->card, max + plan::any_process_bytes, options_.parallel);
      if (entry->bytes > max)
        throw Refusal(Cause::too_large,
                      join(entry->card.id, ": needs ", entry->bytes, " bytes, the budget has ", max,
                           " for models", options_.memory_hint.empty() ? "" : "; ", options_.memory_hint));
      stuck_ = !memory_.free_for_model(*entry) && !memory_.busy();
      if (!stuck_ && ledger_->left() >= entry->bytes + memory_.reserved()) load(*entry);
    } catch (const Refusal& refusal) {
      const std::lock_guard lock(mutex_);
      entry->refusal = refusal;
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      entry->refusal = refusal_of_load(error);
    } catch (const std::exception& error) {  // of a loader
      const std::lock_guard lock(mutex_);
      entry->refusal = Refusal(Cause::failed, join(entry->card.id, ": ", error.what()));
    }
    const std::lock_guard lock(mutex_);
    if (entry->refusal || entry->loaded) entry->wanted = false;
    if (draining_ && queue_.empty()) entry->wanted = false;  // those who waited are refused
    loaded_.notify_all();
  }
}

/// A model that did not fit beside other processes may fit later.
inline Refusal Scheduler::refusal_of_load(const Error& error) const {
  if (error.code() != ErrorCode::budget) return Refusal(Cause::failed, error.message());
  if (options_.watch && options_.watch->lacking() > 0) return refusal_of(short_of_memory(1));
  return Refusal(Cause::too_large, error.message());
}

inline void Scheduler::load(Entry& entry) {
  const std::uint64_t before = ledger_->used();
  auto loaded = loader_.load(entry.card, ledger_, options_.parallel);
  MICA_CHECK(loaded, failed, entry.card.id, ": the loader returned no model");
  auto engine = std::make_unique<Engine>(loaded, *ledger_, options_, metrics_,
                                         [this] { return memory_.drop_prefix(); });
  const std::uint64_t base = ledger_->used() - before;
  MICA_CHECK(base > 0, failed, entry.card.id, ": the loader did not open it with OpenOptions::ledger");
  ++metrics_.loads;
  const std::lock_guard lock(mutex_);
  entry.memory_bytes = base;
  const std::uint64_t needs = options_.process_bytes + base + engine->sampler_bytes();
  entry.capacity = ledger_->limit() - std::min(ledger_->limit(), needs);
  entry.engine = std::move(engine);
  entry.loaded = std::move(loaded);
  entry.unwanted = false;
  entry.idle_since.reset();
  entry.used = Clock::now();
}

/// Unloads a model; false while another thread makes a job for it.
inline bool Scheduler::unload_now(Entry& entry) {
  std::shared_ptr<LoadedModel> last;
  {
    const std::lock_guard lock(mutex_);
    constexpr long owners = 2;  // entry and engine
    if (entry.loaded.use_count() > owners) return false;
    last = std::move(entry.loaded);
    entry.unwanted = false;
  }
  entry.engine.reset();
  ++metrics_.unloads;
  return true;
}

inline void Scheduler::admit() {
  if (governor_ && governor_->retry_after()) {
    blocked_ = true;
    return;
  }
  {
    const std::lock_guard lock(mutex_);  // what a model needs to be loaded is left free
    blocked_ = std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) { return entry->wanted; });
    if (blocked_ && !stuck_) return;  // stuck: a thread holds an idle model, and may wait for an answer of it
  }
  std::uint64_t bytes = memory_.reserved();
  while (!queue_.empty()) {
    Queued& first = queue_.front();
    Entry& entry = *first.entry;
    if (!entry.engine) {  // it was unloaded since
      std::optional<Refusal> refusal;
      {
        const std::lock_guard lock(mutex_);
        refusal.swap(entry.refusal);
        entry.wanted = !refusal;
      }
      if (!refusal) return;
      fail_first({refusal->message(), refusal->cause(), refusal->retry_after});
      continue;
    }
    entry.used = Clock::now();
    std::uint64_t needed = 0;
    const Admission admission = entry.engine->admit(first.waiting, bytes, needed);
    if (admission == Admission::no_memory) {
      const bool possible = ledger_->left() + memory_.freeable(entry) >= bytes + needed;
      if (possible && memory_.free_for_answer(entry, bytes + needed)) continue;
      if (!possible && !memory_.busy()) {  // not even alone
        const bool texts = first.waiting.job.embed.has_value();
        fail_first(
            {join(texts ? "the texts need " : "the answer needs ", needed,
                  " bytes, the memory budget has no more than ", ledger_->left() + memory_.freeable(entry),
                  " for ", texts ? "them" : "it", "; ", texts ? "send fewer" : "use a smaller max_tokens")});
        continue;
      }
    }
    if (admission != Admission::admitted) {
      blocked_ = true;
      if (admission == Admission::all_parallel) admit_texts_behind(bytes);
      return;
    }
    note_admitted(entry);
    queue_.pop_front();
  }
}

/// Texts do not wait for the end of answers that are as many as may run; for memory they wait in the queue.
inline void Scheduler::admit_texts_behind(std::uint64_t reserved) {
  for (auto at = queue_.begin(); at != queue_.end();) {
    Entry& entry = *at->entry;
    std::uint64_t needed = 0;
    if (!at->waiting.job.embed || !entry.engine ||
        entry.engine->admit(at->waiting, reserved, needed) != Admission::admitted) {
      ++at;
      continue;
    }
    entry.used = Clock::now();
    note_admitted(entry);
    at = queue_.erase(at);
  }
}

inline void Scheduler::note_admitted(Entry& entry) {
  if (options_.watch) options_.watch->touch(entry.loaded->model().transformer());
  const std::lock_guard lock(mutex_);
  --in_queue_;
  entry.idle_since.reset();  // also where the answer ends before the next look at it
}

/// The first job of the queue ends as failed.
inline void Scheduler::fail_first(const Failed& failure) {
  ++metrics_.failed;
  end_waiting(queue_.front().waiting, queue_.front().entry->card.id, failure, options_);
  queue_.pop_front();
  const std::lock_guard lock(mutex_);
  --in_queue_;
}

/// A step of the answers of each model, then one of the texts of each model.
inline void Scheduler::step() {
  double beside = 0;  // seconds
  for (const auto& entry : entries_) {
    if (!entry->engine || !entry->engine->writes()) continue;
    const std::uint64_t before = metrics_.answer_tokens;
    const Stopwatch watch;
    entry->engine->step();
    entry->used = Clock::now();
    const double tokens = static_cast<double>(metrics_.answer_tokens - before), seconds = watch.seconds();
    beside += seconds;
    if (seconds > 0) {
      const std::lock_guard lock(mutex_);
      tokens_per_second_ += 0.1 * (tokens / seconds - tokens_per_second_);
    }
  }
  for (const auto& entry : entries_) {
    if (!entry->engine || !entry->engine->embeds()) continue;
    entry->engine->step_texts(beside);
    entry->used = Clock::now();
  }
}

/// Writes a prefix to the disk; false: all are there.
inline bool Scheduler::save_one() {
  std::string error;
  for (const auto& entry : entries_) {
    if (entry->engine && entry->engine->save_one(error)) return true;
    if (!error.empty())
      options_.log(LogLevel::warning, join(entry->card.id, ": prefixes are not saved: ", error));
    error.clear();
  }
  return false;
}

/// One after the other, so that a request waits for one of them at most.
inline void Scheduler::save_while_idle() {
  constexpr std::chrono::seconds idle{1};
  if (memory_.busy() || !queue_.empty()) active_ = Clock::now();
  if (options_.state.empty() || Clock::now() - active_ < idle) return;
  const auto has_work = [this] {
    const std::lock_guard lock(mutex_);
    return !inbox_.empty() || !slots_.empty() || draining_ || models_change();
  };
  while (!has_work() && save_one()) {
  }
}

inline void Scheduler::unload_in_time() {
  for (const auto& entry : entries_) {
    if (!entry->engine) continue;
    bool due = false;
    {
      const std::lock_guard lock(mutex_);
      if (entry->engine->busy()) {
        entry->idle_since.reset();
        continue;
      }
      if (std::exchange(entry->renewed, false)) {
        entry->used = Clock::now();
        entry->idle_since.reset();
      }
      if (!entry->idle_since) entry->idle_since = std::time(nullptr);
      due = entry->unwanted || (entry->keep && Clock::now() - entry->used >= *entry->keep);
    }
    if (due) static_cast<void>(unload_now(*entry));
  }
}

/// Where nothing runs, a snapshot has been asked for, or the last one is old: it has a line for each answer.
inline void Scheduler::publish_in_time() {
  constexpr std::chrono::milliseconds old{25};
  const bool due = !memory_.busy() || Clock::now() - published_at_ >= old;
  if (!due) {
    const std::lock_guard lock(mutex_);
    if (!asked_) return;
  }
  publish();
}

inline void Scheduler::publish() {
  published_at_ = Clock::now();
  Snapshot now;
  now.budget_bytes = ledger_->limit();
  now.used_bytes = ledger_->used();
  now.peak_bytes = ledger_->peak();
  now.accounts = ledger_->accounts();
  for (const auto& entry : entries_) {
    if (!entry->engine) continue;
    now.prefixes += entry->engine->prefixes();
    now.disk_read_bytes += entry->loaded->model().transformer().reads().bytes;
    entry->engine->describe(now.answers);
  }
  now.reserved_bytes = memory_.reserved();
  now.shared_bytes = memory_.prefix_bytes();
  for (const Queued& queued : queue_) {
    const Job& job = queued.waiting.job;
    now.answers.push_back({queued.waiting.id, queued.entry->card.id, tokens_of(job), 0, 0, 0, job.max_tokens,
                           0, false, job.slot});
  }
  now.metrics = metrics_;
  const std::lock_guard lock(mutex_);
  now.metrics.requests = published_.metrics.requests;
  now.metrics.refused_busy = published_.metrics.refused_busy;
  now.metrics.refused_size = published_.metrics.refused_size;
  published_ = std::move(now);
  asked_ = false;
}

inline void Scheduler::end_all() {
  constexpr const char* why = "the server is ending";
  for (const auto& entry : entries_) {
    if (entry->engine) entry->engine->fail_all({why});
  }
  std::vector<WaitingSlot> slots;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = draining_ = true;
    for (Queued& queued : inbox_) queue_.push_back(std::move(queued));
    inbox_.clear();
    slots.swap(slots_);
    in_queue_ = 0;
    loaded_.notify_all();
  }
  for (const Queued& queued : queue_) end_waiting(queued.waiting, queued.entry->card.id, {why}, options_);
  metrics_.failed += queue_.size();
  queue_.clear();
  for (WaitingSlot& each : slots)
    each.result.set_exception(std::make_exception_ptr(Refusal(Cause::unavailable, why)));
  publish();
  if (options_.state.empty()) return;
  while (save_one()) {
  }
}

}  // namespace mica::serve
