// SPDX-License-Identifier: Apache-2.0

#include "mica/tensor/packed12.hpp"

#include "mica/base/rng.hpp"
#include "mica/format/lists.hpp"
#include "mica/tensor/packing.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

namespace mica::test::packed12_test {
namespace {

using tensor::Packed12Panel;

/// About normal, rounded to BF16.
template <class F>
typename F::Block weight(CounterRng& rng) {
  const double sum = rng.uniform() + rng.uniform() + rng.uniform() + rng.uniform() - 2;
  const float rounded = to_float(to_bfloat(static_cast<float>(0.03 * sum)));
  typename F::Block block;
  F::encode(&rounded, block);
  return block;
}

template <class F>
std::vector<typename F::Block> weights(std::size_t rows, std::size_t cols) {
  CounterRng rng(rows + cols);
  std::vector<typename F::Block> all(rows * cols);
  for (auto& each : all) each = weight<F>(rng);
  return all;
}

/// The bytes of rows packed in twelve bits; empty where they cannot be.
template <class F>
std::optional<std::vector<std::byte>> packed(const std::vector<typename F::Block>& file, std::size_t cols) {
  const std::size_t rows = file.size() / cols;
  std::vector<std::byte> out(tensor::packed12_bytes(rows, cols));
  if (!tensor::pack12(tensor::Matrix<F>(file.data(), rows, cols), out.data())) return std::nullopt;
  return out;
}

template <class F>
tensor::Matrix<tensor::Packed12<F>> matrix(const std::vector<std::byte>& bytes, std::size_t rows,
                                           std::size_t cols) {
  return {reinterpret_cast<const typename F::Block*>(bytes.data()), rows, cols};
}

/// Weights of the file that do not come back, block by block and as floats.
template <class F>
std::size_t lost(const std::vector<typename F::Block>& file, std::size_t cols) {
  const std::size_t rows = file.size() / cols;
  const auto bytes = packed<F>(file, cols);
  REQUIRE(bytes);
  const auto w = matrix<F>(*bytes, rows, cols);
  std::size_t wrong = 0;
  std::vector<float> values(cols);
  for (std::size_t r = 0; r < rows; ++r) {
    w.decode_row(r, values.data());
    for (std::size_t k = 0; k < cols; ++k) {
      const auto block = w.block(r, k), expected = file[r * cols + k];
      float value;
      F::decode(expected, &value);
      wrong += block.bits != expected.bits ||
               std::bit_cast<std::uint32_t>(values[k]) != std::bit_cast<std::uint32_t>(value);
    }
  }
  return wrong;
}

std::uint32_t outliers_of(const std::vector<std::byte>& bytes) {
  Packed12Panel::Head head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  return head.end[Packed12Panel::quads - 1];
}

}  // namespace

TEST_CASE_TEMPLATE("rows in twelve bits give every weight back, bit for bit", F, format::F16, format::BF16) {
  for (const std::size_t rows : {1u, 15u, 16u, 17u, 35u}) {
    for (const std::size_t cols : {64u, 128u, 320u}) CHECK(lost<F>(weights<F>(rows, cols), cols) == 0);
  }
}

TEST_CASE("packed rows take three quarters of the file's bytes, and never more") {
  for (const std::size_t rows : {16u, 17u, 4096u}) {
    for (const std::size_t cols : {64u, 128u, 2048u, 28672u}) {
      CAPTURE(rows);
      CAPTURE(cols);
      CHECK(tensor::packed12_bytes(rows, cols) <= 2 * rows * cols);
    }
  }
  CHECK(static_cast<double>(tensor::packed12_bytes(4096, 4096)) < 0.76 * 2 * 4096 * 4096);
}

TEST_CASE("a value of a step has one place, and neighbours in a vector lie as vectors take them apart") {
  for (std::size_t k = 0; k < Packed12Panel::step; ++k)
    CHECK(Packed12Panel::value(Packed12Panel::place(k)) == k);
  CHECK(Packed12Panel::place(1) == 2);
  CHECK(Packed12Panel::place(4) == 16);
  CHECK(Packed12Panel::place(16) == 1);
  CHECK(Packed12Panel::place(32) == 8);
}

TEST_CASE_TEMPLATE("weights unlike the others are outliers, also many in one step", F, format::F16,
                   format::BF16) {
  constexpr std::size_t cols = 1024;
  auto file = weights<F>(16, cols);
  for (const std::size_t at :
       {0u, 1u, 63u, 64u, 1000u, 1001u, 1002u, 1003u, 5u * 1024 + 70, 16u * 1024 - 1}) {
    const float far = (at % 2 == 0 ? 1.5f : -1.25f) * (at < 1002 ? 1024.0f : 0x1p-14f);
    F::encode(&far, file[at]);
  }
  const auto bytes = packed<F>(file, cols);
  REQUIRE(bytes);
  CHECK(outliers_of(*bytes) >= 6);
  CHECK(lost<F>(file, cols) == 0);
}

TEST_CASE("zeros of either sign and small numbers that F16 has without a leading one come back") {
  auto file = weights<format::F16>(16, 128);
  for (std::size_t i = 0; i < 128; ++i) file[3 * 128 + i] = {static_cast<std::uint16_t>(i % 2 << 15)};
  for (std::uint16_t i = 0; i < 8; ++i) file[7 * 128 + 9 * i] = {static_cast<std::uint16_t>(1u << i)};
  CHECK(lost<format::F16>(file, 128) == 0);
}

TEST_CASE("what is not finite comes back in BF16, and keeps F16 as it is") {
  auto file = weights<format::BF16>(16, 64);
  file[5] = {0x7F80};
  file[6] = {0xFFC1};
  CHECK(lost<format::BF16>(file, 64) == 0);
  for (const int bits : {0x7C00, 0xFC00, 0x7E00, 0x7C08}) {
    auto halves = weights<format::F16>(16, 64);
    halves[77] = {static_cast<std::uint16_t>(bits)};
    CHECK_FALSE(packed<format::F16>(halves, 64));
  }
}

TEST_CASE("F16 numbers with more digits than BF16 has are not packed") {
  for (const std::size_t at : {0u, 63u, 64u, 15u * 256 + 255}) {
    auto file = weights<format::F16>(16, 256);
    file[at] = to_half(1.0f + 0x1p-10f);
    CHECK_FALSE(packed<format::F16>(file, 256));
    file[at] = {0x0201};  // 513 * 2^-24
    CHECK_FALSE(packed<format::F16>(file, 256));
  }
}

TEST_CASE("rows with too many numbers unlike the others are not packed") {
  CounterRng rng(3);
  std::vector<Bfloat> file(16 * 256);
  for (Bfloat& each : file) each = {static_cast<std::uint16_t>(rng.next())};
  CHECK_FALSE(packed<format::BF16>(file, 256));
}

TEST_CASE("which matrices may be packed is known before they are read") {
  CHECK(tensor::packing<format::F16>().can_pack12(16, 64));
  CHECK(tensor::packing<format::BF16>().can_pack12(17, 4096));
  CHECK_FALSE(tensor::packing<format::F32>().can_pack12(16, 64));
  CHECK_FALSE(tensor::packing<format::Q8_0>().can_pack12(16, 64));
  CHECK_FALSE(tensor::packing<format::F16>().can_pack12(15, 64));
  CHECK_FALSE(tensor::packing<format::F16>().can_pack12(16, 96));
  CHECK_FALSE(tensor::packing<format::F16>().can_pack12(16, std::uint64_t{1} << 40));
  CHECK_FALSE(tensor::packing<format::F16>().can_pack12(0, 64));
}

}  // namespace mica::test::packed12_test
