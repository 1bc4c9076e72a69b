// SPDX-License-Identifier: Apache-2.0
//
// Plans asked backwards: the longest context that a budget allows. Every answer is a plan that was made, so
// it holds.
#pragma once

#include "mica/kv/spilled.hpp"
#include "mica/paging/streamed.hpp"
#include "mica/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mica::plan {

/// Contexts are tried in steps of one KV tile, and above this many tokens answered in steps of 256.
inline constexpr std::size_t round_from_tokens = 4096;

/// The largest n_ctx, below `most`, whose plan stays within the budget; 0 when none does.
/// Cost: log2(most) dry runs, each linear in its context. Raises what make_plan() raises.
template <class Families = arch::All>
[[nodiscard]] std::size_t longest_context(const gguf::Document& document, Question question, std::size_t most,
                                          std::uint64_t budget_bytes) {
  constexpr std::size_t grain = format::tile_tokens;
  const auto fits = [&](std::size_t n_ctx) {
    question.model.n_ctx = n_ctx;
    question.tokens = 0;
    const Plan plan = make_plan<Families>(document, question);
    question.tokenizer_bytes = plan.accounts[budget::Account::tokenizer];
    return plan.peak_bytes <= budget_bytes;
  };
  std::size_t low = 0;                            // fits, or is 0
  std::size_t high = (most + grain - 1) / grain;  // is not asked for
  while (high > low + 1) {
    const std::size_t middle = low + (high - low) / 2;
    (fits(middle * grain) ? low : high) = middle;
  }
  const std::size_t n = low * grain;
  return n >= round_from_tokens ? n / 256 * 256 : n;
}

/// Gives streamed weights what a budget leaves beside everything else; does nothing where weights are not streamed, or have been given
/// bytes already. Cost: a plan.
template <class Families = arch::All>
void give_weights_room(const gguf::Document& document, Question& question, std::uint64_t budget_bytes) {
  using budget::Account;
  model::Choice& choice = question.choice;
  if (choice.weights != paging::Streamed<>::name || choice.weights_bytes != 0) return;
  const Plan least = make_plan<Families>(document, question);
  question.tokenizer_bytes = least.accounts[Account::tokenizer];
  std::uint64_t weights = least.accounts[Account::weights];
  if (choice.kv != kv::Spilled<>::name) weights += least.accounts[Account::io_buffers];  // the ring
  const std::uint64_t others = least.peak_bytes - std::min(least.peak_bytes, weights);
  choice.weights_bytes = std::max<std::uint64_t>(budget_bytes - std::min(budget_bytes, others), 1);
}

}  // namespace mica::plan
