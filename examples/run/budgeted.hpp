// SPDX-License-Identifier: Apache-2.0
//
// Whether a run fits its budget, and which settings would fit: dry plans, and the sentence of a refusal.
#pragma once

#include "answer_options.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/plan/plan.hpp"
#include "mica/runtime/open.hpp"
#include "mica_tools/fit/fallbacks.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace mica::program {

/// The question that a run with these options asks.
[[nodiscard]] plan::Question question_of(const OpenOptions& open);

/// The plan of the question; shared between verbs so that it is compiled once.
[[nodiscard]] plan::Plan plan_run(const gguf::Document& document, const plan::Question& question);

/// The same; streamed weights have the bytes that the budget leaves (fit::Planner).
[[nodiscard]] plan::Plan plan_within(const gguf::Document& document, plan::Question question,
                                     std::uint64_t budget_bytes);

/// The budget in bytes: the minimum of --memory and the memory that the limits left at the start.
[[nodiscard]] std::uint64_t budget_of(const gguf::Document& document, const OpenOptions& open);

/// The choices that run, chat and complete may change: those that no flag sets.
[[nodiscard]] plan::Adjustable freedom_of(const RunningOptions& options);

/// Whether resident weights are to be opened as streamed ones that are all resident: with a governor they may
/// have to leave memory later. Not if that does not fit. Experts would not be packed then, so a model with
/// experts keeps its choice. The choice of the question is that of the run.
[[nodiscard]] bool weights_may_leave(const AnswerVerb& verb, const gguf::Document& document,
                                     plan::Question question, std::uint64_t budget);

/// "needs ..., budget ... (weights ..., kv ... at N tokens, ...). Fits with -c N .... The minimum is --memory
/// SIZE on, with ..." for a plan above the budget. All accounts are named, and add up to what it needs. free:
/// what may change.
[[nodiscard]] std::string refusal(const gguf::Document& document, const plan::Question& question,
                                  const plan::Plan& plan, std::uint64_t budget, plan::Adjustable free = {});

/// The first fallback that fits; empty if none does.
[[nodiscard]] std::optional<plan::Fallback> fallback_within(const gguf::Document& document,
                                                            const plan::Question& question,
                                                            std::uint64_t budget, plan::Adjustable free);
/// The fallback with the smallest peak.
[[nodiscard]] plan::Fallback smallest_fallback(const gguf::Document& document, const plan::Question& question,
                                               plan::Adjustable free);

/// Changes choices that no flag sets until the model fits: a shorter context, keys and values in Q8_0,
/// streamed weights. A note names the changes. Raises ErrorCode::budget with refusal() if nothing fits.
void make_it_fit(const AnswerVerb& verb, const gguf::Document& document, OpenOptions& open);

/// Raises ErrorCode::budget with refusal().
void refuse_what_does_not_fit(const gguf::Document& document, const OpenOptions& open);

/// A note if a context is longer than that of the training.
void note_long_context(const OutputOptions& output, std::size_t n_ctx, const arch::Config& config);

/// The tokens of a window if no flag sets them: 512, or the trained context if that is shorter.
[[nodiscard]] std::size_t default_window(const gguf::Document& document);

/// "-c 512, which takes 1.5 MiB of keys and values": for a context of `tokens` or more, in whole tiles.
[[nodiscard]] std::string larger_context(const AnswerVerb& verb, const Model& model, std::size_t tokens);

}  // namespace mica::program
