// SPDX-License-Identifier: Apache-2.0
//
// How a server gets its models: the program's options decide on contexts, elements of keys and values, threads.
#pragma once

#include "mica/budget/ledger.hpp"
#include "mica_tools/serve/loaded_model.hpp"

#include <cstdint>
#include <memory>

namespace mica::serve {

/// Both members: the thread of the scheduler; they raise mica::Error.
class Loader {
 public:
  virtual ~Loader() = default;
  /// Bytes to book for the model and one full context: Plan::peak_bytes - plan::any_process_bytes. `budget` is that
  /// of the whole ledger, for plans that are to fit it. answers: SchedulerOptions::parallel.
  [[nodiscard]] virtual std::uint64_t bytes(const ModelCard& card, std::uint64_t budget,
                                            std::size_t answers) = 0;
  /// Opens it with OpenOptions::ledger = ledger, logits_rows = answers and choice.kv = kv::Choice::paged, without
  /// which no prefix is shared. Its SequenceBytes are Plan::sequence_bytes of the same question, with
  /// Question::sequence_bytes set.
  [[nodiscard]] virtual std::shared_ptr<LoadedModel> load(const ModelCard& card,
                                                          const std::shared_ptr<budget::Ledger>& ledger,
                                                          std::size_t answers) = 0;
};

}  // namespace mica::serve
