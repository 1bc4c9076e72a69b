// SPDX-License-Identifier: Apache-2.0
//
// What is reduced when a model does not fit, in this order:
//
//   as requested -> a shorter context -> keys and values in Q8_0 -> streamed weights -> smaller steps
//
// Only choices that were not requested change.
#pragma once

#include "mica/budget/size.hpp"
#include "mica/gguf/document_ref.hpp"
#include "mica/plan/solve.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace mica::plan {

/// What may change.
struct Freedom {
  bool context = false;
  bool elements = false;  // of keys and values
  bool weights = false;   // how they come into memory
  bool chunk = false;     // tokens of a step; each step is a pass over weights that are streamed
};

/// A question that fits, and its plan.
struct Rung {
  Question question;
  Plan plan;
};

/// Tokens for which a context is not shortened further to keep keys and values in F16, and for which it is to
/// keep weights in memory.
inline constexpr std::size_t comfortable_tokens = 8192;
inline constexpr std::size_t least_tokens = 2048;
/// Steps of fewer tokens than this save nothing worth a pass over the weights.
inline constexpr std::size_t least_chunk = 16;

/// The fallbacks of one question, in order.
template <class Families = arch::All, class Formats = format::All>
class Ladder {
 public:
  Ladder(gguf::DocumentRef document, Question asked, std::uint64_t budget_bytes, Freedom free)
      : document_(document), asked_(std::move(asked)), budget_(budget_bytes), free_(free) {}

  /// The first fallback that fits; empty when none does. Raises as make_plan(). Cost: some tens of plans.
  [[nodiscard]] std::optional<Rung> first_that_fits() {
    if (auto rung = at(asked_)) return rung;
    const std::size_t most = n_ctx_;
    if (auto rung = shorter(asked_, std::min(most, comfortable_tokens), most)) return rung;
    const Question small = with_small_elements(asked_);
    if (auto rung = at(small)) return rung;
    if (auto rung = shorter(small, std::min(most, least_tokens), most)) return rung;
    if (!free_.weights) return shorter(small, format::tile_tokens, most);
    const std::size_t least = free_.chunk ? std::min(asked_.model.chunk, least_chunk) : asked_.model.chunk;
    std::size_t chunk = asked_.model.chunk;
    for (;; chunk = std::max(chunk / 4, least)) {
      for (const Question& question : {asked_, small}) {
        if (auto rung = streamed(question, chunk, std::min(most, least_tokens), most)) return rung;
      }
      if (chunk == least) break;
    }
    if (auto rung = streamed(small, chunk, format::tile_tokens, most)) return rung;
    return shorter(small, format::tile_tokens,
                   most);  // the ring of a small model takes more than its weights
  }

  /// The fallback that needs the least memory: every free choice has changed. Every budget of its peak or
  /// more has a fallback that fits. Cost: two plans.
  [[nodiscard]] Rung least() {
    Question small = with_small_elements(asked_);
    if (free_.context) small.model.n_ctx = format::tile_tokens;
    Rung least = planned(small);
    if (!free_.weights) return least;
    small.choice.weights = paging::Choice::streamed;
    if (free_.chunk) small.model.chunk = std::min(small.model.chunk, least_chunk);
    Rung streamed = planned(std::move(small));
    return streamed.plan.peak_bytes < least.plan.peak_bytes ? std::move(streamed) : std::move(least);
  }

 private:
  [[nodiscard]] Rung planned(Question question) {
    question.tokenizer_bytes = asked_.tokenizer_bytes;
    Plan plan = make_plan<Families, Formats>(document_, question);
    asked_.tokenizer_bytes = plan.accounts[budget::Account::tokenizer];
    return {std::move(question), std::move(plan)};
  }
  [[nodiscard]] std::optional<Rung> at(Question question) {
    give_weights_room<Families, Formats>(document_, question, budget_);
    Rung rung = planned(std::move(question));
    n_ctx_ = std::max(n_ctx_, rung.plan.n_ctx);
    if (rung.plan.peak_bytes > budget_) return std::nullopt;
    return rung;
  }
  /// With at least `least` and at most `most` tokens of context.
  [[nodiscard]] std::optional<Rung> streamed(Question question, std::size_t chunk, std::size_t least,
                                             std::size_t most) {
    question.choice.weights = paging::Choice::streamed;
    question.model.chunk = chunk;
    if (free_.context) question.model.n_ctx = std::min(most, comfortable_tokens / 2);
    if (auto rung = at(question)) return rung;
    return shorter(question, least, question.model.n_ctx);
  }
  /// With the longest context that fits, if that has at least `least` tokens.
  [[nodiscard]] std::optional<Rung> shorter(Question question, std::size_t least, std::size_t most) {
    if (!free_.context) return std::nullopt;
    if (question.choice.weights == paging::Choice::streamed) question.choice.weights_bytes = 1;
    const std::size_t n = longest_context<Families, Formats>(document_, question, most, budget_);
    if (n < least) return std::nullopt;
    question.model.n_ctx = n;
    question.choice.weights_bytes = asked_.choice.weights_bytes;
    return at(std::move(question));
  }
  [[nodiscard]] Question with_small_elements(Question question) const {
    if (free_.elements) question.choice.cache_type_k = question.choice.cache_type_v = format::Q8_0::name;
    return question;
  }

  const gguf::Document& document_;
  Question asked_;
  std::uint64_t budget_;
  Freedom free_;
  std::size_t n_ctx_ = 0;  // the maximum so far
};

/// The differences between a question and a fallback: "4,096 tokens of context, keys and values in Q8_0,
/// weights streamed (3.8 GiB read for each step)"; empty where they are equal.
[[nodiscard]] inline std::string concessions(const Question& asked, const Rung& rung) {
  std::string text;
  const auto add = [&](std::string part) { text += join(text.empty() ? "" : ", ", part); };
  const model::Choice &before = asked.choice, &now = rung.question.choice;
  if (asked.model.n_ctx != rung.question.model.n_ctx) add(join(rung.plan.n_ctx, " tokens of context"));
  if (before.cache_type_k != now.cache_type_k || before.cache_type_v != now.cache_type_v) {
    add(join("keys and values in ", now.cache_type_k));
  }
  if (before.weights != now.weights) {
    add(join("weights ", paging::name(now.weights), " (", budget::size_text(rung.plan.streamed_bytes),
             " read for each step)"));
  }
  if (asked.model.chunk != rung.question.model.chunk) {
    add(join("prompts in steps of ", rung.question.model.chunk, " tokens"));
  }
  return text;
}

}  // namespace mica::plan
