// SPDX-License-Identifier: Apache-2.0
//
// The stages of a chain: those that narrow the candidates, the temperature, and those that choose one.
// Penalties, which depend on the text, are in penalties.hpp.
#pragma once

#include "mica/base/error.hpp"
#include "mica/base/rng.hpp"
#include "mica/sample/concept.hpp"
#include "mica/sample/detail/range.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::sample {

/// Keeps the k best candidates, in order; 0 keeps all.
class TopK : public Memoryless {
 public:
  /// k >= 0, else raises.
  explicit TopK(std::int64_t k) : k_(static_cast<std::size_t>(k)) {
    if (k < 0) raise(ErrorCode::usage, "top-k: found ", k, ", allowed 0 (keeps all) or more");
  }

  [[nodiscard]] std::size_t k() const noexcept { return k_; }

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (k_ != 0) candidates.keep_best(k_);
  }

 private:
  std::size_t k_;
};
static_assert(SamplerStage<TopK>);

/// The nucleus (Holtzman et al., ICLR 2020): keeps the best candidates, in order, until their probabilities
/// add up to p; at least one. 1 keeps all.
class TopP : public Memoryless {
 public:
  /// 0 <= p <= 1, else raises.
  explicit TopP(float p) : p_(detail::in_range("top-p", p, 0.0f, 1.0f)) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (p_ >= 1.0f) return;
    candidates.softmax();
    double sum = 0.0;
    std::size_t n = 0;
    // Sorted in growing stretches: the nucleus of a large vocabulary is usually small.
    for (std::size_t stretch = 64; n < candidates.size(); stretch *= 4) {
      const std::size_t end = std::min(stretch, candidates.size());
      candidates.sort_best(end);
      while (n < end) {
        sum += static_cast<double>(candidates[n].p);
        ++n;
        if (sum >= static_cast<double>(p_)) return candidates.keep_front(n);
      }
    }
  }

 private:
  float p_;
};
static_assert(SamplerStage<TopP>);

/// Drops candidates less than `p` times as probable as the best: few remain where the model is certain, many
/// where it is not. 0 drops none.
class MinP : public Memoryless {
 public:
  /// 0 <= p <= 1, else raises.
  explicit MinP(float p)
      : p_(detail::in_range("min-p", p, 0.0f, 1.0f)), log_p_(std::log(static_cast<double>(p))) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (p_ == 0.0f) return;
    const double floor = static_cast<double>(candidates[candidates.best()].logit) + log_p_;
    candidates.keep_if(
        [floor](const Candidate& candidate) { return static_cast<double>(candidate.logit) >= floor; });
  }

 private:
  float p_;
  double log_p_;
};
static_assert(SamplerStage<MinP>);

/// Divides every logit by the temperature, after moving the best one to zero so that nothing overflows. Below
/// 1 likely tokens become likelier, above 1 probabilities become more equal.
class Temperature : public Memoryless {
 public:
  static constexpr float min = 1e-6f;
  static constexpr float max = 1e6f;

  /// min <= temperature <= max, else raises. Zero has no quotient: it is the stage Greedy.
  explicit Temperature(float temperature)
      : temperature_(
            detail::in_range("temperature", temperature, min, max, ", or 0 for always the best token")) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (temperature_ == 1.0f) return;
    const float top = candidates[candidates.best()].logit;
    for (Candidate& candidate : candidates.span()) candidate.logit = (candidate.logit - top) / temperature_;
    // Logits that differed may have become equal, and equal ones stand by id.
    candidates.forget_order();
  }

 private:
  float temperature_;
};
static_assert(SamplerStage<Temperature>);

/// Chooses the candidate with the largest logit, of equal ones the lowest id.
class Greedy : public Memoryless {
 public:
  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept { candidates.choose(candidates.best()); }
};
static_assert(SamplerStage<Greedy>);

/// Chooses a candidate with its probability. One random number is drawn per token, needed or not, so that the
/// n-th token of a seed has the n-th number for any candidates.
class Dist : public Memoryless {
 public:
  explicit Dist(CounterRng rng) noexcept : rng_(rng) {}
  explicit Dist(std::uint64_t seed) noexcept : Dist(CounterRng(seed)) {}

  [[nodiscard]] const CounterRng& rng() const noexcept { return rng_; }

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    const double drawn = rng_.uniform();
    candidates.softmax();
    double all = 0.0;
    for (const Candidate& candidate : candidates.span()) all += static_cast<double>(candidate.p);
    // p is rounded to float, so the sum is only about one; the last that is possible takes what rounding
    // leaves over.
    double sum = 0.0;
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].p == 0.0f) continue;
      chosen = i;
      sum += static_cast<double>(candidates[i].p);
      if (sum > drawn * all) break;
    }
    candidates.choose(chosen);
  }

 private:
  CounterRng rng_;
};
static_assert(SamplerStage<Dist>);

}  // namespace mica::sample
