// SPDX-License-Identifier: Apache-2.0
//
// What routes need of a server: models by name, answers to jobs, and numbers about both. Scheduler is the one
// implementation; tests of routes have another.
#pragma once

#include "mica/budget/account.hpp"
#include "mica_tools/serve/answer.hpp"
#include "mica_tools/serve/job.hpp"
#include "mica_tools/serve/metrics.hpp"
#include "mica_tools/serve/refusal.hpp"
#include "mica_tools/serve/served_model.hpp"
#include "mica_tools/serve/slot_task.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::serve {

/// A running or waiting answer, for /slots and the page.
struct AnswerState {
  std::uint64_t id = 0;           // of its job
  std::string model;              // its name
  std::size_t prompt_tokens = 0;  // in all
  std::size_t read_tokens = 0;    // of the prompt, cached ones included
  std::size_t cached_tokens = 0;  // first ones of the prompt that were not computed
  std::size_t answer_tokens = 0;  // so far
  std::size_t max_tokens = 0;     // of the answer; while it waits, that of its job
  std::uint64_t bytes = 0;  // of its keys, values and states at its end, shared ones included; waiting: 0
  bool running = false;     // false: in the queue
  std::optional<std::size_t> slot = {};  // Job::slot
};

/// Everything that is going on, at one moment.
struct Snapshot {
  std::uint64_t budget_bytes = 0;         // of the ledger
  std::uint64_t used_bytes = 0;           // booked now
  std::uint64_t peak_bytes = 0;           // the most that was booked
  budget::Accounts accounts = {};         // used bytes by account
  std::uint64_t reserved_bytes = 0;       // that running answers will still need
  std::uint64_t shared_bytes = 0;         // of pages that only the prefix cache has
  std::uint64_t disk_read_bytes = 0;      // of streamed weights
  std::size_t prefixes = 0;               // nodes of the prefix caches
  std::vector<AnswerState> answers = {};  // running ones first, then those in the queue
  Metrics metrics = {};                   // since the start
};

/// All members: any thread.
class Service {
 public:
  virtual ~Service() = default;

  /// All models that can be asked for, the default one first.
  [[nodiscard]] virtual std::vector<ModelCard> models() const = 0;
  /// The model of that name, loaded; an empty name is the default one. Waits until it is loaded, which may
  /// mean waiting for the answers of another model to end; open: whether the client still waits, empty where
  /// that is not known. A model stays in memory while the result is kept: give it up, or move it into a job,
  /// before you wait for an answer or another model. Raises Refusal: not_found, too_large, unavailable,
  /// failed.
  [[nodiscard]] virtual std::shared_ptr<const ServedModel> model(std::string_view name,
                                                                 const std::function<bool()>& open = {}) = 0;
  /// Unloads a model once its answers have ended; false: it was not loaded. Raises not_found.
  virtual bool unload(std::string_view name) = 0;
  /// How long a model stays in memory after its last answer; empty: until memory is needed.
  virtual void keep_alive(std::string_view name, std::optional<std::chrono::seconds> time) = 0;
  /// Puts a job into the queue, which all models share. The answer runs to its end even if nobody reads its
  /// events; Answer::cancel() ends it. Raises Refusal: too_long, too_large, busy, unavailable, not_found;
  /// option for a prompt of a text encoder; invalid for a prompt without tokens, a slot that does not exist,
  /// options of the sampler that are out of range, and texts that the model cannot embed so.
  [[nodiscard]] virtual std::shared_ptr<Answer> submit(Job job) = 0;
  /// Saves, restores or erases a slot, and waits until that is done, between two steps. A file is whole or
  /// not there. Raises Refusal: unsupported without a folder of slots; invalid for other numbers and names, a
  /// slot without tokens in the prefix cache, a file that is missing, damaged or of another model; too_large;
  /// failed; unavailable.
  virtual SlotResult slot(SlotTask task) = 0;
  /// What is going on: at most 25 ms old, or as old as the step, load or save that runs. Where nothing runs:
  /// at most 500 ms.
  [[nodiscard]] virtual Snapshot snapshot() const = 0;
};

}  // namespace mica::serve
