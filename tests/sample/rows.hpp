// SPDX-License-Identifier: Apache-2.0
//
// Rows of logits and sets of candidates that several tests need.

#pragma once

#include "mica/base/rng.hpp"
#include "mica/sample/candidates.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mica::test {

/// Candidates with their storage, filled from a row.
class Row {
 public:
  explicit Row(const std::vector<float>& logits) : storage_(logits.size()), candidates_(storage_) {
    REQUIRE(candidates_.fill(logits));
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  sample::Candidates& operator*() { return candidates_; }
  sample::Candidates* operator->() { return &candidates_; }

  std::vector<sample::TokenId> ids() const {
    std::vector<sample::TokenId> out;
    for (const auto& candidate : candidates_.span()) out.push_back(candidate.id);
    return out;
  }
  std::vector<float> values() const {
    std::vector<float> out;
    for (const auto& candidate : candidates_.span()) out.push_back(candidate.logit);
    return out;
  }

 private:
  std::vector<sample::Candidate> storage_;
  sample::Candidates candidates_;
};

/// `n` logits between -8 and 8, many of them equal.
inline std::vector<float> coarse_logits(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& logit : out) logit = static_cast<float>(static_cast<int>(rng.uniform() * 64.0) - 32) / 4.0f;
  return out;
}

/// `n` logits between -8 and 8.
inline std::vector<float> smooth_logits(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& logit : out) logit = static_cast<float>(rng.uniform() * 16.0 - 8.0);
  return out;
}

/// The probabilities of a row, by id.
inline std::vector<double> probabilities(std::span<const float> logits) {
  double max = -INFINITY;
  for (const float logit : logits) max = std::fmax(max, static_cast<double>(logit));
  std::vector<double> out;
  double sum = 0.0;
  for (const float logit : logits) out.push_back(std::exp(static_cast<double>(logit) - max));
  for (const double weight : out) sum += weight;
  for (double& p : out) p /= sum;
  return out;
}

}  // namespace mica::test
