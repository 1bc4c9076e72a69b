// SPDX-License-Identifier: Apache-2.0

#include "mica/block/detail/gated_delta.hpp"

#include "mica/base/rng.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/scalar.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace mica::test::gated_delta_test {
namespace {

using block::DeltaNetConfig;

constexpr float epsilon = 1e-6f;

std::vector<float> random(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 2 - 1);
  return out;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

/// What projections give for the tokens of a sequence, and the vectors of the layer.
struct Sequence {
  DeltaNetConfig config;
  std::size_t tokens;
  std::vector<float> mixed, gate, alpha, beta;  // (tokens, channels | v_width | v_heads | v_heads)
  std::vector<float> conv, a, dt, norm;

  Sequence(const DeltaNetConfig& c, std::size_t n)
      : config(c),
        tokens(n),
        mixed(random(n * c.channels(), 1)),
        gate(random(n * c.v_width(), 2)),
        alpha(random(n * c.v_heads, 3)),
        beta(random(n * c.v_heads, 4)),
        conv(random(c.channels() * c.taps, 5)),
        a(random(c.v_heads, 6)),
        dt(random(c.v_heads, 7)),
        norm(random(c.v_dim, 8)) {
    for (float& x : a) x = -std::fabs(x);
  }

  /// One channel of one token after the convolution.
  [[nodiscard]] double convolved(std::size_t t, std::size_t channel) const {
    double sum = 0;
    for (std::size_t j = 0; j < config.taps; ++j) {
      if (t + j + 1 < config.taps) continue;  // before the first token there are zeros
      const std::size_t row = t + j + 1 - config.taps;
      sum += static_cast<double>(conv[channel * config.taps + j]) *
             static_cast<double>(mixed[row * config.channels() + channel]);
    }
    return silu(sum);
  }
  [[nodiscard]] std::vector<double> unit_head(std::size_t t, std::size_t first) const {
    std::vector<double> x(config.k_dim);
    double squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = convolved(t, first + i);
      squares += x[i] * x[i];
    }
    for (double& v : x) v /= std::sqrt(squares + static_cast<double>(epsilon));
    return x;
  }

  /// The formulas of the header, in doubles, one value head at a time: (tokens, v_width).
  [[nodiscard]] std::vector<double> exact() const {
    std::vector<double> out(tokens * config.v_width());
    for (std::size_t head = 0; head < config.v_heads; ++head) {
      std::vector<double> state(config.k_dim * config.v_dim);  // (k_dim, v_dim)
      for (std::size_t t = 0; t < tokens; ++t) exact_token(head, t, state, out);
    }
    return out;
  }
  void exact_token(std::size_t head, std::size_t t, std::vector<double>& state,
                   std::vector<double>& out) const {
    const DeltaNetConfig& d = config;
    const std::size_t share = d.v_heads / d.k_heads;
    const std::size_t k_head = d.heads_interleaved ? head / share : head % d.k_heads;
    const auto q = unit_head(t, k_head * d.k_dim), k = unit_head(t, (d.k_heads + k_head) * d.k_dim);
    const auto at = [&](const std::vector<float>& x) { return static_cast<double>(x[t * d.v_heads + head]); };
    const double step = std::log1p(std::exp(at(alpha) + static_cast<double>(dt[head])));
    const double decay = std::exp(static_cast<double>(a[head]) * step), b = 1 / (1 + std::exp(-at(beta)));
    double* const row = &out[t * d.v_width() + head * d.v_dim];
    double squares = 0;
    for (std::size_t j = 0; j < d.v_dim; ++j) {
      double known = 0, read = 0;
      for (std::size_t i = 0; i < d.k_dim; ++i) known += (state[i * d.v_dim + j] *= decay) * k[i];
      const double v = convolved(t, 2 * d.k_width() + head * d.v_dim + j);
      for (std::size_t i = 0; i < d.k_dim; ++i) {
        read += (state[i * d.v_dim + j] += k[i] * b * (v - known)) * q[i];
      }
      row[j] = read / std::sqrt(static_cast<double>(d.k_dim));
      squares += row[j] * row[j];
    }
    const double factor =
        1 / std::sqrt(squares / static_cast<double>(d.v_dim) + static_cast<double>(epsilon));
    for (std::size_t j = 0; j < d.v_dim; ++j) {
      const auto z = static_cast<double>(gate[t * d.v_width() + head * d.v_dim + j]);
      row[j] *= factor * static_cast<double>(norm[j]) * silu(z);
    }
  }

  struct Result {
    std::vector<float> out, state;
    bool operator==(const Result&) const = default;
  };

  /// The same by the block; steps: how many tokens each step has, again and again.
  template <class E>
  [[nodiscard]] Result run(E& executor, const std::vector<std::size_t>& steps) const {
    const DeltaNetConfig& d = config;
    const std::size_t before = (d.taps - 1) * d.channels();
    Result result{std::vector<float>(tokens * d.v_width(), NAN),
                  std::vector<float>(before + d.k_dim * d.v_width())};
    std::vector<float> decays = alpha, betas = beta;
    for (std::size_t pos = 0, i = 0; pos < tokens; ++i) {
      const std::size_t n = std::min(steps[i % steps.size()], tokens - pos);
      const auto rows = [&](auto& all, std::size_t width) {
        return MatrixView(all.data() + pos * width, n, width);
      };
      std::vector<float> in = mixed, convolved(n * d.channels(), NAN), z = gate;
      float* const state = result.state.data();
      const block::DeltaNetSequence part{
          {{state, d.taps - 1, d.channels()}, {state + before, d.v_heads * d.k_dim, d.v_dim}}, 0, n};
      block::delta_net<kernel::Scalar>(
          executor,
          block::DeltaNetContext{{.mixed = rows(in, d.channels()),
                                  .convolved = {convolved.data(), n, d.channels()},
                                  .gate = rows(z, d.v_width()),
                                  .out = rows(result.out, d.v_width()),
                                  .alpha = rows(decays, d.v_heads),
                                  .beta = rows(betas, d.v_heads),
                                  .fused_gates = {}},
                                 d,
                                 epsilon,
                                 conv.data(),
                                 a.data(),
                                 dt.data(),
                                 norm.data()},
          1, [&](std::size_t) { return part; });
      pos += n;
    }
    return result;
  }
};

/// Odd sizes, heads that share keys both ways, states wider than a task, channels of more than one.
std::vector<DeltaNetConfig> configs() {
  std::vector<DeltaNetConfig> out;
  for (const bool interleaved : {false, true}) {
    out.push_back({.k_heads = 2, .v_heads = 6, .k_dim = 7, .v_dim = 5, .taps = 4});
    out.push_back({.k_heads = 3, .v_heads = 3, .k_dim = 16, .v_dim = 33, .taps = 2});
    out.push_back({.k_heads = 1, .v_heads = 2, .k_dim = 130, .v_dim = 131, .taps = 4});
    out.push_back({.k_heads = 1, .v_heads = 1, .k_dim = 1, .v_dim = 1, .taps = 1});
    for (std::size_t i = out.size() - 4; i < out.size(); ++i) out[i].heads_interleaved = interleaved;
  }
  return out;
}

}  // namespace

TEST_CASE("a delta net is what its formulas say") {
  exec::Inline executor;
  for (const DeltaNetConfig& config : configs()) {
    CAPTURE(config.v_dim);
    CAPTURE(config.heads_interleaved);
    const Sequence sequence(config, 21);
    const auto exact = sequence.exact();
    const auto out = sequence.run(executor, {21}).out;
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double error = std::fabs(static_cast<double>(out[i]) - exact[i]);
      worst = std::isnan(error) ? error : std::max(worst, error);
    }
    CHECK(worst < 2e-5);
  }
}

TEST_CASE("tokens may be split into steps in any way: outputs and state are the same bits") {
  exec::Inline executor;
  exec::Team team(3);
  for (const DeltaNetConfig& config : configs()) {
    CAPTURE(config.v_dim);
    const Sequence sequence(config, 40);
    const auto expected = sequence.run(executor, {40});
    for (const auto& steps :
         std::vector<std::vector<std::size_t>>{{1}, {2}, {7}, {1, 16}, {39, 1}, {3, 1, 1}}) {
      CAPTURE(steps.front());
      CHECK(sequence.run(executor, steps) == expected);
    }
    CHECK(sequence.run(team, {40}) == expected);
    CHECK(sequence.run(team, {1, 5}) == expected);
  }
}

TEST_CASE("value heads share key heads side by side, or in turn") {
  DeltaNetConfig config{.k_heads = 2, .v_heads = 6, .k_dim = 1, .v_dim = 1, .taps = 1};
  const std::size_t in_turn[] = {0, 1, 0, 1, 0, 1}, side_by_side[] = {0, 0, 0, 1, 1, 1};
  for (std::size_t head = 0; head < 6; ++head) CHECK(config.key_head(head) == in_turn[head]);
  config.heads_interleaved = true;
  for (std::size_t head = 0; head < 6; ++head) CHECK(config.key_head(head) == side_by_side[head]);
}

TEST_CASE("what is no number stays in the state") {
  exec::Inline executor;
  Sequence sequence({.k_heads = 1, .v_heads = 2, .k_dim = 4, .v_dim = 3, .taps = 2}, 6);
  sequence.mixed[2 * sequence.config.channels() + 8] = NAN;  // a value of head 0, token 2
  const auto out = sequence.run(executor, {6}).out;
  for (std::size_t t = 0; t < 6; ++t) {
    CAPTURE(t);
    CHECK(std::isnan(out[t * 6]) == (t >= 2));
    CHECK(std::isfinite(out[t * 6 + 3]));  // head 1 has values of its own
  }
}

}  // namespace mica::test::gated_delta_test
