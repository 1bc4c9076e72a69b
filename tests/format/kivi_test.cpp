// SPDX-License-Identifier: Apache-2.0
//
// Tiles with a scale for each channel: where bytes lie, and what the codes lose, beside the plain formula in
// doubles.

#include "mica/format/kivi.hpp"

#include "kernel/guarded.hpp"

#include <cmath>
#include <limits>

namespace mica::kivi_test {
namespace {

#define MICA_KIVI format::KIVI4, format::KIVI2

/// Rounding to even steps between the least and the greatest number of a group, with a scale and a minimum in
/// full: the sum of squared errors of numbers[first], numbers[first + stride], ...
double plain_error(const std::vector<float>& numbers, std::size_t first, std::size_t stride, std::size_t n,
                   int code_max) {
  double low = 1e30, high = -1e30, sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    low = std::min(low, static_cast<double>(numbers[first + i * stride]));
    high = std::max(high, static_cast<double>(numbers[first + i * stride]));
  }
  const double step = (high - low) / code_max;
  for (std::size_t i = 0; i < n && step > 0; ++i) {
    const double x = static_cast<double>(numbers[first + i * stride]);
    const double off = x - low - step * std::round((x - low) / step);
    sum += off * off;
  }
  return sum;
}

/// Sixteen heads: some channels far from zero, some large, most about normal.
std::vector<float> heads_with_outliers(std::size_t head_dim, CounterRng& rng) {
  std::vector<float> heads(16 * head_dim);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const std::size_t channel = i % head_dim;
    heads[i] = test::noise(rng) * (channel % 7 == 3 ? 20.0f : 1.0f) + (channel % 5 == 1 ? -9.0f : 0.0f);
  }
  return heads;
}

template <class E>
std::vector<float> loaded(const std::byte* tile, std::size_t head_dim, bool keys) {
  std::vector<float> out(16 * head_dim);
  for (std::size_t slot = 0; slot < 16; ++slot) {
    float* const head = out.data() + slot * head_dim;
    keys ? E::load_key(tile, slot, head_dim, head) : E::load_value(tile, slot, head_dim, head);
  }
  return out;
}

double squared(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double off = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += off * off;
  }
  return sum;
}

TEST_CASE_TEMPLATE("codes lose about what even steps with a scale and a minimum in full lose", E, MICA_KIVI) {
  CounterRng rng(1);
  for (const std::size_t head_dim : std::initializer_list<std::size_t>{1, 3, 20, 32, 64, 80, 128}) {
    CAPTURE(head_dim);
    double keys_lost = 0, keys_plain = 0, values_lost = 0, values_plain = 0;
    for (int turn = 0; turn < 20; ++turn) {
      const auto heads = heads_with_outliers(head_dim, rng);
      test::Guarded<std::byte> keys(E::key_tile_bytes(head_dim)), values(E::value_tile_bytes(head_dim));
      E::store_keys(keys.data(), head_dim, heads.data());
      E::store_values(values.data(), head_dim, heads.data());
      keys_lost += squared(heads, loaded<E>(keys.data(), head_dim, true));
      values_lost += squared(heads, loaded<E>(values.data(), head_dim, false));
      for (std::size_t channel = 0; channel < head_dim; ++channel)
        keys_plain += plain_error(heads, channel, head_dim, 16, E::Group::code_max);
      for (std::size_t slot = 0; slot < 16; ++slot) {
        for (std::size_t first = 0; first < head_dim; first += 32) {
          const std::size_t n = std::min<std::size_t>(32, head_dim - first);
          values_plain += plain_error(heads, slot * head_dim + first, 1, n, E::Group::code_max);
        }
      }
    }
    CHECK(keys_lost > 0);
    CHECK(keys_lost < 1.15 * keys_plain);
    // One number alone is its own minimum there; here a zero of eight bits reaches it within a part of 254.
    if (head_dim > 3) CHECK(values_lost < 1.1 * values_plain);
    if (head_dim == 1)
      CHECK(values_lost <
            0.004 * 0.004 * squared(heads_with_outliers(320, rng), std::vector<float>(16 * 320)));
  }
}

TEST_CASE_TEMPLATE("no number is off by much more than half a step of its group", E, MICA_KIVI) {
  CounterRng rng(2);
  constexpr std::size_t head_dim = 64;
  for (int turn = 0; turn < 50; ++turn) {
    const auto heads = heads_with_outliers(head_dim, rng);
    std::vector<std::byte> tile(E::key_tile_bytes(head_dim));
    E::store_keys(tile.data(), head_dim, heads.data());
    const auto back = loaded<E>(tile.data(), head_dim, true);
    for (std::size_t channel = 0; channel < head_dim; ++channel) {
      float low = heads[channel], high = low;
      for (std::size_t slot = 0; slot < 16; ++slot) {
        low = std::min(low, heads[slot * head_dim + channel]);
        high = std::max(high, heads[slot * head_dim + channel]);
      }
      // A scale of two eighths less than the range asks for cuts an eighth of the range off at either end.
      const float max = (high - low) * (0.5f / E::Group::code_max + 0.15f);
      for (std::size_t slot = 0; slot < 16; ++slot)
        CHECK(std::fabs(back[slot * head_dim + channel] - heads[slot * head_dim + channel]) <= max);
    }
  }
}

TEST_CASE("bytes of a tile lie where the drawing says") {
  std::vector<std::byte> keys(format::KIVI2::key_tile_bytes(20)), values(format::KIVI2::value_tile_bytes(70));
  CHECK(keys.size() == 5 * 16 + 32 * 2 + 16);   // planes, spans, and up to a multiple of 32
  keys[2 * 16 + 7] = std::byte{0b11'10'01'00};  // channels 8 to 11 of token 7
  for (std::size_t channel = 8; channel < 12; ++channel) {
    keys[5 * 16 + 2 * channel] = static_cast<std::byte>(160);  // a scale of 1
    keys[5 * 16 + 2 * channel + 1] = std::byte{0xFD};          // -3
  }
  std::vector<float> out(70);
  format::KIVI2::load_key(keys.data(), 7, 20, out.data());
  for (std::size_t code = 0; code < 4; ++code) CHECK(out[8 + code] == 4 * static_cast<float>(code) - 3);
  CHECK(out[7] == 0);
  CHECK(out[12] == 0);

  CHECK(values.size() == 2 * 256 + 4 * 32);       // two blocks of 64, four groups
  values[256 + 5 * 16 + 2] = std::byte{0b10};     // number 66 of token 5
  values[512 + 2 * 32 + 5 * 2] = std::byte{168};  // its group, a scale of 2
  values[512 + 2 * 32 + 5 * 2 + 1] = std::byte{1};
  format::KIVI2::load_value(values.data(), 5, 70, out.data());
  CHECK(out[66] == 18);
  CHECK(out[65] == 2);
  CHECK(out[63] == 0);

  CHECK(format::KIVI4::key_tile_bytes(128) * 8 == 5 * 16 * 128);
  CHECK(format::KIVI2::key_tile_bytes(128) * 8 == 3 * 16 * 128);
  CHECK(format::KIVI4::value_tile_bytes(128) * 16 == 9 * 16 * 128);
  CHECK(format::KIVI2::value_tile_bytes(128) * 16 == 5 * 16 * 128);
}

TEST_CASE_TEMPLATE("zeros stay zeros, and numbers that are all alike stay what they are", E, MICA_KIVI) {
  std::vector<float> heads(16 * 40);
  std::vector<std::byte> keys(E::key_tile_bytes(40)), values(E::value_tile_bytes(40));
  E::store_keys(keys.data(), 40, heads.data());
  CHECK(loaded<E>(keys.data(), 40, true) == heads);
  E::store_values(values.data(), 40, heads.data());
  CHECK(loaded<E>(values.data(), 40, false) == heads);
  for (const float alike : {1.0f, -0.37f, 1234.5f, 3e-4f}) {
    std::fill(heads.begin(), heads.end(), alike);
    E::store_keys(keys.data(), 40, heads.data());
    for (const float x : loaded<E>(keys.data(), 40, true))
      CHECK(std::fabs(x - alike) <= std::fabs(alike) / 100);
  }
}

TEST_CASE_TEMPLATE("a number that is not finite shows in its group and nowhere else", E, MICA_KIVI) {
  CounterRng rng(3);
  constexpr std::size_t head_dim = 70;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e6f}) {
    auto heads = heads_with_outliers(head_dim, rng);
    heads[5 * head_dim + 33] = bad;
    std::vector<std::byte> keys(E::key_tile_bytes(head_dim)), values(E::value_tile_bytes(head_dim));
    E::store_keys(keys.data(), head_dim, heads.data());
    E::store_values(values.data(), head_dim, heads.data());
    const auto k = loaded<E>(keys.data(), head_dim, true), v = loaded<E>(values.data(), head_dim, false);
    for (std::size_t i = 0; i < heads.size(); ++i) {
      CHECK(std::isfinite(k[i]) == (i % head_dim != 33));
      CHECK(std::isfinite(v[i]) == !(i / head_dim == 5 && i % head_dim / 32 == 1));
    }
  }
}

}  // namespace
}  // namespace mica::kivi_test
