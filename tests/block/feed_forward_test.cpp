// SPDX-License-Identifier: Apache-2.0

#include "mica/block/detail/feed_forward.hpp"

#include "mica/base/rng.hpp"
#include "mica/exec/inline.hpp"
#include "mica/format/lists.hpp"
#include "mica/format/q8_0.hpp"
#include "mica/kernel/scalar.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace mica::test::feed_forward_test {
namespace {

using List = TypeList<format::F32>;

std::vector<float> random(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 2 - 1);
  return out;
}

tensor::AnyMatrix<List> matrix(const std::vector<float>& w, std::size_t rows, std::size_t cols) {
  return {format::F32::id, reinterpret_cast<const std::byte*>(w.data()), rows, cols};
}

}  // namespace

TEST_CASE("norm and the gated block are what their formulas say") {
  constexpr std::size_t n = 3, width = 21, ff = 34;
  const auto x = random(n * width, 1), weight = random(width, 2);
  const auto gate = random(ff * width, 3), up = random(ff * width, 4), down = random(width * ff, 5);
  std::vector<float> normed(n * width), gated(n * ff), upped(n * ff), residual = x;
  exec::Inline executor;
  const auto input =
      block::norm<kernel::Scalar>(executor, MatrixView<const float>(x.data(), n, width), weight.data(), 1e-5f,
                                  MatrixView<float>(normed.data(), n, width), {}, false);
  const block::FeedForward<List> f{
      .weights = {matrix(gate, ff, width), matrix(up, ff, width), matrix(down, width, ff)},
      .gate_out = {gated.data(), n, ff},
      .up_out = {upped.data(), n, ff},
      .hidden_codes = {}};
  block::feed_forward<kernel::Scalar>(executor, f, input, MatrixView<float>(residual.data(), n, width), true);
  for (std::size_t t = 0; t < n; ++t) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i)
      squares += static_cast<double>(x[t * width + i]) * x[t * width + i];
    const double scale = 1 / std::sqrt(squares / width + 1e-5);
    std::vector<double> hidden(ff);
    for (std::size_t r = 0; r < ff; ++r) {
      double g = 0, u = 0;
      for (std::size_t i = 0; i < width; ++i) {
        const double y = x[t * width + i] * scale * weight[i];
        g += gate[r * width + i] * y;
        u += up[r * width + i] * y;
      }
      hidden[r] = g / (1 + std::exp(-g)) * u;
    }
    for (std::size_t i = 0; i < width; ++i) {
      double expected = x[t * width + i];
      for (std::size_t r = 0; r < ff; ++r) expected += down[i * ff + r] * hidden[r];
      CHECK(std::fabs(residual[t * width + i] - expected) < 1e-5);
    }
  }
}

TEST_CASE("blocks of tokens give the bits of one call, with all codes in one memory") {
  constexpr std::size_t n = 72, width = 64, ff = 96;
  using Integers = TypeList<format::Q8_0>;
  auto x = random(n * width, 1);
  for (std::size_t row = 0; row < n; row += 2) x[row * width + 7] = 40;  // some groups have second codes
  const auto up_bias = random(ff, 2), down_bias = random(width, 3);
  const auto encoded = [](std::size_t rows, std::size_t cols, std::uint64_t seed) {
    const auto values = random(rows * cols, seed);
    std::vector<format::Q8_0::Block> blocks(rows * cols / 32);
    for (std::size_t b = 0; b < blocks.size(); ++b) format::Q8_0::encode(&values[b * 32], blocks[b]);
    return blocks;
  };
  const auto gate = encoded(ff, width, 4), up = encoded(ff, width, 5), down = encoded(width, ff, 6);
  const auto matrix = [](const std::vector<format::Q8_0::Block>& blocks, std::size_t rows, std::size_t cols) {
    return tensor::AnyMatrix<Integers>(format::Q8_0::id, reinterpret_cast<const std::byte*>(blocks.data()),
                                       rows, cols);
  };
  std::vector<std::int8_t> codes(n * ff);
  std::vector<float> scales(n * ff / 32), gated(n * ff), upped(n * ff);
  std::vector<std::int16_t> sums(n * ff / 16);
  exec::Inline executor;
  for (const std::size_t fast8_from : std::initializer_list<std::size_t>{0, n, n + 1}) {
    for (const bool has_up : {false, true}) {
      CAPTURE(fast8_from);
      CAPTURE(has_up);
      const auto place = [&](std::size_t cols) {
        return kernel::QuantizedRows{codes.data(), scales.data(), sums.data(), n, cols, fast8_from};
      };
      block::FeedForward<Integers> f;
      f.weights.gate = matrix(gate, ff, width);
      f.weights.down = matrix(down, width, ff);
      f.weights.gate_bias = up_bias.data();
      f.weights.down_bias = down_bias.data();
      f.gate_out = {gated.data(), n, ff};
      f.hidden_codes = place(ff);
      f.second_codes = has_up;
      if (has_up) {
        f.weights.up = matrix(up, ff, width);
        f.weights.up_bias = up_bias.data();
        f.up_out = {upped.data(), n, ff};
      }
      const MatrixView<const float> values(x.data(), n, width);
      std::vector<float> expected = x, y = x;
      const auto whole = block::quantize<kernel::Scalar>(executor, values, place(width), true);
      block::feed_forward<kernel::Scalar>(executor, f, whole, {expected.data(), n, width}, true);
      for (const exec::Range tokens : {exec::Range{40, 72}, exec::Range{0, 8}, exec::Range{8, 40}})
        block::feed_forward_of_tokens<kernel::Scalar>(f, {values, place(width)}, true, {y.data(), n, width},
                                                      true, tokens);
      CHECK(y == expected);
    }
  }
  block::GatedWeights<Integers> narrow;
  narrow.gate = matrix(down, width, ff);
  CHECK(block::feed_forward_blocks(narrow, n, 1) ==
        0);  // the codes of x would not fit into the memory of the hidden ones
}

TEST_CASE("of a sparse gate only what lies far above the mean stays, less the cut") {
  constexpr float deviations = 0.7f;
  std::vector<float> x = random(101, 6);
  double sum = 0, squares = 0;
  for (const float v : x) sum += static_cast<double>(v);
  for (const float v : x) squares += std::pow(static_cast<double>(v) - sum / 101, 2);
  const double cut = sum / 101 + static_cast<double>(deviations) * std::sqrt(squares / 101);
  const std::vector<float> before = x;
  block::keep_large(x, deviations);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(std::fabs(static_cast<double>(x[i]) - std::max(static_cast<double>(before[i]) - cut, 0.0)) < 1e-6);
    if (x[i] > 0) ++kept;
  }
  CHECK(kept > 5);
  CHECK(kept < 50);
}

TEST_CASE("what is no number stays in a sparse gate, and equal numbers go") {
  std::vector<float> bad = {1, NAN, 3};
  block::keep_large(bad, 1);
  CHECK(std::isnan(bad[1]));
  std::vector<float> equal(7, 2.5f);
  block::keep_large(equal, 1);
  for (const float v : equal) CHECK(v == 0.0f);
}

}  // namespace mica::test::feed_forward_test
