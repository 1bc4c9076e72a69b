// SPDX-License-Identifier: Apache-2.0
//
// The model of --draft: a small one in memory that drafts tokens of a large one, and with --draft-answers
// answers by itself.
#pragma once

#include "answer_options.hpp"
#include "mica/runtime/model_drafter.hpp"
#include "mica/runtime/open.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace mica::program {

class Draft {
 public:
  /// Opens it. Raises as open(), and ErrorCode::usage if its vocabulary is not that of the model that it
  /// drafts for.
  Draft(const AnswerVerb& verb, Model& target);

  [[nodiscard]] Model& model() noexcept { return model_; }
  [[nodiscard]] ModelDrafter<AnyModel>& drafter() noexcept { return drafter_; }

 private:
  Model model_;
  ModelDrafter<AnyModel> drafter_;
};

/// The model of --draft; null without one.
[[nodiscard]] std::unique_ptr<Draft> open_draft(const AnswerVerb& verb, Model& target);

/// The error where there is one question alone.
inline constexpr std::string_view draft_answers_needs_chat =
    "--draft-answers needs a chat, with a question for each answer; -m FILE asks one model alone";

/// Its tokens of context, at most those of the model that it drafts for: -c, or 4,096 and no more than what
/// that model was trained for.
[[nodiscard]] std::size_t draft_context(const AnswerVerb& verb, std::size_t trained);
/// The bytes of its plan with that context.
[[nodiscard]] std::uint64_t draft_bytes(const AnswerVerb& verb, std::size_t n_ctx);

}  // namespace mica::program
