// SPDX-License-Identifier: Apache-2.0

#include "mica/block/linear.hpp"

#include "mica/base/rng.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/format/lists.hpp"
#include "mica/kernel/scalar.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace mica::test::linear_test {
namespace {

using List = TypeList<format::F32, format::F16, format::Q8_0>;
using block::Product;

/// Small whole numbers: their sums are exact, so a product may be computed in any order.
std::vector<float> numbers(std::size_t n, int salt) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>((static_cast<int>(i) * 7 + salt) % 11 - 5);
  return out;
}

tensor::AnyMatrix<List> matrix(const std::vector<float>& w, std::size_t rows, std::size_t cols) {
  return {format::F32::id, reinterpret_cast<const std::byte*>(w.data()), rows, cols};
}

}  // namespace

TEST_CASE("products that share an input are each computed whole, rows that fill no slice included") {
  constexpr std::size_t k = 33, n = 3;
  const std::array<std::size_t, 3> rows = {1, 64, 131};
  const auto x = numbers(n * k, 1);
  std::array<std::vector<float>, 3> w, y;
  for (std::size_t i = 0; i < 3; ++i) {
    w[i] = numbers(rows[i] * k, static_cast<int>(i));
    y[i].assign(n * rows[i], 1000.0f);
  }
  const auto product = [&](std::size_t i, bool add) {
    return Product<List>{matrix(w[i], rows[i], k), {y[i].data(), n, rows[i]}, add};
  };
  const kernel::Input input{{x.data(), n, k}, {}};
  exec::Team team(3);
  block::project<kernel::Scalar>(team, input,
                                 std::array{product(0, false), product(1, true), product(2, false)});
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t r = 0; r < rows[i]; ++r) {
        float expected = i == 1 ? 1000.0f : 0.0f;
        for (std::size_t j = 0; j < k; ++j) expected += w[i][r * k + j] * x[t * k + j];
        CHECK(y[i][t * rows[i] + r] == expected);
      }
    }
  }
}

TEST_CASE("workers with tokens of their own give the bits of one worker, and round where all tokens do") {
  constexpr std::size_t k = 64, n = 200, rows = 67;
  const auto values = numbers(n * k, 1), weights = numbers(rows * k, 2), bias = numbers(rows, 3);
  std::vector<format::Q8_0::Block> blocks(rows * k / 32);
  for (std::size_t b = 0; b < blocks.size(); ++b) format::Q8_0::encode(&weights[b * 32], blocks[b]);
  const tensor::AnyMatrix<List> w(format::Q8_0::id, reinterpret_cast<const std::byte*>(blocks.data()), rows,
                                  k);
  exec::Team team(3);
  exec::Inline one;
  REQUIRE(block::token_blocks(n, rows * k, 3) == 6);
  REQUIRE(block::token_blocks(n, rows * k, 1) == 4);
  std::vector<std::vector<float>> all;
  for (const std::size_t from : std::initializer_list<std::size_t>{0, 150, 201}) {
    std::vector<std::int8_t> codes(n * k);
    std::vector<float> scales(n * k / 32), y(n * rows, 1.0f), expected(y);
    std::vector<std::int16_t> sums(n * k / 16);
    const kernel::QuantizedRows x{codes.data(), scales.data(), sums.data(), n, k, from};
    kernel::Scalar::quantize({{values.data(), n, k}, x, 0, n});
    const kernel::Input input{{values.data(), n, k}, x};
    const auto product = [&](std::vector<float>& to) {
      return std::array{Product<List>{w, {to.data(), n, rows}, true, bias.data()}};
    };
    block::project<kernel::Scalar>(team, input, product(y));
    block::project<kernel::Scalar>(one, input, product(expected));
    CHECK(y == expected);
    all.push_back(y);
  }
  CHECK(all[0] != all[1]);
  CHECK(all[0] == all[2]);
}

TEST_CASE("second codes make errors beside outliers small, in blocks of tokens or not") {
  constexpr std::size_t k = 64, rows = 20;
  for (const std::size_t n : std::initializer_list<std::size_t>{3, 100}) {
    CAPTURE(n);
    CounterRng rng(7);
    std::vector<float> values(n * k), weights(rows * k), bias = numbers(rows, 3);
    for (float& x : values) x = static_cast<float>(rng.uniform() - 0.5);
    for (std::size_t row = 0; row < n; ++row) values[row * k + 5] = 40;  // the second group has no outlier
    for (float& w : weights) w = static_cast<float>(rng.uniform() - 0.5);
    std::vector<format::Q8_0::Block> blocks(rows * k / 32);
    std::vector<float> decoded(rows * k);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      format::Q8_0::encode(&weights[b * 32], blocks[b]);
      format::Q8_0::decode(blocks[b], &decoded[b * 32]);
    }
    const tensor::AnyMatrix<List> w(format::Q8_0::id, reinterpret_cast<const std::byte*>(blocks.data()), rows,
                                    k);
    std::vector<std::int8_t> codes(n * k);
    std::vector<float> scales(n * k / 32);
    std::vector<std::int16_t> sums(n * k / 16);
    exec::Team team(2);
    exec::Inline one;
    /// The largest difference to the product in floats. from: fast8_from; 1: 256 activations share a scale.
    const auto run = [&](auto& executor, bool twice, std::size_t from, std::vector<float>& y) {
      const block::InputCodes how{{codes.data(), scales.data(), sums.data(), n, k, from}, true, twice};
      const std::array product{Product<List>{w, {y.data(), n, rows}, false, bias.data()}};
      block::quantize_and_project<kernel::Scalar>(executor, {values.data(), n, k}, how,
                                                  std::span<const Product<List>>(product));
      double worst = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        double expected = bias[i % rows];
        for (std::size_t j = 0; j < k; ++j)
          expected += static_cast<double>(decoded[i % rows * k + j]) * values[i / rows * k + j];
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) - expected));
      }
      return worst;
    };
    std::vector<float> single(n * rows), twice(single), alone(single), rounds(single), same(single);
    const double coarse = run(team, false, 0, single), fine = run(team, true, 0, twice);
    CHECK(coarse > 0.1);
    CHECK(fine < coarse / 20);
    run(one, true, 0, alone);
    CHECK(twice == alone);
    run(team, false, 1, rounds);
    run(team, true, 1, same);
    CHECK(rounds == same);  // products that round have no second codes
  }
}

TEST_CASE("products of floats beside others have no second codes") {
  constexpr std::size_t k = 32, rows = 4;
  for (const std::size_t n : std::initializer_list<std::size_t>{1, 40}) {
    std::vector<float> values(n * k, 1), weights(rows * k, 0.5f);
    for (std::size_t row = 0; row < n; ++row) values[row * k] = 1000.4f;
    std::vector<format::Q8_0::Block> blocks(rows);
    for (std::size_t b = 0; b < rows; ++b) format::Q8_0::encode(&weights[b * k], blocks[b]);
    const tensor::AnyMatrix<List> encoded(format::Q8_0::id, reinterpret_cast<const std::byte*>(blocks.data()),
                                          rows, k);
    std::vector<std::int8_t> codes(n * k);
    std::vector<float> scales(n), floats(n * rows), integers(n * rows);
    std::vector<std::int16_t> sums(n * 2);
    exec::Inline one;
    const std::array products{Product<List>{matrix(weights, rows, k), {floats.data(), n, rows}},
                              Product<List>{encoded, {integers.data(), n, rows}}};
    block::quantize_and_project<kernel::Scalar>(
        one, {values.data(), n, k},
        block::InputCodes{{codes.data(), scales.data(), sums.data(), n, k, 0}, true, true},
        std::span<const Product<List>>(products));
    for (std::size_t i = 0; i < floats.size(); ++i) {
      CHECK(floats[i] == doctest::Approx(515.7).epsilon(1e-5));
      CHECK(integers[i] == doctest::Approx(515.7).epsilon(1e-3));
    }
  }
}

TEST_CASE("a bias is added once to every row, whether a product replaces or adds") {
  constexpr std::size_t k = 5, n = 3, rows = 67;
  const auto x = numbers(n * k, 1), w = numbers(rows * k, 2), bias = numbers(rows, 3);
  for (const bool add : {false, true}) {
    CAPTURE(add);
    std::vector<float> y(n * rows, 100.0f);
    exec::Team team(2);
    block::project<kernel::Scalar>(
        team, kernel::Input{{x.data(), n, k}, {}},
        std::array{Product<List>{matrix(w, rows, k), {y.data(), n, rows}, add, bias.data()}});
    for (std::size_t i = 0; i < y.size(); ++i) {
      float expected = (add ? 100.0f : 0.0f) + bias[i % rows];
      for (std::size_t j = 0; j < k; ++j) expected += w[i % rows * k + j] * x[i / rows * k + j];
      CHECK(y[i] == expected);
    }
  }
}

TEST_CASE("a product in floats is that of the decoded matrix, and needs no codes") {
  constexpr std::size_t k = 64, n = 3, rows = 19;
  const auto x = numbers(n * k, 1);
  std::vector<format::Q8_0::Block> blocks(rows * k / 32);
  std::vector<float> w(rows * k), y(n * rows, 7.0f), expected(y);
  const auto values = numbers(rows * k, 5);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    format::Q8_0::encode(&values[b * 32], blocks[b]);
    format::Q8_0::decode(blocks[b], &w[b * 32]);
  }
  const tensor::AnyMatrix<List> codes(format::Q8_0::id, reinterpret_cast<const std::byte*>(blocks.data()),
                                      rows, k);
  exec::Team team(2);
  block::project<kernel::Scalar>(team, kernel::Input{{x.data(), n, k}, {}},
                                 std::array{Product<List>{codes, {y.data(), n, rows}, true, nullptr, true}});
  block::project<kernel::Scalar>(
      team, kernel::Input{{x.data(), n, k}, {}},
      std::array{Product<List>{matrix(w, rows, k), {expected.data(), n, rows}, true}});
  CHECK(y == expected);
}

TEST_CASE("codes are needed when any of the matrices is of an integer format") {
  const std::vector<float> w(64);
  const auto floats = matrix(w, 1, 32);
  const tensor::AnyMatrix<List> codes(format::Q8_0::id, reinterpret_cast<const std::byte*>(w.data()), 1, 32);
  CHECK_FALSE(block::needs_codes(floats));
  CHECK_FALSE(block::needs_codes(floats, floats));
  CHECK(block::needs_codes(codes));
  CHECK(block::needs_codes(floats, codes));
  CHECK(block::needs_codes(codes, floats, floats));
  CHECK_FALSE(block::needs_codes(tensor::AnyMatrix<List>()));  // a matrix that a layer does not have
  CHECK(block::needs_codes(tensor::AnyMatrix<List>(), codes));
}

TEST_CASE("floats of 16 bits want codes where fast8 rounds them, others never") {
  const std::vector<float> memory(512);
  const auto* const bytes = reinterpret_cast<const std::byte*>(memory.data());
  const tensor::AnyMatrix<List> half(format::F16::id, bytes, 1, 256), wide(format::F32::id, bytes, 1, 256),
      codes(format::Q8_0::id, bytes, 1, 256);
  kernel::QuantizedRows x{nullptr, nullptr, nullptr, 17, 256, kernel::fast8_tokens};
  CHECK(block::wants_codes(x, half));
  CHECK_FALSE(block::wants_codes(x, wide));
  CHECK(block::wants_codes(x, wide, tensor::AnyMatrix<List>(), half));
  CHECK(block::wants_codes(x, codes));
  x.rows = 16;
  CHECK_FALSE(block::wants_codes(x, half));
  CHECK(block::wants_codes(x, half, codes));
  x = {nullptr, nullptr, nullptr, 17, 256, 0};
  CHECK_FALSE(block::wants_codes(x, half));
}

TEST_CASE("products that must not round see codes of integer weights alone") {
  const std::vector<float> memory(512);
  const auto* const bytes = reinterpret_cast<const std::byte*>(memory.data());
  const tensor::AnyMatrix<List> half(format::F16::id, bytes, 1, 256), codes(format::Q8_0::id, bytes, 1, 256);
  const kernel::Input x{{memory.data(), 1, 256}, {nullptr, nullptr, nullptr, 17, 256, kernel::fast8_tokens}};
  CHECK(block::unrounded(x, half).codes.rows == 0);
  CHECK(block::unrounded(x, codes).codes.rows == 17);
}

}  // namespace mica::test::linear_test
