// SPDX-License-Identifier: Apache-2.0
//
// The stages of a chain: logit bias, those that narrow the candidates, the temperature, and those that choose
// one. Stages that depend on the text are in penalties.hpp and dry.hpp, one that steers surprise in
// mirostat.hpp.
#pragma once

#include "mica/base/error.hpp"
#include "mica/base/rng.hpp"
#include "mica/sample/concept.hpp"
#include "mica/sample/detail/range.hpp"
#include "mica/sample/sampler_options.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace mica::sample {

namespace detail {

/// Keeps the best candidates, in order, until their probabilities add up to p; at least one.
template <class Probability>
void keep_until(Candidates& candidates, float p, Probability&& probability) noexcept {
  double sum = 0.0;
  // Sorts a few at first, then more: the nucleus of a large vocabulary is usually small.
  for (std::size_t n = 0, stretch = 64; n < candidates.size(); stretch *= 4) {
    const std::size_t end = std::min(stretch, candidates.size());
    candidates.sort_best(end);
    while (n < end) {
      sum += probability(candidates[n++]);
      if (sum >= static_cast<double>(p)) return candidates.keep_front(n);
    }
  }
}

}  // namespace detail

/// Adds numbers to the logits of tokens. -infinity forbids a token; a sampler that can choose only forbidden
/// tokens chooses none.
class LogitBias : public Memoryless {
 public:
  /// Raises for a bias that is NaN or above 1e9; several biases of one token are added.
  explicit LogitBias(std::vector<TokenBias> biases) : biases_(std::move(biases)) {
    for (const TokenBias& each : biases_) {
      if (each.bias == -std::numeric_limits<float>::infinity()) continue;
      static_cast<void>(detail::in_range("logit-bias", each.bias, -1e9f, 1e9f, ", or -inf: never the token"));
    }
  }

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    for (const auto [id, bias] : biases_)
      if (Candidate* const candidate = candidates.find(id)) candidate->logit += bias;
    candidates.forget_order();
  }

 private:
  std::vector<TokenBias> biases_;
};
static_assert(SamplerStage<LogitBias>);

/// Keeps the k best candidates, in order; 0 keeps all.
class TopK : public Memoryless {
 public:
  /// k >= 0, else raises.
  explicit TopK(std::int64_t k) : k_(static_cast<std::size_t>(k)) {
    if (k < 0) raise(ErrorCode::usage, "top-k: found ", k, ", allowed 0 (keeps all) or more");
  }

  [[nodiscard]] std::size_t k() const noexcept { return k_; }  // 0: all

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
    detail::keep_until(candidates, p_, [](const Candidate& each) { return static_cast<double>(each.p); });
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

/// Locally typical sampling (Meister et al., arXiv 2202.00666): keeps the candidates whose surprise is
/// nearest to the entropy, until their probabilities add up to p; at least one. 1 keeps all.
class Typical : public Memoryless {
 public:
  /// 0 <= p <= 1, else raises.
  explicit Typical(float p) : p_(detail::in_range("typical", p, 0.0f, 1.0f)) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (p_ >= 1.0f) return;
    candidates.softmax();
    // Surprise minus entropy is the mean of the logits, weighted by probability, minus the logit.
    const Candidate best = candidates[candidates.best()];
    const auto below = [&](float logit) {
      return static_cast<double>(logit) - static_cast<double>(best.logit);
    };
    double mean = 0.0;
    for (const Candidate& each : candidates.span())
      if (each.p > 0.0f) mean += static_cast<double>(each.p) * below(each.logit);
    for (Candidate& each : candidates.span())  // p stores the logit while distances are sorted
      each.p = std::exchange(each.logit, -static_cast<float>(std::abs(below(each.logit) - mean)));
    candidates.forget_order();
    detail::keep_until(candidates, p_, [&](const Candidate& each) {
      return std::exp(below(each.p)) * static_cast<double>(best.p);
    });
    for (Candidate& each : candidates.span()) each.logit = each.p;
    candidates.forget_order();
  }

 private:
  float p_;
};
static_assert(SamplerStage<Typical>);

/// Top-n-sigma (Tang et al., arXiv 2411.07641): keeps candidates with a logit at most n standard deviations
/// of the possible logits below the best, whatever the temperature. 0 and below keeps all.
class TopNSigma : public Memoryless {
 public:
  /// -1 <= n <= 1000, else raises.
  explicit TopNSigma(float n) : n_(detail::in_range("top-n-sigma", n, -1.0f, 1e3f)) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (n_ <= 0.0f) return;
    const auto best = static_cast<double>(candidates[candidates.best()].logit);
    double count = 0.0, sum = 0.0, squares = 0.0;
    for (const Candidate& each : candidates.span()) {
      if (std::isinf(each.logit)) continue;
      const double below = static_cast<double>(each.logit) - best;
      count += 1.0, sum += below, squares += below * below;
    }
    const double variance = squares / count - (sum / count) * (sum / count);
    const double floor = best - static_cast<double>(n_) * std::sqrt(std::max(variance, 0.0));
    candidates.keep_if([&](const Candidate& each) { return !(static_cast<double>(each.logit) < floor); });
  }

 private:
  float n_;
};
static_assert(SamplerStage<TopNSigma>);

/// Exclude top choices (p-e-w, pull request 6335 of text-generation-webui): with `probability`, drops all
/// candidates whose probability is at least `threshold`, but the least probable one of them. One number is
/// drawn per token, needed or not. Above a threshold of 0.5 it drops nothing.
class Xtc : public Memoryless {
 public:
  /// 0 <= probability, threshold <= 1, else raises.
  Xtc(float probability, float threshold, CounterRng rng)
      : probability_(detail::in_range("xtc-probability", probability, 0.0f, 1.0f)),
        threshold_(detail::in_range("xtc-threshold", threshold, 0.0f, 1.0f)),
        rng_(rng) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (!(rng_.uniform() < static_cast<double>(probability_)) || threshold_ > 0.5f) return;
    candidates.softmax();
    std::size_t n = 0;
    for (const Candidate& each : candidates.span()) n += each.p > 0.0f && each.p >= threshold_ ? 1 : 0;
    if (n < 2) return;
    candidates.sort_best(n);
    const Candidate last = candidates[n - 1];
    candidates.keep_if([&](const Candidate& each) { return !better(each, last); });
  }

  // Specific to Xtc
  void set_rng(CounterRng rng) noexcept { rng_ = rng; }  // continues there

 private:
  float probability_;
  float threshold_;
  CounterRng rng_;
};
static_assert(SamplerStage<Xtc>);

/// Divides every logit by the temperature, after the best one is moved to zero so that nothing overflows.
/// Below 1 likely tokens become likelier, above 1 probabilities become more equal. With a range it is dynamic
/// (kalomaze, pull request 4972 of llama.cpp): it grows from temperature - range to temperature + range with
/// (entropy / maximum of the entropy)^exponent of the candidates.
class Temperature : public Memoryless {
 public:
  /// The range of temperatures; a dynamic one is clamped to it.
  static constexpr float min = 1e-6f;
  static constexpr float max = 1e4f;

  /// min <= temperature <= max, 0 <= range <= max, 0 <= exponent <= 1000, else raises. For a temperature of
  /// 0, which cannot divide, use Greedy.
  explicit Temperature(float temperature, float range = 0.0f, float exponent = 1.0f)
      : temperature_(
            detail::in_range("temperature", temperature, min, max, ", or 0 for always the best token")),
        range_(detail::in_range("dynatemp-range", range, 0.0f, max)),
        exponent_(detail::in_range("dynatemp-exp", exponent, 0.0f, 1e3f)) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    const float temperature = range_ > 0.0f && candidates.size() > 1 ? dynamic(candidates) : temperature_;
    if (temperature == 1.0f) return;
    const float top = candidates[candidates.best()].logit;
    for (Candidate& candidate : candidates.span()) candidate.logit = (candidate.logit - top) / temperature;
    // Logits that differed may be equal now, and equal ones are ordered by id.
    candidates.forget_order();
  }

 private:
  [[nodiscard]] float dynamic(Candidates& candidates) const noexcept {
    candidates.softmax();
    double entropy = 0.0;
    for (const Candidate& each : candidates.span())
      if (each.p > 0.0f) entropy -= static_cast<double>(each.p) * std::log(static_cast<double>(each.p));
    const double part = std::clamp(entropy / std::log(static_cast<double>(candidates.size())), 0.0, 1.0);
    const float low = std::max(temperature_ - range_, min), high = std::min(temperature_ + range_, max);
    return low + (high - low) * static_cast<float>(std::pow(part, static_cast<double>(exponent_)));
  }

  float temperature_;
  float range_;
  float exponent_;
};
static_assert(SamplerStage<Temperature>);

/// Chooses the candidate with the largest logit; among equal ones, that with the lowest id.
class Greedy : public Memoryless {
 public:
  // Required by ChoosingStage
  static constexpr bool chooses = true;

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept { candidates.choose(candidates.best()); }
};
static_assert(ChoosingStage<Greedy>);

/// Chooses a candidate at random, by the probabilities. One random number is drawn per token, needed or not,
/// so the n-th token always has the n-th number of the seed.
class Dist : public Memoryless {
 public:
  explicit Dist(CounterRng rng) noexcept : rng_(rng) {}                   // continues where rng is
  explicit Dist(std::uint64_t seed) noexcept : Dist(CounterRng(seed)) {}  // begins with the first number

  /// Where the draws are: seed and counter, to save them and to continue there.
  [[nodiscard]] const CounterRng& rng() const noexcept { return rng_; }
  void set_rng(CounterRng rng) noexcept { rng_ = rng; }

  // Required by ChoosingStage
  static constexpr bool chooses = true;

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    const double drawn = rng_.uniform();
    candidates.softmax();
    double all = 0.0;
    for (const Candidate& candidate : candidates.span()) all += static_cast<double>(candidate.p);
    // p is rounded to float, so the sum is only about one; the last possible candidate takes the small rest.
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
static_assert(ChoosingStage<Dist>);

}  // namespace mica::sample
