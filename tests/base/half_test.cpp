// SPDX-License-Identifier: Apache-2.0

#include "mica/base/half.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace mica::half_test {
namespace {

static_assert(to_half(1.0f).bits == 0x3C00 && to_half(-2.0f).bits == 0xC000 &&
              to_half(65504.0f).bits == 0x7BFF);
static_assert(to_half(65519.996f).bits == 0x7BFF && to_half(65520.0f).bits == 0x7C00);
static_assert(to_half(0x1p-24f).bits == 1 && to_half(0x1p-25f).bits == 0 && to_half(0x1.8p-25f).bits == 1);
static_assert(to_bfloat(1.0f).bits == 0x3F80 && to_bfloat(3.389e38f).bits == 0x7F7F &&
              to_bfloat(3.4e38f).bits == 0x7F80);

TEST_CASE("every half becomes a float and itself again, a NaN some NaN") {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half h{static_cast<std::uint16_t>(bits)};
    const float f = to_float(h);
    const Half back = to_half(f);
    const bool nan = (bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0;
    wrong += (nan ? !(f != f) || !(to_float(back) != to_float(back)) : back.bits != h.bits) ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every bfloat becomes a float and itself again, a NaN some NaN") {
  std::size_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bfloat b{static_cast<std::uint16_t>(bits)};
    const float f = to_float(b);
    const Bfloat back = to_bfloat(f);
    wrong += (f != f ? !(to_float(back) != to_float(back)) : back.bits != b.bits) ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("half floats have the value of their bits") {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const int exponent = static_cast<int>(bits >> 10);
    const double fraction = bits & 0x3FF;
    const double value =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    REQUIRE(static_cast<double>(to_float(Half{static_cast<std::uint16_t>(bits)})) == value);
  }
}

TEST_CASE("a float between two halves goes to the nearer one, from the middle to the even one") {
  for (std::uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = to_float(Half{bits}), high = to_float(Half{static_cast<std::uint16_t>(bits + 1)});
    const float middle = low + (high - low) / 2;  // exact: a float has 13 bits more
    const std::uint16_t even = static_cast<std::uint16_t>(bits + (bits & 1));
    REQUIRE(to_half(middle).bits == even);
    REQUIRE(to_half(std::nextafter(middle, 0.0f)).bits == bits);
    REQUIRE(to_half(std::nextafter(middle, 1e6f)).bits == bits + 1);
    REQUIRE(to_half(-middle).bits == (even | 0x8000));
  }
}

TEST_CASE("a float between two bfloats goes to the nearer one, from the middle to the even one") {
  for (std::uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    const std::uint32_t middle = (bits << 16) + 0x8000;
    REQUIRE(to_bfloat(std::bit_cast<float>(middle)).bits == bits + (bits & 1));
    REQUIRE(to_bfloat(std::bit_cast<float>(middle - 1)).bits == bits);
    REQUIRE(to_bfloat(std::bit_cast<float>(middle + 1)).bits == bits + 1);
  }
}

TEST_CASE("infinities stay infinite") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  CHECK(to_float(to_half(inf)) == inf);
  CHECK(to_float(to_half(-inf)) == -inf);
  CHECK(to_float(to_bfloat(-inf)) == -inf);
  CHECK(to_float(to_half(1e10f)) == inf);
}

}  // namespace
}  // namespace mica::half_test
