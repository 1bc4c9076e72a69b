// SPDX-License-Identifier: Apache-2.0
//
// What is reduced when a model does not fit, in this order:
//
//   as requested -> a shorter context -> keys and values in Q8_0 -> streamed weights -> smaller steps
//                -> where numbers may change: a window of tokens -> older tokens in a file -> 4-bit elements
//                -> a very short context
//
// Only choices that were not requested change. Streamed weights are tried with the requested elements again,
// and at each size of a step. Thresholds between the fallbacks are comfortable_tokens and min_tokens.
#pragma once

#include "mica/budget/size.hpp"
#include "mica/gguf/document.hpp"
#include "mica/plan/solve.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::plan {

/// What may change.
struct Adjustable {
  bool context = false;   // its length
  bool elements = false;  // of keys and values
  bool weights = false;   // how they come into memory
  bool chunk = false;     // tokens of a step; each step is a pass over weights that are streamed
  /// What a model computes: tokens between the first ones and a window are evicted, keys and values have 4
  /// bits; and keys and values in a file, which is slow.
  bool numbers = false;
  bool eviction = true, storage = true;  // with `numbers`
};

/// A question that fits, and its plan.
struct Fallback {
  Question question;  // with the changed choices
  Plan plan;          // of this question
};

/// Tokens for which a context is not shortened further to keep keys and values in F16, and for which it is to
/// keep weights in memory.
inline constexpr std::size_t comfortable_tokens = 8192;
inline constexpr std::size_t min_tokens = 2048;
/// Tokens that a window holds, the largest that fits.
inline constexpr std::size_t windows[] = {4096, 2048, 1024, 512};
/// Steps of fewer tokens than this save nothing worth a pass over the weights.
inline constexpr std::size_t min_chunk = 16;

/// The fallbacks of one question, in order.
template <class Families = arch::All, class Formats = format::All>
class Fallbacks {
 public:
  /// The document outlives this. free: the choices that were not requested.
  Fallbacks(gguf::DocumentRef document, Question requested, std::uint64_t budget_bytes, Adjustable free)
      : document_(document), requested_(std::move(requested)), budget_(budget_bytes), free_(free) {}

  /// The first fallback that fits; empty when none does. Raises as make_plan(). Cost: some tens of plans.
  [[nodiscard]] std::optional<Fallback> first_that_fits() {
    if (auto fallback = at(requested_)) return fallback;
    const std::size_t max = n_ctx_;
    if (auto fallback = shorter(requested_, std::min(max, comfortable_tokens), max)) return fallback;
    const Question small = with_small_elements(requested_);
    if (auto fallback = at(small)) return fallback;
    if (auto fallback = shorter(small, std::min(max, min_tokens), max)) return fallback;
    if (!free_.weights) {
      if (auto fallback = degraded(small, requested_.model.chunk, max)) return fallback;
      return shorter(small, format::tile_tokens, max);
    }
    const std::size_t smallest =
        free_.chunk ? std::min(requested_.model.chunk, min_chunk) : requested_.model.chunk;
    std::size_t chunk = requested_.model.chunk;
    for (;; chunk = std::max(chunk / 4, smallest)) {
      for (const Question& question : {requested_, small}) {
        if (auto fallback = streamed(question, chunk, std::min(max, min_tokens), max)) return fallback;
      }
      if (chunk == smallest) break;
    }
    if (auto fallback = degraded(small, chunk, max)) return fallback;
    if (auto fallback = streamed(small, chunk, format::tile_tokens, max)) return fallback;
    return shorter(small, format::tile_tokens,
                   max);  // the ring of a small model takes more than its weights
  }

  /// The fallback that needs the least memory: every free choice has changed. Every budget of its peak or
  /// more has a fallback that fits. Cost: two plans, and six where numbers may change.
  [[nodiscard]] Fallback smallest() {
    Question small = with_small_elements(requested_);
    if (free_.context) small.model.n_ctx = format::tile_tokens;
    Fallback smallest = planned(small);
    const auto offer = [&](Question question) {
      Fallback fallback = planned(std::move(question));
      if (fallback.plan.peak_bytes < smallest.plan.peak_bytes) smallest = std::move(fallback);
    };
    if (free_.weights) {
      small.choice.weights = paging::Choice::streamed;
      if (free_.chunk) small.model.chunk = std::min(small.model.chunk, min_chunk);
      offer(small);
    }
    if (!free_.numbers || free_.context) return smallest;
    for (Question& question : degradations(small, smallest.plan.n_ctx)) offer(std::move(question));
    return smallest;
  }

 private:
  [[nodiscard]] Fallback planned(Question question) {
    question.tokenizer_bytes = requested_.tokenizer_bytes;
    Plan plan = make_plan<Families, Formats>(document_, question);
    requested_.tokenizer_bytes = plan.accounts[budget::Account::tokenizer];
    return {std::move(question), std::move(plan)};
  }
  [[nodiscard]] std::optional<Fallback> at(Question question) {
    fill_weight_capacity<Families, Formats>(document_, question, budget_);
    Fallback fallback = planned(std::move(question));
    n_ctx_ = std::max(n_ctx_, fallback.plan.n_ctx);
    if (fallback.plan.peak_bytes > budget_) return std::nullopt;
    return fallback;
  }
  /// With `smallest` to `max` tokens of context.
  [[nodiscard]] std::optional<Fallback> streamed(Question question, std::size_t chunk, std::size_t smallest,
                                                 std::size_t max) {
    question.choice.weights = paging::Choice::streamed;
    question.model.chunk = chunk;
    if (free_.context) question.model.n_ctx = std::min(max, comfortable_tokens / 2);
    if (auto fallback = at(question)) return fallback;
    return shorter(question, smallest, question.model.n_ctx);
  }
  /// What changes numbers, or is slow, beside what has changed already; in order.
  [[nodiscard]] std::vector<Question> degradations(const Question& question, std::size_t n_ctx) const {
    std::vector<Question> out;
    const auto add_windows = [&](Question with) {
      const auto ages = [](const kv::ElementChoice& element) { return element.recent != element.old; };
      if (!free_.eviction || with.choice.evict.capacity() != 0) return;
      if (ages(with.choice.cache_type_k) || ages(with.choice.cache_type_v)) return;  // these do not evict
      for (const std::size_t tokens : windows) {
        if (tokens >= n_ctx) continue;
        with.choice.evict = kv::SinksAndWindow(tokens);
        out.push_back(with);
      }
    };
    add_windows(question);
    Question filed = question;
    if (free_.storage && filed.choice.kv == kv::Choice::segmented) {
      filed.choice.kv = kv::Choice::spilled;
      out.push_back(std::move(filed));
    }
    if (!free_.elements) return out;
    Question four = question;
    four.choice.cache_type_k = four.choice.cache_type_v = kv::Element::q4_0;
    out.push_back(four);
    add_windows(std::move(four));
    return out;
  }
  [[nodiscard]] std::optional<Fallback> degraded(Question question, std::size_t chunk, std::size_t max) {
    if (!free_.numbers) return std::nullopt;
    if (free_.weights) question.choice.weights = paging::Choice::streamed;
    question.model.chunk = chunk;
    if (free_.context) question.model.n_ctx = std::min(max, comfortable_tokens / 2);
    for (Question& each : degradations(question, std::min(max, question.model.n_ctx))) {
      if (auto fallback = at(std::move(each))) return fallback;
    }
    return std::nullopt;
  }
  /// With the longest context that fits, if that has at least `smallest` tokens.
  [[nodiscard]] std::optional<Fallback> shorter(Question question, std::size_t smallest, std::size_t max) {
    if (!free_.context) return std::nullopt;
    if (question.choice.weights == paging::Choice::streamed) question.choice.weights_bytes = 1;
    const std::size_t n = longest_context<Families, Formats>(document_, question, max, budget_);
    if (n < smallest) return std::nullopt;
    question.model.n_ctx = n;
    question.choice.weights_bytes = requested_.choice.weights_bytes;
    return at(std::move(question));
  }
  [[nodiscard]] Question with_small_elements(Question question) const {
    if (free_.elements) question.choice.cache_type_k = question.choice.cache_type_v = kv::Element::q8_0;
    return question;
  }

  const gguf::Document& document_;
  Question requested_;
  std::uint64_t budget_;
  Adjustable free_;
  std::size_t n_ctx_ = 0;  // the maximum so far
};

/// The differences between a question and a fallback: "4,096 tokens of context, keys and values in Q8_0,
/// weights streamed (3.8 GiB read for each step)"; empty where they are equal. A context that is not given is
/// the trained one.
[[nodiscard]] inline std::string differences(const Question& requested, const Fallback& fallback) {
  std::string text;
  const auto add = [&](std::string part) { text += join(text.empty() ? "" : ", ", part); };
  const model::Choice &before = requested.choice, &now = fallback.question.choice;
  const std::size_t trained = std::min(fallback.plan.config.n_ctx_train, model::max_context);
  const std::size_t context = requested.model.n_ctx == 0 ? trained : requested.model.n_ctx;
  if (requested.model.n_ctx != fallback.question.model.n_ctx && context != fallback.plan.n_ctx)
    add(join(fallback.plan.n_ctx, " tokens of context"));
  if (before.cache_type_k != now.cache_type_k || before.cache_type_v != now.cache_type_v) {
    add(join("keys and values in ", kv::name(now.cache_type_k)));
  }
  if (before.kv != now.kv) add(join("keys and values ", kv::name(now.kv), ": in a file"));
  if (before.evict.capacity() != now.evict.capacity())
    add(join("a window of ", now.evict.capacity(),
             " tokens: the model does not see those between the first ones "
             "and the window"));
  if (before.weights != now.weights) {
    add(join("weights ", paging::name(now.weights), " (", budget::size_text(fallback.plan.streamed_bytes),
             " read for each step)"));
  }
  if (requested.model.chunk != fallback.question.model.chunk) {
    add(join("prompts in steps of ", fallback.question.model.chunk, " tokens"));
  }
  return text;
}

}  // namespace mica::plan
