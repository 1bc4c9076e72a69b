// SPDX-License-Identifier: Apache-2.0
//
// The options of open().
#pragma once

#include "mica/base/log.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/budget/limits.hpp"
#include "mica/exec/observed.hpp"
#include "mica/model/choice.hpp"
#include "mica/paging/load_progress.hpp"
#include "mica/plan/detail/sequences.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace mica {

class MemoryWatch;  // runtime/memory_watch.hpp

struct OpenOptions {
  std::size_t n_ctx = 0;        // tokens; 0: what the model was trained for
  std::size_t chunk = 512;      // tokens of one step at most; 0 counts as 1
  std::size_t logits_rows = 1;  // rows of logits computed at a time; 0 counts as 1
  bool drafts = false;      // answers will have drafts: a recurrent state is kept twice, to take them back
  bool mtp = false;         // with the head for multi-token prediction that the file has (Model::mtp_head())
  std::size_t threads = 0;  // 0: the cores of the affinity mask and the CPU quota
  /// The budget. If limits of the process or the machine leave less, the smaller number counts, with a
  /// warning; empty: the bytes that they leave.
  std::optional<std::uint64_t> memory_bytes = {};
  std::optional<budget::MemoryLimits> limits = {};  // read before; empty: read when the model is opened
  /// A ledger that several models share, in place of one of their own with the budget above.
  std::shared_ptr<budget::Ledger> ledger = {};
  plan::Sequences sequences = {};  // open sessions: streamed weights leave memory for all their contexts
  model::Choice choice = {};       // KV storage and elements, eviction, weights, ranks
  /// With several ranks: this is rank 0 and the only one whose model is used; the others are in follow()
  /// (runtime/leader.hpp). Null: all ranks call the same. Outlives the model.
  ranks::AnyLink* leads = nullptr;
  std::shared_ptr<exec::RunObserver> runs = {};  // observes the runs of the threads, as pace::Pacer does
  /// Frees weights while the model is loaded and while its steps run (runtime/memory_watch.hpp).
  std::shared_ptr<MemoryWatch> watch = {};
  LogSink log = {};            // its context outlives the model
  LoadProgress progress = {};  // called while weights are read, by open() alone
};

}  // namespace mica
