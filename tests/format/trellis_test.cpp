// SPDX-License-Identifier: Apache-2.0
//
// Codes whose neighbours choose their levels: the search finds what a search over all paths finds, or nearly.

#include "mica/format/detail/trellis.hpp"

#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mica::trellis_test {
namespace {

constexpr std::int8_t levels[8] = {-125, -78, -44, -14, 14, 44, 78, 125};
using Codes = format::detail::Trellis<levels>;
using Path = format::detail::TrellisPath;

float random_number(CounterRng& rng) { return static_cast<float>(rng.uniform() - 0.5) * 250; }

/// The squared error of numbers as codes.
float error(const float (&numbers)[32], std::size_t count, const std::uint8_t (&codes)[32]) {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float off = numbers[i] - Codes::level(codes[i], Codes::path_of(codes), i);
    sum += off * off;
  }
  return sum;
}

TEST_CASE("a path lies over its group as over a ring") {
  const Path path{0x80000001};
  CHECK(path.at(0) == 3);   // itself and the number before it
  CHECK(path.at(1) == 3);   // the number before it, and two before it
  CHECK(path.at(2) == 2);   // two before it
  CHECK(path.at(31) == 2);  // itself
  CHECK(path.at(30) == 0);
}

TEST_CASE("levels of any path come back as they are") {
  CounterRng rng(1);
  for (int turn = 0; turn < 200; ++turn) {
    std::uint8_t codes[32], found[32];
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(rng.next() % 4);
    float numbers[32];
    for (std::size_t i = 0; i < 32; ++i) numbers[i] = Codes::level(codes[i], Codes::path_of(codes), i);
    Codes search(numbers, 32);
    CHECK(search.least_error() == 0);
    search.encode(found);
    CHECK(error(numbers, 32, found) == 0);
  }
}

TEST_CASE("errors are about the least, never less than the bound, and less than without a trellis") {
  CounterRng rng(2);
  double bound = 0, all = 0, four_levels = 0;
  for (int turn = 0; turn < 300; ++turn) {
    float numbers[32];
    for (float& x : numbers) x = random_number(rng);
    Codes search(numbers, 32);
    const float least = search.least_error();
    std::uint8_t codes[32];
    search.encode(codes);
    const float missed = error(numbers, 32, codes);
    CHECK(missed >= least * 0.9999f);
    bound += static_cast<double>(least);
    all += static_cast<double>(missed);
    for (const float x : numbers) {  // even steps of a quarter of the range
      const double off = static_cast<double>(std::fabs(std::fabs(x) - 62.5f) - 0.0f);
      four_levels += std::min(off, 62.5) * std::min(off, 62.5);
    }
  }
  CHECK(all < 1.12 * bound);
  CHECK(all < 0.85 * four_levels);
}

TEST_CASE("no change of one path bit reduces the error of most groups") {
  CounterRng rng(3);
  int better = 0;
  for (int turn = 0; turn < 100; ++turn) {
    float numbers[32];
    for (float& x : numbers) x = random_number(rng);
    Codes search(numbers, 32);
    static_cast<void>(search.least_error());
    std::uint8_t codes[32];
    search.encode(codes);
    const float missed = error(numbers, 32, codes);
    for (std::size_t bit = 0; bit < 32; ++bit) {
      std::uint8_t other[32];
      std::copy_n(codes, 32, other);
      other[bit] ^= 1;
      for (std::size_t i = bit; i < bit + 3; ++i) {  // the best upper bit on the changed path
        std::uint8_t& code = other[i % 32];
        code ^= 2;
        const float flipped = error(numbers, 32, other);
        code ^= 2;
        if (flipped < error(numbers, 32, other)) code ^= 2;
      }
      better += error(numbers, 32, other) < missed * 0.9999f ? 1 : 0;
    }
  }
  CHECK(better <= 32);  // of 3,200: where the ends of the best path do not meet
}

TEST_CASE("numbers beyond the count change nothing") {
  CounterRng rng(4);
  for (const std::size_t count : {1u, 7u, 31u}) {
    float numbers[32], others[32];
    for (std::size_t i = 0; i < 32; ++i) {
      numbers[i] = random_number(rng);
      others[i] = i < count ? numbers[i] : -1e6f;
    }
    Codes a(numbers, count), b(others, count);
    CHECK(a.least_error() == b.least_error());
    std::uint8_t one[32], two[32];
    a.encode(one);
    b.encode(two);
    CHECK(error(numbers, count, one) == error(numbers, count, two));
  }
}

}  // namespace
}  // namespace mica::trellis_test
