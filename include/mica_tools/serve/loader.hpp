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
  /// Bytes of the ledger that the loaded model takes with one full context, without those that any process has:
  /// from its plan. `budget` is that of the whole ledger.
  [[nodiscard]] virtual std::uint64_t bytes(const ModelCard& card, std::uint64_t budget) = 0;
  /// Opens it in this ledger, with rows of logits for as many answers.
  [[nodiscard]] virtual std::shared_ptr<LoadedModel> load(const ModelCard& card,
                                                          const std::shared_ptr<budget::Ledger>& ledger,
                                                          std::size_t answers) = 0;
};

}  // namespace mica::serve
