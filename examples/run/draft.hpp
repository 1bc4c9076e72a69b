// SPDX-License-Identifier: Apache-2.0
//
// The model of --draft: a small one in memory that drafts tokens of a large one.
#pragma once

#include "answer_options.hpp"
#include "mica/runtime/model_drafter.hpp"
#include "mica/runtime/open.hpp"

#include <cstdint>

namespace mica::program {

class Draft {
 public:
  /// Opens it. Raises as open(), and ErrorCode::usage if its vocabulary is not that of the model that it
  /// drafts for.
  Draft(const AnswerVerb& verb, const Model& target);

  [[nodiscard]] ModelDrafter<AnyModel>& drafter() noexcept { return drafter_; }

 private:
  Model model_;
  ModelDrafter<AnyModel> drafter_;
};

/// The bytes that it takes of the budget.
[[nodiscard]] std::uint64_t draft_bytes(const AnswerVerb& verb);

}  // namespace mica::program
