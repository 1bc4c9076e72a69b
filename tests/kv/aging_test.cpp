// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/aging.hpp"

#include "io/temporary_folder.hpp"
#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::aging_test {
namespace {

/// "recent keys/recent values old keys/old values recent"
template <class E>
std::string names(const E& elements) {
  std::string out;
  const auto pair = [&](const auto& of) {
    of.visit_keys([&](auto type) { out += decltype(type)::type::name; });
    out += '/';
    of.visit_values([&](auto type) { out += decltype(type)::type::name; });
    out += ' ';
  };
  pair(elements);
  pair(elements.old());
  return out + std::to_string(elements.recent());
}

std::vector<float> random(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 4 - 2);
  return out;
}

}  // namespace

TEST_CASE("names say which element old tokens have") {
  CHECK(names(kv::AnyElements<>(kv::parse_elements("f16"), kv::parse_elements("q8_0"))) ==
        "F16/Q8_0 F16/Q8_0 0");
  CHECK(names(kv::AnyElements<>(kv::parse_elements("kivi2"), kv::parse_elements("KIVI4"))) ==
        "F16/F16 KIVI2/KIVI4 128");
  CHECK(names(kv::AnyElements<>(kv::parse_elements("f16:q4_0"), kv::parse_elements("q8_0:kivi2"), 40)) ==
        "F16/Q8_0 Q4_0_ROTATED/KIVI2 40");
  CHECK(names(kv::AnyElements<>(kv::parse_elements("kvarn4"), kv::parse_elements("F16:KVARN3"), 40)) ==
        "F16/F16 KVARN4/KVARN3 40");
  CHECK(names(kv::AnyElements<>(kv::parse_elements("kivi4"), kv::parse_elements("q8_0"), 0)) ==
        "F16/Q8_0 KIVI4/Q8_0 1");
  CHECK(names(kv::AnyElements<>(kv::parse_elements("q8_0:q8_0"), kv::parse_elements("f16:f16"), 40)) ==
        "Q8_0/F16 Q8_0/F16 0");
  CHECK(names(kv::Aging<format::F16, format::KIVI2>()) == "F16/F16 KIVI2/KIVI2 128");
  using Pairs = kv::Aging<kv::Fixed<format::F16, format::Q8_0>, kv::FixedOld<format::KIVI4, format::Q8_0>>;
  CHECK(names(Pairs(64)) == "F16/Q8_0 KIVI4/Q8_0 64");
  CHECK(kv::key_name(Pairs()) == "F16:KIVI4");
  CHECK(kv::value_name(Pairs()) == "Q8_0");
  CHECK(kv::value_name(kv::AnyElements<>(kv::parse_elements("kivi2"), kv::parse_elements("q8_0:q4_s"))) ==
        "Q8_0:Q4_S_ROTATED");
  CHECK(kv::key_name(kv::Fixed<format::F16>()) == "F16");
}

TEST_CASE("a name of which a part is not known is refused with the known ones") {
  for (const char* name :
       {"f16:q4_k", "kivi2:f16", "kivi3", "f16:", ":kivi2", "f16:kivi2:q4_0", "f16;kivi2"}) {
    CAPTURE(name);
    const Error error = refusal([&] { return kv::parse_elements(name, "keys"); });
    CHECK(error.code() == ErrorCode::usage);
    CHECK(
        mentions(error, "for keys: not known", "F16 Q8_0", "RECENT:OLD", "KIVI4 KIVI2 KVARN4 KVARN3 KVARN2"));
  }
}

TEST_CASE("old tiles end where at least the recent tokens begin") {
  for (const std::size_t recent : {1u, 16u, 20u, 128u}) {
    for (std::size_t pos = 0; pos < 400; ++pos) {
      const std::size_t aged = kv::aged_tokens(pos, recent);
      CHECK(aged % 16 == 0);
      CHECK(aged <= pos);
      if (aged > 0) CHECK(pos + 1 - aged >= recent);
      CHECK(pos + 1 - aged <= std::max(kv::recent_window(recent), pos + 1 < recent ? pos + 1 : 0));
    }
  }
}

TEST_CASE("an old tile is what its element makes of the recent one, and the same element keeps its bytes") {
  constexpr std::size_t d = 40;
  const kv::AnyElements<> elements({kv::Element::f16, kv::Element::kivi4}, kv::Element::q8_0);
  std::vector<std::byte> recent(kv::tile_bytes(elements, d)), old(kv::tile_bytes(elements.old(), d));
  const auto keys = random(16 * d, 1), values = random(16 * d, 2);
  const std::size_t recent_values = kv::key_bytes(elements, d), old_values = kv::key_bytes(elements.old(), d);
  for (std::size_t slot = 0; slot < 16; ++slot) {
    format::F16::store_key(recent.data(), slot, d, keys.data() + slot * d);
    format::Q8_0::store_value(recent.data() + recent_values, slot, d, values.data() + slot * d);
  }
  kv::store_old_tile(elements, d, recent.data(), old.data());
  std::vector<float> rounded(16 * d);
  for (std::size_t slot = 0; slot < 16; ++slot)
    format::F16::load_key(recent.data(), slot, d, rounded.data() + slot * d);
  std::vector<std::byte> expected(format::KIVI4::key_tile_bytes(d));
  format::KIVI4::store_keys(expected.data(), d, rounded.data());
  CHECK(std::equal(expected.begin(), expected.end(), old.begin()));
  const auto bytes = static_cast<std::ptrdiff_t>(format::Q8_0::value_tile_bytes(d));
  CHECK(std::equal(old.begin() + static_cast<std::ptrdiff_t>(old_values),
                   old.begin() + static_cast<std::ptrdiff_t>(old_values) + bytes,
                   recent.begin() + static_cast<std::ptrdiff_t>(recent_values)));
}

}  // namespace mica::test::aging_test
