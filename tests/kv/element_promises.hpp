// SPDX-License-Identifier: Apache-2.0
//
// What format/concept.hpp and docs/policies/kv-element.md promise of a KV element, as checks for any: those
// of the library, and yours. In a test case of doctest:
//
//   check_element<MyElement>([](float x) { return std::fabs(x) * 0x1p-4f; });     the most that a number may change
//
// tests/model/kv_same_bits.hpp runs models on it.

#pragma once

#include "mica/base/rng.hpp"
#include "mica/format/concept.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace mica::test {

inline std::vector<float> random_head(std::size_t head_dim, CounterRng& rng) {
  std::vector<float> head(head_dim);
  for (float& x : head) x = static_cast<float>(rng.uniform() * 8 - 4);
  return head;
}

/// A tile gives back what was stored, for every slot and any width of head. tolerance(x): the largest
/// difference that the element may make of x, in a head whose largest magnitude is 4.
template <KvElement E, class Tolerance>
void check_stored(Tolerance&& tolerance) {
  CounterRng rng(3);
  for (const std::size_t head_dim : {1u, 2u, 7u, 63u, 64u, 65u, 128u, 257u, 512u}) {
    CAPTURE(head_dim);
    const std::size_t key_bytes = E::key_tile_bytes(head_dim), value_bytes = E::value_tile_bytes(head_dim);
    CHECK(key_bytes % 32 == 0);
    CHECK(value_bytes % 32 == 0);
    std::vector<std::byte> keys(key_bytes + 1, std::byte{0xA5}), values(value_bytes + 1, std::byte{0xA5});
    std::vector<std::vector<float>> heads;
    for (std::size_t slot = 0; slot < 16; ++slot) {
      heads.push_back(random_head(head_dim, rng));
      E::store_key(keys.data(), slot, head_dim, heads[slot].data());
      E::store_value(values.data(), slot, head_dim, heads[slot].data());
    }
    CHECK(keys.back() == std::byte{0xA5});  // nothing beyond the tile
    CHECK(values.back() == std::byte{0xA5});
    std::vector<float> out(head_dim);
    for (std::size_t slot = 0; slot < 16; ++slot) {
      for (const bool key : {true, false}) {
        key ? E::load_key(keys.data(), slot, head_dim, out.data())
            : E::load_value(values.data(), slot, head_dim, out.data());
        for (std::size_t i = 0; i < head_dim; ++i) {
          CHECK(std::fabs(out[i] - heads[slot][i]) <= tolerance(heads[slot][i]));
        }
      }
    }
  }
}

/// Storing a slot again leaves its neighbours alone.
template <KvElement E>
void check_independence() {
  CounterRng rng(5);
  constexpr std::size_t head_dim = 19;
  std::vector<std::byte> keys(E::key_tile_bytes(head_dim)), values(E::value_tile_bytes(head_dim));
  for (std::size_t slot = 0; slot < 16; ++slot) {
    E::store_key(keys.data(), slot, head_dim, random_head(head_dim, rng).data());
    E::store_value(values.data(), slot, head_dim, random_head(head_dim, rng).data());
  }
  const auto load = [&] {
    std::vector<float> all;
    float out[head_dim];
    for (std::size_t slot = 0; slot < 16; ++slot) {
      if (slot == 8) continue;
      E::load_key(keys.data(), slot, head_dim, out);
      all.insert(all.end(), out, out + head_dim);
      E::load_value(values.data(), slot, head_dim, out);
      all.insert(all.end(), out, out + head_dim);
    }
    return all;
  };
  const auto before = load();
  E::store_key(keys.data(), 8, head_dim, random_head(head_dim, rng).data());
  E::store_value(values.data(), 8, head_dim, random_head(head_dim, rng).data());
  CHECK(load() == before);
}

/// A head of zeros is zeros.
template <KvElement E>
void check_zeros() {
  const std::vector<float> zeros(5);
  std::vector<std::byte> tile(E::key_tile_bytes(5), std::byte{0x7F});
  std::vector<float> out(5, 1.0f);
  E::store_key(tile.data(), 3, 5, zeros.data());
  E::load_key(tile.data(), 3, 5, out.data());
  CHECK(out == zeros);
}

/// A number that is not finite cannot hide.
template <KvElement E>
void check_not_finite() {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    const std::vector<float> head = {1, bad, 2, 3, 4};
    std::vector<std::byte> keys(E::key_tile_bytes(5)), values(E::value_tile_bytes(5));
    std::vector<float> out(5);
    E::store_key(keys.data(), 15, 5, head.data());
    E::load_key(keys.data(), 15, 5, out.data());
    CHECK_FALSE(std::isfinite(out[1]));
    E::store_value(values.data(), 0, 5, head.data());
    E::load_value(values.data(), 0, 5, out.data());
    CHECK_FALSE(std::isfinite(out[1]));
  }
}

/// Two tokens share no byte.
template <KvElement E>
void check_own_bytes() {
  CounterRng rng(11);
  std::vector<std::byte> written(std::max(E::key_tile_bytes(40), E::value_tile_bytes(40)));
  for (std::size_t slot = 0; slot < 16; ++slot) {
    for (const bool key : {true, false}) {
      std::vector<std::byte> ones(written.size(), std::byte{0xFF}), zeros(written.size());
      const auto head = random_head(40, rng);
      for (auto* tile : {&ones, &zeros}) {
        key ? E::store_key(tile->data(), slot, 40, head.data())
            : E::store_value(tile->data(), slot, 40, head.data());
      }
      // A byte that was written whole is the same over ones and over zeros; any other is as it was.
      for (std::size_t i = 0; i < written.size(); ++i) {
        const bool own = ones[i] == zeros[i];
        if (!own) CHECK((ones[i] == std::byte{0xFF} && zeros[i] == std::byte{0}));
        if (!own) continue;
        CHECK((written[i] & std::byte(key ? 1 : 2)) == std::byte{0});
        written[i] |= std::byte(key ? 1 : 2);
      }
    }
  }
}

/// All of it.
template <KvElement E, class Tolerance>
void check_element(Tolerance&& tolerance) {
  check_stored<E>(tolerance);
  check_independence<E>();
  check_zeros<E>();
  check_not_finite<E>();
  check_own_bytes<E>();
}

}  // namespace mica::test
