// SPDX-License-Identifier: Apache-2.0
//
// The causal convolution and the delta rule: vectors against the specification, the specification against
// double precision, and several calls against one.

#include "kernel/strided.hpp"
#include "kernel/targets.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"

#include <cmath>
#include <limits>

namespace mica::recurrent_test {
namespace {

using test::Strided;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr double rounding = 0x1p-24;

/// A convolution of `tokens` tokens over channels [first, last) and all that it touches.
struct Conv {
  std::size_t taps, first, last;
  test::Guarded<float> weight;
  Strided x, state, y;

  Conv(std::size_t tokens, std::size_t channels, std::size_t n_taps, CounterRng& rng)
      : taps(n_taps),
        first(0),
        last(channels),
        weight(channels * n_taps),
        x(tokens, channels, 3, rng),
        state(n_taps - 1, channels, 2, rng),
        y(tokens, channels, 1, rng) {
    test::fill_noise(weight, rng);
  }

  struct Result {
    Strided state, y;
  };
  /// In calls of so many tokens.
  template <class K>
  Result run(std::initializer_list<std::size_t> calls) {
    Result r{Strided(state), Strided(y)};
    std::size_t t = 0;
    for (const std::size_t n : calls) {
      K::causal_conv(
          {x.view().rows(t, n), weight.data(), taps, r.state.view(), r.y.view().rows(t, n), first, last});
      t += n;
    }
    return r;
  }
  void check(const Result& expected, const Result& actual) const {
    INFO(x.rows << " tokens, " << taps << " taps, channels " << first << " to " << last << " of " << x.cols);
    CHECK(test::differences(expected.y, actual.y) == 0);
    CHECK(test::differences(expected.state, actual.state) == 0);
  }
  void check() {
    const Result expected = run<kernel::Scalar>({x.rows});
    test::for_each_target([&] { check(expected, run<kernel::Highway>({x.rows})); });
  }
};

TEST_CASE("the convolution equals the specification for any channels, taps and tokens") {
  CounterRng rng(1);
  for (const std::size_t channels : std::initializer_list<std::size_t>{1, 4, 15, 16, 17, 33, 64, 257}) {
    for (const std::size_t taps : std::initializer_list<std::size_t>{1, 2, 3, 4, 8}) {
      for (const std::size_t tokens : std::initializer_list<std::size_t>{0, 1, 2, 7, 12}) {
        Conv conv(tokens, channels, taps, rng);
        conv.check();
        conv.first = channels / 3;
        conv.last = channels - channels / 4;
        conv.check();
      }
    }
  }
}

TEST_CASE("the convolution in any number of calls is the convolution in one") {
  CounterRng rng(2);
  for (const std::size_t taps : std::initializer_list<std::size_t>{1, 2, 4, 8}) {
    Conv conv(13, 150, taps, rng);
    const auto check = [&](auto kernels) {
      using K = decltype(kernels);
      const auto whole = conv.run<K>({13});
      conv.check(whole, conv.run<K>({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
      conv.check(whole, conv.run<K>({2, 1, 0, 7, 3}));
      conv.check(whole, conv.run<K>({9, 4}));
    };
    check(kernel::Scalar{});
    test::for_each_target([&] { check(kernel::Highway{}); });
  }
}

TEST_CASE("the convolution is a sum over the last inputs, oldest first, through SiLU") {
  CounterRng rng(3);
  const std::size_t tokens = 9, channels = 5, taps = 4, before = taps - 1;
  Conv conv(tokens, channels, taps, rng);
  auto result = conv.run<kernel::Scalar>({tokens});
  for (std::size_t c = 0; c < channels; ++c) {
    const auto in = [&](std::size_t row) {
      return static_cast<double>(row < before ? conv.state.at(row, c) : conv.x.at(row - before, c));
    };
    for (std::size_t t = 0; t < tokens; ++t) {
      double sum = 0, magnitude = 0;
      for (std::size_t j = 0; j < taps; ++j) {
        const double term = static_cast<double>(conv.weight[c * taps + j]) * in(t + j);
        sum += term;
        magnitude += std::fabs(term);
      }
      // Four roundings of partial sums, through a slope of at most 1.1; then SiLU as in activation_test.cpp.
      const double exact = sum / (1 + std::exp(-sum));
      const double bound = 1.1 * 4 * rounding * magnitude + std::fabs(exact) * (3 * rounding + 2.4e-7);
      CHECK(std::fabs(result.y.at(t, c) - exact) <= bound);
    }
    for (std::size_t i = 0; i < before; ++i)
      CHECK(result.state.at(i, c) == conv.x.at(tokens - before + i, c));
  }
}

TEST_CASE("an input that is not finite reaches the outputs of its channel that see it, and no others") {
  CounterRng rng(4);
  for (const float bad : {nan, inf, -inf}) {
    for (const std::size_t channel :
         std::initializer_list<std::size_t>{2, 20, 34}) {  // in vectors and behind them
      Conv conv(9, 35, 4, rng);
      for (float& w : conv.weight) w = std::fabs(w) + 0.1f;
      conv.x.at(3, channel) = bad;
      conv.check();
      auto result = conv.run<kernel::Highway>({9});
      for (std::size_t t = 0; t < 9; ++t) {
        for (std::size_t c = 0; c < 35; ++c) {
          CHECK(std::isfinite(result.y.at(t, c)) == !(c == channel && t >= 3 && t < 7));
        }
      }
    }
  }
}

/// The delta rule of `tokens` tokens over columns [first, last) and all that it touches. Keys have length 1.
struct Delta {
  std::size_t first, last;
  Strided q, k, v, gates, state, out;

  Delta(std::size_t tokens, std::size_t k_dim, std::size_t v_dim, CounterRng& rng)
      : first(0),
        last(v_dim),
        q(tokens, k_dim, 3, rng),
        k(tokens, k_dim, 1, rng),
        v(tokens, v_dim, 2, rng),
        gates(tokens, 4, 1, rng),
        state(k_dim, v_dim, 5, rng),
        out(tokens, v_dim, 1, rng) {
    kernel::Scalar::l2_norm({k.view(), 1e-6f, 1, k.view(), 0, tokens});
    for (std::size_t t = 0; t < tokens; ++t) {
      gates.at(t, 0) = 1 - 0.3f * static_cast<float>(rng.uniform());
      gates.at(t, 2) = static_cast<float>(rng.uniform());
    }
  }

  struct Result {
    Strided state, out;
  };
  template <class K>
  Result run(std::initializer_list<std::size_t> calls) {
    Result r{Strided(state), Strided(out)};
    std::size_t t = 0;
    for (const std::size_t n : calls) {
      const float* const gate = gates.numbers.data() + t * gates.stride;
      K::delta_rule({q.view().rows(t, n), k.view().rows(t, n), v.view().rows(t, n), gate, gate + 2,
                     gates.stride, r.state.view(), r.out.view().rows(t, n), first, last});
      t += n;
    }
    return r;
  }
  void check(const Result& expected, const Result& actual) const {
    INFO(q.rows << " tokens, state (" << state.rows << ", " << state.cols << "), columns " << first << " to "
                << last);
    CHECK(test::differences(expected.out, actual.out) == 0);
    CHECK(test::differences(expected.state, actual.state) == 0);
  }
  void check() {
    const Result expected = run<kernel::Scalar>({q.rows});
    test::for_each_target([&] { check(expected, run<kernel::Highway>({q.rows})); });
  }
};

TEST_CASE("the delta rule equals the specification for any state and any columns") {
  CounterRng rng(5);
  for (const std::size_t k_dim : std::initializer_list<std::size_t>{0, 1, 2, 3, 4, 17, 64, 128, 300}) {
    for (const std::size_t v_dim : std::initializer_list<std::size_t>{1, 8, 16, 33, 49, 128}) {
      for (const std::size_t tokens : std::initializer_list<std::size_t>{0, 1, 2, 5}) {
        Delta delta(tokens, k_dim, v_dim, rng);
        delta.check();
        delta.first = v_dim / 5;
        delta.last = v_dim - v_dim / 7;
        delta.check();
      }
    }
  }
}

TEST_CASE("tall states and many tokens, which a kernel takes in parts, equal the specification") {
  CounterRng rng(6);
  Delta(70, 128, 33, rng).check();
  Delta(31, 300, 40, rng).check();
  Delta(7, 1025, 40, rng).check();
  Delta(3, 4100, 17, rng).check();
}

TEST_CASE("the delta rule in any number of calls is the delta rule in one") {
  CounterRng rng(7);
  Delta delta(13, 33, 75, rng);
  const auto check = [&](auto kernels) {
    using K = decltype(kernels);
    const auto whole = delta.run<K>({13});
    delta.check(whole, delta.run<K>({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
    delta.check(whole, delta.run<K>({2, 1, 0, 7, 3}));
    delta.check(whole, delta.run<K>({9, 4}));
  };
  check(kernel::Scalar{});
  test::for_each_target([&] { check(kernel::Highway{}); });
}

TEST_CASE("outputs may take the place of values") {
  CounterRng rng(8);
  Delta delta(6, 20, 40, rng);
  auto apart = delta.run<kernel::Highway>({6});
  Strided state(delta.state), v(delta.v);
  kernel::Highway::delta_rule({delta.q.view(), delta.k.view(), v.view(), &delta.gates.at(0, 0),
                               &delta.gates.at(0, 2), delta.gates.stride, state.view(), v.view(), 0, 40});
  CHECK(test::differences(state, apart.state) == 0);
  for (std::size_t t = 0; t < 6; ++t) CHECK(test::differences(&v.at(t, 0), &apart.out.at(t, 0), 40) == 0);
}

/// Column j in double precision, with a bound for what floats may be off. While keys have length 1 and the
/// gates are in [0, 1], the map from state to state does not lengthen a column, so that errors add up and do
/// not grow. A token adds, in roundings of the column's length: 1 for the decay, k_dim / 4 + 2 for r, 2 for u
/// and 1 for the update.
struct Column {
  std::vector<double> s;
  double error = 0;

  [[nodiscard]] double length() const {
    double sum = 0;
    for (const double x : s) sum += x * x;
    return std::sqrt(sum);
  }
  [[nodiscard]] double dot(std::span<const float> factor) const {
    double sum = 0;
    for (std::size_t i = 0; i < s.size(); ++i) sum += s[i] * static_cast<double>(factor[i]);
    return sum;
  }
  /// The output of one token.
  double step(std::span<const float> q, std::span<const float> k, double v, double decay, double beta) {
    for (double& x : s) x *= decay;
    const double u = beta * (v - dot(k));
    error += rounding * ((static_cast<double>(s.size()) / 4 + 6) * length() + 4 * std::fabs(v));
    for (std::size_t i = 0; i < s.size(); ++i) s[i] += static_cast<double>(k[i]) * u;
    return dot(q);
  }
};

TEST_CASE("the delta rule forgets, corrects and answers as its formula says") {
  CounterRng rng(9);
  const std::size_t tokens = 60, k_dim = 33, v_dim = 17;
  Delta delta(tokens, k_dim, v_dim, rng);
  auto result = delta.run<kernel::Scalar>({tokens});
  for (std::size_t j = 0; j < v_dim; ++j) {
    Column column;
    for (std::size_t i = 0; i < k_dim; ++i) column.s.push_back(static_cast<double>(delta.state.at(i, j)));
    for (std::size_t t = 0; t < tokens; ++t) {
      const auto q = delta.q.view()[t];
      const double exact =
          column.step(q, delta.k.view()[t], static_cast<double>(delta.v.at(t, j)),
                      static_cast<double>(delta.gates.at(t, 0)), static_cast<double>(delta.gates.at(t, 2)));
      double q_length = 0;
      for (const float x : q) q_length += static_cast<double>(x) * static_cast<double>(x);
      q_length = std::sqrt(q_length);
      const double sum_error = rounding * (static_cast<double>(k_dim) / 4 + 3) * column.length();
      CHECK(std::fabs(result.out.at(t, j) - exact) <= q_length * (column.error + sum_error));
    }
    for (std::size_t i = 0; i < k_dim; ++i)
      CHECK(std::fabs(result.state.at(i, j) - column.s[i]) <= column.error);
  }
}

TEST_CASE("what was written under a key is what the key reads") {
  // No decay, beta 1, orthogonal keys: the state is a table.
  std::vector<float> state(4 * 20), k(4 * 4), v(4 * 20), out(4 * 20);
  const float one = 1;
  for (std::size_t t = 0; t < 4; ++t) {
    k[t * 4 + t] = 1;
    for (std::size_t j = 0; j < 20; ++j) v[t * 20 + j] = static_cast<float>(100 * t + j);
  }
  const MatrixView<float> keys(k.data(), 4, 4), values(v.data(), 4, 20), outs(out.data(), 4, 20);
  kernel::Highway::delta_rule({keys, keys, values, &one, &one, 0, {state.data(), 4, 20}, outs, 0, 20});
  CHECK(out == v);
  CHECK(state == v);
}

TEST_CASE("a value that is not finite stays in its column, a key reaches all, a query only its token") {
  CounterRng rng(10);
  for (const float bad : {nan, inf, -inf}) {
    Delta delta(5, 12, 35, rng);
    const auto finite = [&](std::size_t t, std::size_t j) {
      return std::isfinite(delta.run<kernel::Highway>({5}).out.at(t, j));
    };
    for (const std::size_t j : std::initializer_list<std::size_t>{3, 20, 34}) {  // in vectors and behind them
      const float before = delta.v.at(2, j);
      delta.v.at(2, j) = bad;
      delta.check();
      CHECK(finite(1, j));
      CHECK(!finite(2, j));
      CHECK(!finite(4, j));
      CHECK(finite(4, j - 1));
      delta.v.at(2, j) = before;
    }
    delta.q.at(2, 5) = bad;
    delta.check();
    CHECK(!finite(2, 0));
    CHECK(!finite(2, 34));
    CHECK(finite(3, 0));
    delta.k.at(3, 5) = bad;
    delta.check();
    CHECK(!finite(3, 0));
    CHECK(!finite(4, 34));
  }
}

}  // namespace
}  // namespace mica::recurrent_test
