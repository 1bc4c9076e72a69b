// SPDX-License-Identifier: Apache-2.0
//
// KV elements: what a tile gives back, and that a slot leaves its neighbours alone.

#include "kernel/guarded.hpp"
#include "mica/format/lists.hpp"

#include <cmath>

namespace mica::kv_element_test {
namespace {

/// The relative step of an element at the largest number of a head.
template <class E>
double step() {
  if (std::is_same_v<E, format::F32>) return 0;
  if (std::is_same_v<E, format::F16>) return 0x1p-11;
  if (std::is_same_v<E, format::BF16>) return 0x1p-8;
  if constexpr (format::is_block_element<E>) {
    // Half a step of the codes between plus and minus the largest number, or a clipped one; rotated back it is the
    // error of many numbers that meets in one.
    return (E::high_words == 2 ? 0.035 : E::high_words == 1 ? 0.07 : 0.15) * (E::rotated ? 3 : 1);
  }
  return 0.5 / 127 + 0x1p-11;
}

TEST_CASE_TEMPLATE("a tile gives back what was stored, within its step, for any width", E, format::F16,
                   format::Q8_0, format::F32, format::BF16, format::Plain<format::Q6_0>,
                   format::Rotated<format::Q6_0>, format::Plain<format::Q5_1>, format::Plain<format::Q5_0>,
                   format::Plain<format::Q4_1>, format::Plain<format::Q4_0>, format::Plain<format::IQ4_NL>,
                   format::Rotated<format::Q5_1>, format::Rotated<format::Q4_0>) {
  CounterRng rng(1);
  for (const std::size_t head_dim : std::initializer_list<std::size_t>{1, 2, 5, 8, 20, 64, 96, 129}) {
    CHECK(E::key_tile_bytes(head_dim) % 32 == 0);
    CHECK(E::value_tile_bytes(head_dim) % 32 == 0);
    test::Guarded<std::byte> keys(E::key_tile_bytes(head_dim)), values(E::value_tile_bytes(head_dim));
    std::vector<float> heads(16 * head_dim), out(head_dim);
    test::fill_noise(heads, rng);
    for (std::size_t slot = 16; slot-- > 0;) {
      E::store_key(keys.data(), slot, head_dim, heads.data() + slot * head_dim);
      E::store_value(values.data(), slot, head_dim, heads.data() + slot * head_dim);
    }
    for (std::size_t slot = 0; slot < 16; ++slot) {
      const float* const head = heads.data() + slot * head_dim;
      float largest = 0;
      for (std::size_t i = 0; i < head_dim; ++i) largest = std::max(largest, std::fabs(head[i]));
      for (const bool is_key : {true, false}) {
        is_key ? E::load_key(keys.data(), slot, head_dim, out.data())
               : E::load_value(values.data(), slot, head_dim, out.data());
        for (std::size_t i = 0; i < head_dim; ++i) {
          INFO("head_dim " << head_dim << " slot " << slot);
          REQUIRE(std::fabs(static_cast<double>(out[i]) - static_cast<double>(head[i])) <=
                  step<E>() * static_cast<double>(largest) * 1.0001);
        }
      }
    }
  }
}

TEST_CASE("an int8 tile holds dimensions in fours, padded with zeros") {
  test::Guarded<std::byte> tile(format::Q8_0::key_tile_bytes(6));
  std::fill(tile.begin(), tile.end(), std::byte{0x55});
  const float head[6] = {1, 2, 3, 4, 5, 127};
  format::Q8_0::store_key(tile.data(), 3, 6, head);
  const auto* const codes = reinterpret_cast<const std::int8_t*>(tile.data());
  CHECK(codes[3 * 4 + 0] == 1);
  CHECK(codes[3 * 4 + 3] == 4);
  CHECK(codes[64 + 3 * 4 + 1] == 127);
  CHECK(codes[64 + 3 * 4 + 2] == 0);
  CHECK(codes[64 + 3 * 4 + 3] == 0);
  CHECK(codes[4 * 4] == 0x55);
  CHECK(to_float(format::Q8_0::scales(tile.data(), 6)[3]) == 1.0f);
}

TEST_CASE("an int8 tile of values holds tokens in fours") {
  test::Guarded<std::byte> tile(format::Q8_0::value_tile_bytes(6));
  std::fill(tile.begin(), tile.end(), std::byte{0x55});
  const float head[6] = {1, 2, 3, 4, 5, 127};
  format::Q8_0::store_value(tile.data(), 6, 6, head);
  const auto* const codes = reinterpret_cast<const std::int8_t*>(tile.data());  // (4, 8, 4)
  CHECK(codes[32 + 0 * 4 + 2] == 1);
  CHECK(codes[32 + 5 * 4 + 2] == 127);
  CHECK(codes[32 + 6 * 4 + 2] == 0);
  CHECK(codes[32 + 7 * 4 + 2] == 0);
  CHECK(codes[32 + 0 * 4 + 1] == 0x55);
  CHECK(codes[64 + 0 * 4 + 2] == 0x55);
  CHECK(to_float(format::Q8_0::scales(tile.data(), 6)[6]) == 1.0f);
}

TEST_CASE("a head of zeros is stored as zeros") {
  test::Guarded<std::byte> tile(format::Q8_0::value_tile_bytes(4));
  const float zeros[4] = {0, -0.0f, 0, 0};
  float out[4] = {1, 1, 1, 1};
  format::Q8_0::store_value(tile.data(), 0, 4, zeros);
  format::Q8_0::load_value(tile.data(), 0, 4, out);
  for (const float v : out) CHECK(v == 0.0f);
}

}  // namespace
}  // namespace mica::kv_element_test
