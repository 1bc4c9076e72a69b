// SPDX-License-Identifier: Apache-2.0
//
// Mirostat (Basu et al., arXiv 2007.14966): draws so that the surprise of tokens, -log2 p, stays near a
// target.
//
//   v2 keeps candidates with a surprise up to mu, v1 as many of the best as Zipf's law gives for mu. Then
//   mu = mu - eta * (surprise of the drawn token among the kept candidates - tau). Mu begins at 2 tau.
#pragma once

#include "mica/sample/stages.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace mica::sample {

/// Draws like Dist, from fewer candidates. It replaces the stages that narrow the candidates.
class Mirostat : public Dist {
 public:
  /// version: 1, 2, or 0 for a Dist; 0 <= tau <= 100, 0 <= eta <= 10; raises for other values.
  Mirostat(int version, float tau, float eta, CounterRng rng)
      : Dist(rng),
        version_(version),
        tau_(detail::in_range("mirostat-ent", tau, 0.0f, 100.0f)),
        eta_(detail::in_range("mirostat-lr", eta, 0.0f, 10.0f)),
        mu_(2.0f * tau) {
    if (version < 0 || version > 2) raise(ErrorCode::usage, "mirostat: found ", version, ", allowed 0 to 2");
  }

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (version_ == 0) return Dist::apply(candidates);
    candidates.softmax();
    if (version_ == 1) {
      candidates.keep_best(zipf(candidates));
    } else {
      const TokenId best = candidates[candidates.best()].id;
      const float least = std::exp2(-mu_);
      candidates.keep_if([&](const Candidate& each) { return each.p >= least || each.id == best; });
    }
    Dist::apply(candidates);
    if (const float p = candidates[0].p; p > 0.0f) mu_ -= eta_ * (-std::log2(p) - tau_);
  }

  // Specific to Mirostat
  [[nodiscard]] bool active() const noexcept { return version_ != 0; }  // false: it is a Dist
  [[nodiscard]] float mu() const noexcept { return mu_; }               // the limit of surprise now, in bits
  /// Continues with the generator and the mu of a saved state; a mu of 0 stands for the first one, 2 tau.
  void restore(CounterRng rng, float mu) noexcept {
    set_rng(rng);
    mu_ = mu != 0.0f ? mu : 2.0f * tau_;
  }

 private:
  /// The number of candidates to keep for mu; the exponent of Zipf's law is estimated from the best 100.
  [[nodiscard]] std::size_t zipf(Candidates& candidates) const noexcept {
    const std::size_t m = std::min<std::size_t>(candidates.size(), 100);
    candidates.sort_best(m);
    double products = 0.0, squares = 0.0;
    for (std::size_t i = 0; i + 1 < m && candidates[i + 1].p > 0.0f; ++i) {
      const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
      products +=
          t * std::log(static_cast<double>(candidates[i].p) / static_cast<double>(candidates[i + 1].p));
      squares += t * t;
    }
    const auto n = static_cast<double>(candidates.size());
    const double s = products / squares, e = s - 1.0;
    const double k = std::pow(e * std::exp2(static_cast<double>(mu_)) / (1.0 - std::pow(n, -e)), 1.0 / s);
    return k >= 1.0 ? static_cast<std::size_t>(std::min(k, n)) : 1;  // also if k is NaN
  }

  int version_;
  float tau_;
  float eta_;
  float mu_;
};
static_assert(ChoosingStage<Mirostat>);

}  // namespace mica::sample
