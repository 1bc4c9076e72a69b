// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/elements.hpp"

#include "io/temporary_folder.hpp"
#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace mica::test {
namespace {

/// The names that a choice visits.
template <class E>
std::string names(const E& elements) {
  std::string out;
  elements.visit_keys([&](auto type) { out += decltype(type)::type::name; });
  out += '/';
  elements.visit_values([&](auto type) { out += decltype(type)::type::name; });
  return out;
}

std::vector<float> random_head(std::size_t head_dim, CounterRng& rng) {
  std::vector<float> head(head_dim);
  for (float& x : head) x = static_cast<float>(rng.uniform() * 8 - 4);
  return head;
}

/// The largest difference that an element may make of x, in a head whose largest magnitude is 4.
template <class E>
float tolerance(float x) {
  if (std::is_same_v<E, format::F32>) return 0;
  if (std::is_same_v<E, format::F16>) return std::fabs(x) * 0x1p-11f + 0x1p-25f;
  if (std::is_same_v<E, format::BF16>) return std::fabs(x) * 0x1p-8f;
  return 4.0f / 127 * 0.502f;  // half a step of a scale that was itself rounded to half precision
}

}  // namespace

TEST_CASE_TEMPLATE("a tile gives back what was stored, for every slot and any width of head", E, format::F32,
                   format::F16, format::BF16, format::Q8_0) {
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
          CHECK(std::fabs(out[i] - heads[slot][i]) <= tolerance<E>(heads[slot][i]));
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("storing a slot again leaves its neighbours alone", E, format::F32, format::F16,
                   format::BF16, format::Q8_0) {
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

TEST_CASE("a head of zeros is zeros in every element") {
  format::AllKv::for_each([](auto type) {
    using E = typename decltype(type)::type;
    const std::vector<float> zeros(5);
    std::vector<std::byte> tile(E::key_tile_bytes(5), std::byte{0x7F});
    std::vector<float> out(5, 1.0f);
    E::store_key(tile.data(), 3, 5, zeros.data());
    E::load_key(tile.data(), 3, 5, out.data());
    CHECK(out == zeros);
  });
}

TEST_CASE("a number that is not finite cannot hide in any element") {
  format::AllKv::for_each([](auto type) {
    using E = typename decltype(type)::type;
    CAPTURE(E::name);
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
  });
}

TEST_CASE("elements are chosen by name, keys and values apart, in either case of letters") {
  CHECK(names(kv::AnyElements<>()) == "F16/F16");
  CHECK(names(kv::AnyElements<>("q8_0", "F32")) == "Q8_0/F32");
  CHECK(names(kv::AnyElements<>("Bf16", "f16")) == "BF16/F16");
  CHECK(names(kv::Fixed<format::F32, format::Q8_0>()) == "F32/Q8_0");
  CHECK(names(kv::ElementsOf<format::Q8_0>()) == "Q8_0/Q8_0");
  CHECK(std::is_same_v<kv::ElementsOf<kv::AnyElements<>>, kv::AnyElements<>>);
}

TEST_CASE("a name that is no element is refused with the known ones") {
  const Error keys = refusal([] { return kv::AnyElements<>("f15", "f16"); });
  CHECK(keys.code() == ErrorCode::usage);
  CHECK(mentions(keys, "'f15' for keys", "F16 Q8_0 F32 BF16"));
  CHECK(mentions(refusal([] { return kv::AnyElements<>("f16", "q4_k"); }),
                 "'q4_k' for values"));  // a format, no element
  CHECK(mentions(refusal([] { return kv::AnyElements<TypeList<format::F32>>("F32", "F16"); }),
                 "choose one of F32"));
}

TEST_CASE("the bytes of a tile are those of its parts, rounded up to cache lines") {
  for (const std::size_t head_dim : {1u, 10u, 63u, 64u, 128u}) {
    CAPTURE(head_dim);
    CHECK(kv::key_bytes(kv::Fixed<format::F16, format::Q8_0>(), head_dim) == 32 * head_dim);
    const std::size_t sum = format::F16::key_tile_bytes(head_dim) + format::Q8_0::value_tile_bytes(head_dim);
    const std::size_t bytes = kv::tile_bytes(kv::Fixed<format::F16, format::Q8_0>(), head_dim);
    CHECK(bytes % 64 == 0);
    CHECK(bytes >= sum);
    CHECK(bytes < sum + 64);
    CHECK(kv::tile_bytes(kv::AnyElements<>("F16", "Q8_0"), head_dim) == bytes);
  }
}

}  // namespace mica::test
