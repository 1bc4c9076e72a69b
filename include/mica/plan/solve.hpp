// SPDX-License-Identifier: Apache-2.0
//
// The inverse of a plan: the longest context that a budget allows, and all solutions within it. Every answer
// is a plan that was made, so it is exact.
#pragma once

#include "mica/kv/spilled.hpp"
#include "mica/paging/resident.hpp"
#include "mica/paging/streamed.hpp"
#include "mica/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace mica::plan {

/// Contexts are tried in steps of one KV tile, and above this number of tokens the answer is a multiple of
/// 256.
inline constexpr std::size_t round_from_tokens = 4096;

/// The largest n_ctx, below `max`, whose plan stays within the budget; 0 when none does.
/// Cost: log2(max) dry runs, each linear in its context. Raises what make_plan() raises.
template <class Families = arch::All, class Formats = format::All>
[[nodiscard]] std::size_t longest_context(const gguf::Document& document, Question question, std::size_t max,
                                          std::uint64_t budget_bytes) {
  constexpr std::size_t grain = format::tile_tokens;
  const auto fits = [&](std::size_t n_ctx) {
    question.model.n_ctx = n_ctx;
    question.tokens = 0;
    const Plan plan = make_plan<Families, Formats>(document, question);
    question.tokenizer_bytes = plan.accounts[budget::Account::tokenizer];
    return plan.peak_bytes <= budget_bytes;
  };
  std::size_t low = 0;                           // fits, or is 0
  std::size_t high = (max + grain - 1) / grain;  // is not tried
  while (high > low + 1) {
    const std::size_t middle = low + (high - low) / 2;
    (fits(middle * grain) ? low : high) = middle;
  }
  const std::size_t n = low * grain;
  return n >= round_from_tokens ? n / 256 * 256 : n;
}

/// Gives streamed weights the bytes that a budget leaves beside everything else; does nothing where weights
/// are not streamed, or where their bytes are set already. Cost: two plans.
template <class Families = arch::All, class Formats = format::All>
void fill_weight_capacity(const gguf::Document& document, Question& question, std::uint64_t budget_bytes) {
  using budget::Account;
  model::Choice& choice = question.choice;
  if (choice.weights != paging::Choice::streamed || choice.weights_bytes != 0) return;
  const Plan smallest = make_plan<Families, Formats>(document, question);
  question.tokenizer_bytes = smallest.accounts[Account::tokenizer];
  std::uint64_t weights = smallest.accounts[Account::weights];
  if (choice.kv != kv::Choice::spilled) weights += smallest.accounts[Account::io_buffers];  // the ring
  const std::uint64_t others = smallest.peak_bytes - std::min(smallest.peak_bytes, weights);
  choice.weights_bytes = std::max<std::uint64_t>(budget_bytes - std::min(budget_bytes, others), 1);
  // Where all weights stay there is no ring, and they are loaded through other memory.
  const std::uint64_t peak = make_plan<Families, Formats>(document, question).peak_bytes;
  if (peak > budget_bytes)
    choice.weights_bytes -= std::min(choice.weights_bytes - 1, peak - budget_bytes);
}

/// One way to run a document within a budget.
struct Solution {
  kv::Element element;    // of keys and values
  bool streamed = false;  // weights that do not fit
  std::size_t n_ctx = 0;  // tokens of the longest context that fits; 0: none fits
  Plan plan;              // with that context, or with the shortest one where none fits
};

/// The elements of solutions, the most exact first: docs/kv.md has their cost in quality.
inline constexpr kv::Element solution_elements[] = {kv::Element::f16, kv::Element::q8_0, kv::Element::q4_0};

/// All solutions, the best first: those with weights in memory, which are fastest, then those that stream
/// them, and among these, more bits of keys and values before fewer. Each with the longest context up to
/// `max` tokens. Cost: log2(max) dry runs for each.
template <class Families = arch::All, class Formats = format::All>
[[nodiscard]] std::vector<Solution> solutions(const gguf::Document& document, Question question,
                                              std::size_t max, std::uint64_t budget_bytes) {
  std::vector<Solution> solutions;
  for (const bool streamed : {false, true}) {
    question.choice.weights = streamed ? paging::Choice::streamed : paging::Choice::resident;
    for (std::size_t i = 0; i < std::size(solution_elements); ++i) {
      if (streamed && solutions[i].n_ctx >= max / format::tile_tokens * format::tile_tokens)
        continue;  // nothing to gain
      question.choice.cache_type_k = question.choice.cache_type_v = solution_elements[i];
      question.choice.weights_bytes = streamed ? 1 : 0;  // the minimum, so that the context has the maximum
      const std::size_t n_ctx = longest_context<Families, Formats>(document, question, max + 1, budget_bytes);
      Question longest = question;
      longest.model.n_ctx = n_ctx == 0 ? std::min(max, std::size_t{format::tile_tokens}) : n_ctx;
      longest.choice.weights_bytes = 0;
      fill_weight_capacity<Families, Formats>(document, longest, budget_bytes);
      solutions.push_back(
          {solution_elements[i], streamed, n_ctx, make_plan<Families, Formats>(document, longest)});
      question.tokenizer_bytes = solutions.back().plan.accounts[budget::Account::tokenizer];
    }
  }
  return solutions;
}

}  // namespace mica::plan
