// SPDX-License-Identifier: Apache-2.0
//
// Blocks made by hand decode as the drawings at the head of their formats say.

#include "mica/format/lists.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace mica::format::layout_test {
namespace {

/// The values of a block.
template <class F>
struct Values {
  float at[F::block_size];

  explicit Values(const typename F::Block& block) { F::decode(block, at); }
  float operator[](std::size_t i) const { return at[i]; }
};

TEST_CASE("Q4_1 adds an offset to every value") {
  Q4_1::Block block = {to_half(0.5f), to_half(-3.0f), {}};
  block.nibbles[2] = 0x94;
  const Values<Q4_1> values(block);
  CHECK(values[2] == 0.5f * 4 - 3);
  CHECK(values[18] == 0.5f * 9 - 3);
  CHECK(values[0] == -3);
}

TEST_CASE("Q5_0 has the fifth bit of value i in bit i") {
  Q5_0::Block block = {to_half(2.0f), {}, {}};
  block.nibbles[3] = 0x5C;
  block.high[0] = 1 << 3;
  block.high[2] = 1 << 4;
  const Values<Q5_0> values(block);
  CHECK(values[3] == 2.0f * (16 + 12 - 16));
  CHECK(values[19] == 2.0f * (5 - 16));
  CHECK(values[20] == 2.0f * (16 - 16));
  CHECK(values[0] == -32);
}

TEST_CASE("Q5_1 has a fifth bit and an offset") {
  Q5_1::Block block = {to_half(2.0f), to_half(1.0f), {}, {}};
  block.nibbles[15] = 0x5C;
  block.high[3] = 0x80;
  const Values<Q5_1> values(block);
  CHECK(values[15] == 2.0f * 12 + 1);
  CHECK(values[31] == 2.0f * (16 + 5) + 1);
}

TEST_CASE("Q6_0 has two high bits of four values in a byte") {
  Q6_0::Block block = {to_half(2.0f), {}, {}};
  block.nibbles[3] = 0x5C;
  block.nibbles[11] = 0x91;
  block.high[3] = 0b10'01'11'00 | 0b01;
  const Values<Q6_0> values(block);
  CHECK(values[3] == 2.0f * (16 + 12 - 32));
  CHECK(values[19] == 2.0f * (48 + 5 - 32));
  CHECK(values[11] == 2.0f * (16 + 1 - 32));
  CHECK(values[27] == 2.0f * (32 + 9 - 32));
  CHECK(values[0] == -64);
}

TEST_CASE("Q2_K has a scale and a min in a byte per sixteen values") {
  Q2_K::Block block = {{}, {}, to_half(0.5f), to_half(0.25f)};
  block.scales[13] = 0x7A;           // group 13: scale 10, min 7
  block.pairs[32 + 17] = 0x03 << 4;  // half 1, quarter 2, j 17: value 128 + 64 + 17 = 209, group 13
  const Values<Q2_K> values(block);
  CHECK(values[209] == 0.5f * 10 * 3 - 0.25f * 7);
  CHECK(values[208] == -0.25f * 7);
  CHECK(values[207] == 0);
}

TEST_CASE("Q3_K collects a code from two places and a scale from two others") {
  Q3_K::Block block = {};
  block.d = to_half(0.5f);
  block.scales[1] = 0x90;       // scale 9: low bits 9
  block.scales[9] = 3 << 4;     // scale 9: high bits 3
  block.pairs[32 + 16] = 0x02;  // half 1, quarter 0, j 16: value 144, group 9
  block.high[16] = 1 << 4;      // bit 4 * 1 + 0
  block.high[17] = 1 << 4;
  const Values<Q3_K> values(block);
  CHECK(values[144] == 0.5f * (9 + 48 - 32) * (2 + 4 - 4));
  CHECK(values[145] == 0);
  CHECK(values[146] == 0.5f * (9 + 48 - 32) * -4);
  CHECK(values[0] == 0.5f * -32 * -4);
}

TEST_CASE("Q5_K is Q4_K with a fifth bit per group") {
  Q5_K::Block block = {};
  block.d = to_half(0.5f);
  block.dmin = to_half(0.25f);
  block.scales[1] = 3 | (2 << 6);    // scale 1 = 3, upper bits of scale 5
  block.scales[5] = 7 | (1 << 6);    // min 1 = 7, upper bits of min 5
  block.scales[9] = 5 | (6 << 4);    // scale 5 = 32 + 5, min 5 = 16 + 6
  block.nibbles[2] = 0x90;           // value 34, group 1
  block.nibbles[2 * 32 + 4] = 0xB0;  // value 164, group 5
  block.high[4] = 1 << 5;
  const Values<Q5_K> values(block);
  CHECK(values[34] == 0.5f * 3 * 9 - 0.25f * 7);
  CHECK(values[164] == 0.5f * 37 * (16 + 11) - 0.25f * 22);
  CHECK(values[163] == -0.25f * 22);
}

TEST_CASE("TQ1_0 has five ternary digits in a byte") {
  TQ1_0::Block block = {};
  block.d = to_half(0.5f);
  const auto byte = [](int a, int b, int c, int d, int e) {
    return static_cast<std::uint8_t>((((((a * 3 + b) * 3 + c) * 3 + d) * 3 + e) * 256 + 242) / 243);
  };
  block.digits[1] = byte(2, 0, 1, 2, 1);
  block.digits[32 + 3] = byte(1, 2, 1, 0, 0);
  block.digits[48 + 2] = byte(0, 2, 0, 1, 0);
  const Values<TQ1_0> values(block);
  CHECK(values[1] == 0.5f);
  CHECK(values[33] == -0.5f);
  CHECK(values[65] == 0);
  CHECK(values[97] == 0.5f);
  CHECK(values[129] == 0);
  CHECK(values[160 + 3] == 0);
  CHECK(values[160 + 16 + 3] == 0.5f);
  CHECK(values[160 + 64 + 3] == -0.5f);
  CHECK(values[240 + 2] == -0.5f);
  CHECK(values[240 + 4 + 2] == 0.5f);
  CHECK(values[240 + 12 + 2] == 0);
}

TEST_CASE("TQ2_0 has four ternary codes in a byte") {
  TQ2_0::Block block = {};
  block.d = to_half(0.5f);
  block.pairs[32 + 5] = 0b11100100;
  const Values<TQ2_0> values(block);
  for (std::size_t c = 0; c < 4; ++c) CHECK(values[128 + 32 * c + 5] == 0.5f * static_cast<float>(c) - 0.5f);
}

TEST_CASE("Q1_0 has a sign per value") {
  Q1_0::Block block = {to_half(0.5f), {}};
  block.bits[9] = 0x40;
  const Values<Q1_0> values(block);
  CHECK(values[78] == 0.5f);
  CHECK(values[77] == -0.5f);
}

TEST_CASE("Q2_0 has four neighbours in a byte") {
  Q2_0::Block block = {to_half(0.5f), {}};
  block.pairs[15] = 0b11100100;
  const Values<Q2_0> values(block);
  for (std::size_t c = 0; c < 4; ++c) CHECK(values[60 + c] == 0.5f * static_cast<float>(c) - 0.5f);
}

TEST_CASE("MXFP4 scales four-bit floats by powers of two, down to the subnormal ones") {
  MXFP4::Block block = {127, {}};
  const float numbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::uint8_t j = 0; j < 8; ++j) block.nibbles[j] = static_cast<std::uint8_t>(j | (j + 8) << 4);
  const Values<MXFP4> values(block);
  for (std::size_t j = 0; j < 8; ++j) {
    CHECK(values[j] == numbers[j]);
    CHECK(values[16 + j] == -numbers[j]);
  }
  for (const int exponent : {0, 1, 2, 126, 200, 254}) {
    block.exponent = static_cast<std::uint8_t>(exponent);
    CHECK(Values<MXFP4>(block)[2] == std::ldexp(1.0f, exponent - 127));
  }
}

TEST_CASE("NVFP4 scales sixteen four-bit floats by an eight-bit float") {
  NVFP4::Block block = {};
  block.scales[2] = 0x38;           // 1
  block.scales[3] = 0x7E;           // 448
  block.nibbles[2 * 8 + 3] = 0x7F;  // values 35 and 43
  block.nibbles[3 * 8 + 7] = 0x21;  // values 55 and 63
  const Values<NVFP4> values(block);
  CHECK(values[35] == -6);
  CHECK(values[43] == 6);
  CHECK(values[55] == 448 * 0.5f);
  CHECK(values[63] == 448);
  block.scales[2] = 0x7F;
  CHECK(Values<NVFP4>(block)[43] == 0);
  block.scales[2] = 0x03;  // subnormal: 3 / 8 * 2^-6
  CHECK(Values<NVFP4>(block)[43] == 6 * 0x3p-9f);
}

TEST_CASE("NF4 keeps zero and its largest magnitude, and puts every value on a neighbouring level") {
  float source[32];
  for (std::size_t i = 0; i < 32; ++i) source[i] = std::sin(static_cast<float>(i) * 0.7f);
  source[5] = 0;
  source[9] = -2;
  NF4::Block block;
  NF4::encode(source, block);
  const Values<NF4> values(block);
  CHECK(values[5] == 0);
  CHECK(values[9] == -2);
  for (std::size_t i = 0; i < 32; ++i) CHECK(std::fabs(values[i] - source[i]) <= 2 * 0.152f);
  for (const float level : NF4::levels) CHECK(NF4::levels[NF4::nearest(level)] == level);
  CHECK(NF4::nearest(0.9f) == 15);
  CHECK(NF4::nearest(0.8f) == 14);
}

TEST_CASE("single numbers are rounded to floats from any address") {
  const auto decoded = [](auto format, auto number) {
    using F = typename decltype(format)::type;
    unsigned char bytes[sizeof(number) + 1];
    std::memcpy(bytes + 1, &number, sizeof(number));
    float value = 0;
    F::decode(*reinterpret_cast<const typename F::Block*>(bytes + 1), &value);
    return value;
  };
  CHECK(decoded(Type<F64>(), 0.1) == 0.1f);
  CHECK(decoded(Type<F64>(), -1e300) == -std::numeric_limits<float>::infinity());
  CHECK(decoded(Type<I8>(), std::int8_t{-128}) == -128);
  CHECK(decoded(Type<I16>(), std::int16_t{-32768}) == -32768);
  CHECK(decoded(Type<I32>(), std::int32_t{(1 << 24) + 1}) == 0x1p24f);
  CHECK(decoded(Type<I64>(), std::int64_t{1} << 40) == 0x1p40f);
}

}  // namespace
}  // namespace mica::format::layout_test
