// SPDX-License-Identifier: Apache-2.0
//
// Tiles with scales on both axes: where bytes lie, what codes lose, and that tokens do not change each other
// more than they must.

#include "mica/format/kvarn.hpp"

#include "kernel/guarded.hpp"

#include <cmath>
#include <limits>

namespace mica::kvarn_test {
namespace {

#define MICA_KVARN format::KVARN4, format::KVARN3, format::KVARN2

/// More than the relative error of normal numbers in codes of E, and less than half more.
template <class E>
constexpr double coarse = E::code_bits == 4   ? 0.1
                          : E::code_bits == 3 ? 0.2
                                              : 0.4;

/// About normal numbers: sums of twelve uniform ones.
float normal(CounterRng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return static_cast<float>(sum);
}

std::vector<float> normal_heads(std::size_t head_dim, CounterRng& rng) {
  std::vector<float> heads(16 * head_dim);
  for (float& x : heads) x = normal(rng);
  return heads;
}

/// What a tile gives back of heads that it stored.
template <class E>
std::vector<float> stored(const std::vector<float>& heads, bool keys) {
  const std::size_t head_dim = heads.size() / 16;
  test::Guarded<std::byte> tile(keys ? E::key_tile_bytes(head_dim) : E::value_tile_bytes(head_dim));
  keys ? E::store_keys(tile.data(), head_dim, heads.data())
       : E::store_values(tile.data(), head_dim, heads.data());
  std::vector<float> out(heads.size());
  for (std::size_t slot = 0; slot < 16; ++slot) {
    float* const head = out.data() + slot * head_dim;
    keys ? E::load_key(tile.data(), slot, head_dim, head) : E::load_value(tile.data(), slot, head_dim, head);
  }
  return out;
}

/// The rms of a - b in part of the numbers, relative to that of a.
template <class InPart>
double error(const std::vector<float>& a, const std::vector<float>& b, InPart&& in_part) {
  double missed = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!in_part(i)) continue;
    const double x = static_cast<double>(a[i]), miss = x - static_cast<double>(b[i]);
    missed += miss * miss;
    all += x * x;
  }
  return std::sqrt(missed / all);
}
double error(const std::vector<float>& a, const std::vector<float>& b) {
  return error(a, b, [](std::size_t) { return true; });
}

TEST_CASE_TEMPLATE("normal numbers lose about what the best levels for them lose", E, MICA_KVARN) {
  // 0.0975, 0.186 and 0.343 without a trellis and with one scale for all (J. Max, 1960).
  const double bound = E::code_bits == 4 ? 0.078 : E::code_bits == 3 ? 0.156 : 0.315;
  CounterRng rng(1);
  for (const std::size_t head_dim : std::initializer_list<std::size_t>{20, 64, 80, 256}) {
    CAPTURE(head_dim);
    const auto heads = normal_heads(head_dim, rng);
    for (const bool keys : {true, false}) {
      const double e = error(heads, stored<E>(heads, keys));
      CHECK(e < bound);
      CHECK(e > bound / 4);
    }
  }
}

TEST_CASE_TEMPLATE("a large or shifted channel of the keys costs the others nothing", E, MICA_KVARN) {
  CounterRng rng(2);
  constexpr std::size_t head_dim = 64;
  const auto plain = normal_heads(head_dim, rng);
  auto heads = plain;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (i % head_dim == 5) heads[i] *= 8;
    if (i % head_dim == 40) heads[i] += 30;
  }
  const auto others = [](std::size_t i) { return i % head_dim != 5 && i % head_dim != 40; };
  const auto out = stored<E>(heads, true);
  CHECK(error(heads, out, others) < 1.15 * error(plain, stored<E>(plain, true), others));
  CHECK(error(heads, out, [](std::size_t i) { return i % head_dim == 5; }) < 1.2 * coarse<E>);
  CHECK(error(heads, out, [](std::size_t i) { return i % head_dim == 40; }) < 0.021);
}

TEST_CASE_TEMPLATE("a small or a large token is as exact as the others", E, MICA_KVARN) {
  CounterRng rng(3);
  constexpr std::size_t head_dim = 64;
  for (const bool keys : {true, false}) {
    for (const float factor : {0.02f, 50.0f}) {
      auto heads = normal_heads(head_dim, rng);
      const auto one = [](std::size_t i) { return i / head_dim == 9; };
      for (std::size_t i = 0; i < heads.size(); ++i) heads[i] *= one(i) ? factor : 1.0f;
      const auto out = stored<E>(heads, keys);
      CAPTURE(keys);
      CAPTURE(factor);
      const double bound = coarse<E>;
      // The mean of keys of a common size is no smaller than an eighth of them, and a small key has it too.
      if (!keys || factor > 1) CHECK(error(heads, out, one) < bound);
      CHECK(error(heads, out, [&](std::size_t i) { return !one(i); }) <
            (keys && factor > 1 ? 4 * bound : bound));
    }
  }
}

TEST_CASE_TEMPLATE("zeros stay zeros, and keys that are all alike stay about what they are", E, MICA_KVARN) {
  std::vector<float> heads(16 * 40);
  CHECK(stored<E>(heads, true) == heads);
  CHECK(stored<E>(heads, false) == heads);
  for (const float alike : {1.0f, -0.37f, 1234.5f, 3e-3f}) {
    std::fill(heads.begin(), heads.end(), alike);
    for (const float x : stored<E>(heads, true)) CHECK(std::fabs(x - alike) <= std::fabs(alike) / 50);
  }
}

TEST_CASE_TEMPLATE("a number that is not finite shows in its token and nowhere else", E, MICA_KVARN) {
  CounterRng rng(4);
  constexpr std::size_t head_dim = 70;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e6f}) {
    auto heads = normal_heads(head_dim, rng);
    heads[5 * head_dim + 33] = bad;
    for (const bool keys : {true, false}) {
      const auto out = stored<E>(heads, keys);
      for (std::size_t i = 0; i < out.size(); ++i) CHECK(std::isfinite(out[i]) == (i / head_dim != 5));
    }
  }
  for (const bool keys : {true, false}) {
    for (const float x :
         stored<E>(std::vector<float>(16 * 32, std::numeric_limits<float>::quiet_NaN()), keys))
      CHECK(std::isnan(x));
  }
}

TEST_CASE("bytes of a tile lie where the drawing says") {
  using E = format::KVARN3;
  std::vector<std::byte> keys(E::key_tile_bytes(40)), values(E::value_tile_bytes(40));
  CHECK(keys.size() == 2 * (192 + 32 + 16));
  CHECK(values.size() == 2 * 16 * 12 + 32);  // the scales, and what is left to 32 bytes
  // Channel 37 of token 7: octet 4, the second plane, place 1: the third level of four.
  keys[4 * 48 + 16 + 7] = std::byte{0b10'00};
  keys[4 * 48 + 32 + 7] = std::byte{1 << 5 | 1 << 4 | 1 << 3};  // the paths of channels 35 to 37
  keys[2 * 192 + 37] = std::byte{2 << 4 | 9};                   // half, mean 13 / 8
  for (const std::size_t bit : {5, 7})
    keys[2 * 192 + 32 + bit] |= std::byte{128};    // 160: means have a scale of 1/8
  keys[2 * (192 + 32) + 16 + 7] = std::byte{168};  // the token: 2 / 8
  std::vector<float> out(40);
  E::load_key(keys.data(), 7, 40, out.data());
  CHECK(E::key_code(keys.data(), 7, 37) == 5);
  CHECK(E::key_level(keys.data(), 7, 37) == format::detail::normal_levels4[4 * 2 + 1]);
  CHECK(out[37] == (13 + 2 * 18 * 0.5f) / 8);

  // Value 38 of token 3: byte 6 of its group's pairs; value 32 comes after value 63.
  std::byte* const bytes = values.data() + 16 * 12 + 3 * 12;
  bytes[6] = std::byte{0b11};
  bytes[8] = std::byte{1 << 6};
  bytes[11] = std::byte{1 << 7};
  CHECK(E::value_code(values.data(), 3, 38) == 7);
  CHECK(E::value_code(values.data(), 3, 37) == 0);
  CHECK(E::value_level(values.data(), 3, 38) == format::detail::normal_levels4[4 * 3 + 2]);
  CHECK(E::value_level(values.data(), 3, 32) == format::detail::normal_levels4[1]);
  CHECK(E::value_level(values.data(), 3, 33) == format::detail::normal_levels4[2]);
  CHECK(E::value_codes(values.data(), 1, 3) == bytes);
  CHECK(static_cast<const void*>(E::value_scales(values.data(), 40, 1)) == values.data() + 2 * 192);

  for (const std::size_t head_dim : {128u, 256u}) {
    CHECK(format::KVARN4::key_tile_bytes(head_dim) * 4 == 19 * 2 * head_dim);  // 4.75 bits
    CHECK(format::KVARN4::value_tile_bytes(head_dim) * 8 == 33 * 2 * head_dim);
    CHECK(format::KVARN3::key_tile_bytes(head_dim) * 4 == 15 * 2 * head_dim);
    CHECK(format::KVARN3::value_tile_bytes(head_dim) * 8 == 25 * 2 * head_dim);
    CHECK(format::KVARN2::key_tile_bytes(head_dim) * 4 == 11 * 2 * head_dim);
    CHECK(format::KVARN2::value_tile_bytes(head_dim) * 8 == 17 * 2 * head_dim);
  }
}

TEST_CASE_TEMPLATE("every code of a tile has its own bits", E, MICA_KVARN) {
  CounterRng rng(5);
  constexpr std::size_t head_dim = 40;
  std::vector<std::byte> keys(E::key_tile_bytes(head_dim)), values(E::value_tile_bytes(head_dim));
  std::vector<unsigned> codes(16 * head_dim);
  for (unsigned& code : codes) code = static_cast<unsigned>(rng.next() % (1u << E::code_bits));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    E::set_key_code(keys.data(), i / head_dim, i % head_dim, codes[i]);
    E::set_value_code(values.data(), i / head_dim, i % head_dim, codes[i]);
  }
  for (std::size_t i = 0; i < codes.size(); ++i) {
    CHECK(E::key_code(keys.data(), i / head_dim, i % head_dim) == codes[i]);
    CHECK(E::value_code(values.data(), i / head_dim, i % head_dim) == codes[i]);
  }
}

}  // namespace
}  // namespace mica::kvarn_test
