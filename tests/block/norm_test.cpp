// SPDX-License-Identifier: Apache-2.0

#include "mica/block/norm.hpp"

#include "mica/base/rng.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/scalar.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace mica::test::norm_test {
namespace {

constexpr std::size_t n = 5, width = 37;
constexpr float epsilon = 1e-5f;

std::vector<float> random(std::size_t size, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(size);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 2 - 1);
  return out;
}

/// Number i of RMSNorm(row of x) * weight.
double normed(const std::vector<float>& x, std::size_t i, const float* weight) {
  const std::size_t first = i / width * width;
  double squares = 0;
  for (std::size_t c = first; c < first + width; ++c) squares += std::pow(x[c], 2.0);
  const double factor = 1 / std::sqrt(squares / width + static_cast<double>(epsilon));
  return static_cast<double>(x[i]) * factor *
         (weight == nullptr ? 1 : static_cast<double>(weight[i % width]));
}

}  // namespace

TEST_CASE("a norm is its formula, with a weight and without") {
  exec::Team team(3);
  const auto x = random(n * width, 1), weight = random(width, 2);
  for (const float* w : {weight.data(), static_cast<const float*>(nullptr)}) {
    std::vector<float> y(n * width);
    const auto input = block::norm<kernel::Scalar>(team, {x.data(), n, width}, w, epsilon,
                                                   MatrixView<float>(y.data(), n, width), {}, false);
    CHECK(input.values.data() == y.data());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::fabs(y[i] - normed(x, i, w)) < 1e-6);
  }
}

TEST_CASE("codes are those of the normed rows, and are left alone when nobody wants them") {
  exec::Team team(2);
  constexpr std::size_t cols = 64;
  const auto x = random(n * cols, 3);
  std::vector<float> y(n * cols), scales(n * cols / 32), expected_scales(scales);
  std::vector<std::int8_t> codes(n * cols, 77), expected(codes);
  std::vector<std::int16_t> sums(n * cols / 16), expected_sums(sums);
  const kernel::QuantizedRows out{codes.data(), scales.data(), sums.data(), n, cols};
  const MatrixView<const float> rows(x.data(), n, cols);
  static_cast<void>(
      block::norm<kernel::Scalar>(team, rows, nullptr, epsilon, {y.data(), n, cols}, out, false));
  CHECK(codes == expected);
  static_cast<void>(
      block::norm<kernel::Scalar>(team, rows, nullptr, epsilon, {y.data(), n, cols}, out, true));
  const kernel::QuantizedRows again{expected.data(), expected_scales.data(), expected_sums.data(), n, cols};
  static_cast<void>(block::quantize<kernel::Scalar>(team, {y.data(), n, cols}, again, true));
  CHECK(codes == expected);
  CHECK(scales == expected_scales);
  CHECK(sums == expected_sums);
}

TEST_CASE("a branch without norm and scale writes into the residual stream itself") {
  std::vector<float> residual(n * width), scratch(n * width);
  const MatrixView<float> stream(residual.data(), n, width), other(scratch.data(), n, width);
  block::Branch branch{stream, other};
  CHECK(branch.direct());
  CHECK(branch.target().data() == residual.data());
  branch.scale = 0.5f;
  CHECK_FALSE(branch.direct());
  CHECK(branch.target().data() == scratch.data());
  const float weight = 1;
  CHECK_FALSE(block::Branch{stream, other, &weight}.direct());
}

TEST_CASE("a branch is normed, scaled and added, whichever of these it wants") {
  exec::Team team(3);
  const auto before = random(n * width, 4), out = random(n * width, 5), weight = random(width, 6);
  for (const float* w : {weight.data(), static_cast<const float*>(nullptr)}) {
    for (const float scale : {1.0f, 0.25f}) {
      if (w == nullptr && scale == 1) continue;
      CAPTURE(scale);
      std::vector<float> residual = before, scratch = out;
      const block::Branch branch{{residual.data(), n, width}, {scratch.data(), n, width}, w, epsilon, scale};
      block::join_branch<kernel::Scalar>(team, branch);
      for (std::size_t i = 0; i < residual.size(); ++i) {
        const double added = w == nullptr ? static_cast<double>(out[i]) : normed(out, i, w);
        const double expected = static_cast<double>(before[i]) + static_cast<double>(scale) * added;
        CHECK(std::fabs(static_cast<double>(residual[i]) - expected) < 1e-6);
      }
    }
  }
}

}  // namespace mica::test::norm_test
