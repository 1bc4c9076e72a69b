// SPDX-License-Identifier: Apache-2.0
//
// How the models of a server share one ledger: what their answers have and will need, what can be freed for a
// model or an answer, and the process itself. Not here: which model is loaded when (scheduler.hpp).
#pragma once

#include "mica/alloc/booking.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/base/bits.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/serve/engine.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::serve {

/// A model that can be asked for.
struct ModelEntry {
  ModelCard card;  // as it is known without loading
  // Under the mutex
  std::shared_ptr<LoadedModel> loaded = {};       // empty: not loaded
  bool wanted = false;                            // some thread or job waits for it
  std::size_t waiters = 0;                        // threads in model()
  bool unwanted = false;                          // to be unloaded when its answers have ended
  std::optional<Refusal> refusal = {};            // of the last load; until it is wanted again
  std::optional<std::chrono::seconds> keep = {};  // time without answers until it is unloaded; empty: any
  bool renewed = false;                           // its time begins anew
  std::uint64_t memory_bytes = 0;                 // of the model without answers
  std::optional<std::int64_t> idle_since = {};    // seconds since 1970; empty: it has answers
  std::uint64_t capacity = 0;                     // bytes for answers where no other model is loaded
  // Of the scheduler's thread
  std::unique_ptr<Engine> engine = {};              // empty: not loaded
  std::uint64_t bytes = 0;                          // of a load; 0: not planned yet
  std::chrono::steady_clock::time_point used = {};  // by its last answer
};

/// All members: the thread of the scheduler.
class ModelMemory {
 public:
  using Entries = std::vector<std::unique_ptr<ModelEntry>>;  ///< all models, loaded or not
  using Unload = std::function<bool(ModelEntry&)>;           ///< false: it cannot be unloaded now

  /// All of them outlive it. Books SchedulerOptions::process_bytes; raises ErrorCode::budget.
  ModelMemory(const Entries& entries, budget::Ledger& ledger, const SchedulerOptions& options, Unload unload);

  /// Whether any answer runs.
  [[nodiscard]] bool busy() const noexcept;
  /// Bytes that running answers will still allocate.
  [[nodiscard]] std::uint64_t reserved() const noexcept;
  /// Bytes of keys, values and states that only prefixes have: those of running answers are not among them.
  [[nodiscard]] std::uint64_t prefix_bytes() const noexcept;
  /// Bytes that can be freed for an answer of `entry`: prefixes, other models without answers, measured ones.
  [[nodiscard]] std::uint64_t freeable(const ModelEntry& entry) const noexcept;
  /// Drops a prefix of the model that was used least recently of those that have one; false: there is none.
  bool drop_prefix() noexcept;
  /// Whether there is time to save a prefix of so many bytes before it is freed.
  using HasTime = std::function<bool(std::uint64_t bytes)>;
  /// Frees memory for other processes until `bytes` are free: prefixes as drop_prefix() chooses them, then
  /// models without answers that were not used for a second. Prefixes are saved first if there is a folder,
  /// and time. Returns the bytes that were freed.
  std::uint64_t release(std::uint64_t bytes, const HasTime& has_time);
  /// Frees all prefixes, and all models that have no answers; they are saved as by release(). False: some
  /// thread makes a job for a model, which stays for now.
  [[nodiscard]] bool release_all(const HasTime& has_time);
  /// Frees memory for a model that is to be loaded: models without answers, the least recently used first,
  /// then prefixes. False: that was not enough.
  [[nodiscard]] bool free_for_model(const ModelEntry& wanted);
  /// Frees memory until `bytes` are left for an answer of `entry`: prefixes first, then other models without
  /// answers; both from the model that was used least recently. Frees nothing if all of them are not enough.
  /// False: nothing was freed, or less than that.
  [[nodiscard]] bool free_for_answer(const ModelEntry& entry, std::uint64_t bytes);
  /// Books what was measured. Running answers keep what they have reserved, and no prefix is dropped in vain:
  /// where all of them are not enough, what is left is booked.
  void book_process();

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::uint64_t unbooked() const;
  template <class Enough>
  bool unload_until(Enough&& enough, const ModelEntry* kept, std::chrono::milliseconds idle_time = {});
  bool release_measured();
  [[nodiscard]] ModelEntry* oldest_with_prefix() const noexcept;
  bool park_prefix(const HasTime& has_time);

  const Entries& entries_;
  budget::Ledger& ledger_;
  const SchedulerOptions& options_;
  Unload unload_;
  alloc::Booking process_;
  Clock::time_point measured_at_ = {};
  Clock::time_point released_at_ = {};
};

inline ModelMemory::ModelMemory(const Entries& entries, budget::Ledger& ledger,
                                const SchedulerOptions& options, Unload unload)
    : entries_(entries), ledger_(ledger), options_(options), unload_(std::move(unload)) {
  constexpr auto account = budget::Account::process;
  const std::uint64_t bytes = options_.process_bytes;
  auto process = alloc::Booking::make(alloc::Budgeted<alloc::Huge>(ledger_, account), account, bytes);
  MICA_CHECK(process, budget, "the server itself needs ", budget::size_text(bytes), ", the budget is ",
             budget::size_text(ledger_.limit()), options_.memory_hint.empty() ? "" : "; ",
             options_.memory_hint);
  process_ = *std::move(process);
}

inline bool ModelMemory::busy() const noexcept {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry->engine && entry->engine->busy(); });
}

inline std::uint64_t ModelMemory::reserved() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& entry : entries_) bytes += entry->engine ? entry->engine->reserved() : 0;
  return bytes;
}

inline std::uint64_t ModelMemory::prefix_bytes() const noexcept {
  using budget::Account;
  std::uint64_t all = 0, held = 0;
  for (const Account account : {Account::kv, Account::state, Account::checkpoints})
    all += ledger_.used(account);
  for (const auto& entry : entries_) held += entry->engine ? entry->engine->held() : 0;
  return all - std::min(all, held);
}

inline ModelEntry* ModelMemory::oldest_with_prefix() const noexcept {
  ModelEntry* oldest = nullptr;
  for (const auto& entry : entries_) {
    if (!entry->engine || entry->engine->prefixes() == 0) continue;
    if (oldest == nullptr || entry->used < oldest->used) oldest = entry.get();
  }
  return oldest;
}

inline bool ModelMemory::drop_prefix() noexcept {
  ModelEntry* const oldest = oldest_with_prefix();
  return oldest != nullptr && oldest->engine->drop_prefix();
}

/// As drop_prefix(), and saves it where a folder does not have it and there is time.
inline bool ModelMemory::park_prefix(const HasTime& has_time) {
  ModelEntry* const oldest = oldest_with_prefix();
  if (oldest == nullptr) return false;
  if (options_.state.empty() || !has_time(oldest->engine->oldest_prefix_bytes()))
    return oldest->engine->drop_prefix();
  std::string error;
  const bool dropped = oldest->engine->park_prefix(error);
  if (!error.empty())
    options_.log(LogLevel::warning, join(oldest->card.id, ": prefixes are not saved: ", error));
  return dropped;
}

inline std::uint64_t ModelMemory::release(std::uint64_t bytes, const HasTime& has_time) {
  constexpr std::chrono::seconds unused(1);
  const std::uint64_t before = ledger_.used();
  const auto freed = [&] { return before - std::min(before, ledger_.used()); };
  while (freed() < bytes && park_prefix(has_time)) {
  }
  static_cast<void>(unload_until([&] { return freed() >= bytes; }, nullptr, unused));
  return freed();
}

inline bool ModelMemory::release_all(const HasTime& has_time) {
  while (park_prefix(has_time)) {
  }
  static_cast<void>(unload_until([] { return false; }, nullptr));
  return std::none_of(entries_.begin(), entries_.end(),
                      [](const auto& entry) { return entry->engine != nullptr; });
}

/// Unloads models that had no answers for a time, but not `kept`, the least recently used first. False:
/// none was unloaded.
template <class Enough>
bool ModelMemory::unload_until(Enough&& enough, const ModelEntry* kept, std::chrono::milliseconds idle_time) {
  std::vector<ModelEntry*> idle;
  for (const auto& each : entries_) {
    const bool can = each->engine && each.get() != kept && !each->engine->busy();
    if (can && Clock::now() - each->used >= idle_time) idle.push_back(each.get());
  }
  std::sort(idle.begin(), idle.end(),
            [](const ModelEntry* a, const ModelEntry* b) { return a->used < b->used; });
  bool unloaded = false;
  for (ModelEntry* each : idle) {
    if (!enough()) unloaded = unload_(*each) || unloaded;
  }
  return unloaded;
}

inline bool ModelMemory::free_for_model(const ModelEntry& wanted) {
  const auto enough = [&] { return ledger_.left() >= wanted.bytes + reserved(); };
  static_cast<void>(unload_until(enough, nullptr));
  while (!enough() && drop_prefix()) {
  }
  if (!enough()) release_measured();
  return enough();
}

inline std::uint64_t ModelMemory::freeable(const ModelEntry& entry) const noexcept {
  std::uint64_t bytes = prefix_bytes() + (busy() ? 0 : process_.bytes() - options_.process_bytes);
  for (const auto& each : entries_) {
    if (each->engine && each.get() != &entry && !each->engine->busy()) bytes += each->memory_bytes;
  }
  return bytes;
}

inline bool ModelMemory::free_for_answer(const ModelEntry& entry, std::uint64_t bytes) {
  if (ledger_.left() + freeable(entry) < bytes) return false;
  const auto enough = [&] { return ledger_.left() >= bytes; };
  bool freed = false;
  while (!enough() && drop_prefix()) freed = true;
  freed = unload_until(enough, &entry) || freed;
  if (!enough()) freed = release_measured() || freed;
  return freed && enough();
}

/// Bytes of the process that the ledger does not have, in whole MiB, with some for what comes until the next
/// call.
inline std::uint64_t ModelMemory::unbooked() const {
  const std::uint64_t all = options_.resident_bytes() + plan::any_process_bytes / 2;
  const std::uint64_t known = ledger_.used() - process_.bytes() + options_.process_bytes;
  return round_up(all - std::min(all, known), std::uint64_t{1} << 20);
}

inline void ModelMemory::book_process() {
  constexpr std::chrono::milliseconds pause(5);
  constexpr std::chrono::seconds between_releases(1);
  if (!options_.resident_bytes || Clock::now() - measured_at_ < pause) return;
  measured_at_ = Clock::now();
  std::uint64_t more = unbooked();
  const bool much = more > plan::any_process_bytes && measured_at_ - released_at_ > between_releases;
  if (much && options_.release_memory) {
    released_at_ = measured_at_;
    options_.release_memory();
    more = unbooked();
  }
  const auto free = [&] {
    const std::uint64_t left = ledger_.left() + process_.bytes() - options_.process_bytes;
    return left - std::min(left, reserved());
  };
  if (more <= free() + prefix_bytes()) {
    while (more > free() && drop_prefix()) {
    }
  }
  static_cast<void>(process_.resize(options_.process_bytes + std::min(more, free())));
}

/// Where nothing else could be freed and nothing runs: a measured number does not stop the server.
inline bool ModelMemory::release_measured() {
  return !busy() && process_.bytes() > options_.process_bytes && process_.resize(options_.process_bytes);
}

}  // namespace mica::serve
