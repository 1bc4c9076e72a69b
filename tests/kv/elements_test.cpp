// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/elements.hpp"

#include "archetype/kv_element.hpp"
#include "base/enumerators.hpp"
#include "io/temporary_folder.hpp"
#include "kv/element_promises.hpp"
#include "mica/kv/aging.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::elements_test {
namespace {

static_assert(enumerators_are<kv::Element>(kv::detail::element_names));

/// The names that a choice visits.
template <class E>
std::string names(const E& elements) {
  std::string out;
  elements.visit_keys([&](auto type) { out += decltype(type)::type::name; });
  out += '/';
  elements.visit_values([&](auto type) { out += decltype(type)::type::name; });
  return out;
}

/// The full name of the element that a name means, for keys.
std::string_view full_name(std::string_view name) {
  std::string_view full;
  kv::AnyElements<>(kv::parse_elements(name), {}).visit_keys([&](auto type) {
    full = decltype(type)::type::name;
  });
  return full;
}

/// The largest difference that an element may make of x, in a head whose largest magnitude is 4.
template <class E>
float tolerance(float x) {
  if (std::is_same_v<E, format::F32>) return 0;
  if (std::is_same_v<E, format::F16>) return std::fabs(x) * 0x1p-11f + 0x1p-25f;
  if (std::is_same_v<E, format::BF16>) return std::fabs(x) * 0x1p-8f;
  if constexpr (format::is_block_element<E>) {
    // Half a step of the codes, or a clipped number; rotated back it is the error of many numbers that meets in one.
    const float step = E::high_words == 2 ? 0.035f : E::high_words == 1 ? 0.07f : 0.15f;
    return 4.0f * step * (E::rotated ? 3.0f : 1.0f);
  }
  return 4.0f / 127 * 0.502f;  // half a step of a scale that was itself rounded to half precision
}

}  // namespace

TEST_CASE_TEMPLATE("a tile gives back what was stored, for every slot and any width of head", E, format::F32,
                   format::F16, format::BF16, format::Q8_0, format::Rotated<format::Q6_0>,
                   format::Plain<format::Q6_0>, format::Rotated<format::Q5_1>, format::Rotated<format::Q4_0>,
                   format::Plain<format::Q5_0>, format::Plain<format::Q4_1>, format::Plain<format::IQ4_NL>,
                   format::Plain<format::Q4_S>) {
  check_stored<E>(tolerance<E>);
}

TEST_CASE_TEMPLATE("storing a slot again leaves its neighbours alone", E, format::F32, format::F16,
                   format::BF16, format::Q8_0, format::Rotated<format::Q6_0>, format::Plain<format::Q6_0>,
                   format::Rotated<format::Q5_1>, format::Rotated<format::Q4_0>, format::Plain<format::Q5_0>,
                   format::Plain<format::Q4_1>, format::Plain<format::IQ4_NL>, format::Plain<format::Q4_S>) {
  check_independence<E>();
}

TEST_CASE("a head of zeros is zeros in every element") {
  format::AllKv::for_each([](auto type) { check_zeros<typename decltype(type)::type>(); });
}

TEST_CASE("a number that is not finite cannot hide in any element") {
  format::AllKv::for_each([](auto type) {
    using E = typename decltype(type)::type;
    CAPTURE(E::name);
    check_not_finite<E>();
  });
}

TEST_CASE("elements are chosen by name, keys and values apart, in either case of letters") {
  CHECK(names(kv::AnyElements<>()) == "F16/F16");
  CHECK(names(kv::AnyElements<>(kv::parse_elements("q8_0"), kv::parse_elements("F32"))) == "Q8_0/F32");
  CHECK(names(kv::AnyElements<>(kv::parse_elements("Bf16"), kv::parse_elements("f16"))) == "BF16/F16");
  CHECK(names(kv::AnyElements<>(kv::parse_elements("q4_0_rotated"), kv::parse_elements("q4_0_plain"))) ==
        "Q4_0_ROTATED/Q4_0_PLAIN");
  CHECK(std::is_same_v<kv::ElementsOf<format::Rotated<format::Q4_0>>,
                       kv::Fixed<format::Rotated<format::Q4_0>>>);
  CHECK(names(kv::Fixed<format::F32, format::Q8_0>()) == "F32/Q8_0");
  CHECK(names(kv::ElementsOf<format::Q8_0>()) == "Q8_0/Q8_0");
  CHECK(std::is_same_v<kv::ElementsOf<kv::AnyElements<>>, kv::AnyElements<>>);
}

TEST_CASE("elements of a list of one's own are chosen as types") {
  using Mine = archetype::KvElement;
  using Elements = kv::AnyElements<Append<format::AllKv, Mine>>;
  CHECK(names(Elements(kv::Fixed<Mine, format::F16>())) == "plain/F16");
  CHECK(kv::key_name(Elements(kv::Aging<format::F16, Mine>(40))) == "F16:plain");
  CHECK(names(Elements(kv::Element::q8_0, {})) == "Q8_0/F16");
}

TEST_CASE(
    "a bare name of four to six bits is the form that loses less on real weights; both forms have names") {
  CHECK(full_name("q6_0") == format::Rotated<format::Q6_0>::name);
  CHECK(full_name("q5_1") == format::Plain<format::Q5_1>::name);
  CHECK(full_name("q5_0") == format::Rotated<format::Q5_0>::name);
  CHECK(full_name("q4_1") == format::Plain<format::Q4_1>::name);
  CHECK(full_name("q4_0") == format::Rotated<format::Q4_0>::name);
  CHECK(full_name("q4_s") == format::Rotated<format::Q4_S>::name);
  CHECK(full_name("iq4_nl") == format::Plain<format::IQ4_NL>::name);
  std::size_t blocks = 0;
  format::AllKv::for_each([&](auto type) {
    using E = typename decltype(type)::type;
    CHECK(full_name(E::name) == E::name);
    if constexpr (format::is_block_element<E>) {
      ++blocks;
      CAPTURE(E::name);
      CHECK(E::name == std::string(E::Format::name) + (E::rotated ? "_ROTATED" : "_PLAIN"));
      using Other =
          format::BlockElement<typename E::Format, !E::rotated>;  // memory does not depend on the form
      for (const std::size_t head_dim : {8u, 64u, 80u, 256u}) {
        CHECK(E::key_tile_bytes(head_dim) == Other::key_tile_bytes(head_dim));
        CHECK(E::value_tile_bytes(head_dim) == Other::value_tile_bytes(head_dim));
      }
    }
  });
  CHECK(blocks == 14);
}

TEST_CASE("bare names agree with the stored measurement of a real model") {
  std::ifstream in(std::string(MICA_SOURCE) + "/bench/results/kv-rotation.json");
  REQUIRE(in.good());
  std::size_t compared = 0;
  for (std::string line; std::getline(in, line);) {
    const auto says = [&](const std::string& words) { return line.find(words) != line.npos; };
    if (!says("\"model\": \"gemma-3-270m") || !says("\"part\": \"both\"")) continue;
    format::AllKv::for_each([&](auto type) {
      using E = typename decltype(type)::type;
      if constexpr (format::is_block_element<E>) {
        const std::string name(E::Format::name);
        if (!says("\"format\": \"" + name + "\"")) return;
        CAPTURE(name);
        ++compared;  // once for each form
        CHECK((full_name(name) == E::name) == (E::rotated != says("\"less\": \"plain\"")));
      }
    });
  }
  CHECK(compared == 12);  // it does not have Q6_0
}

TEST_CASE("files have full names, and a bare one in a file means rotated heads") {
  CHECK(kv::key_name(kv::AnyElements<>(kv::parse_elements("q4_0"), kv::parse_elements("f16"))) ==
        "Q4_0_ROTATED");
  CHECK(kv::value_name(kv::AnyElements<>(kv::parse_elements("f16"), kv::parse_elements("iq4_nl"))) ==
        "IQ4_NL_PLAIN");
  CHECK(kv::saved_name("IQ4_NL") == "IQ4_NL_ROTATED");
  CHECK(kv::saved_name("IQ4_NL_PLAIN") == "IQ4_NL_PLAIN");
  CHECK(kv::saved_name("F16:Q5_1") == "F16:Q5_1_ROTATED");
  CHECK(kv::saved_name("Q5_1:KIVI2") == "Q5_1_ROTATED:KIVI2");
  for (const char* const same : {"F16", "Q8_0", "F16:KIVI4", "", "?", "a:b:c"})
    CHECK(kv::saved_name(same) == same);
}

TEST_CASE("blocks take the bytes of their formats where heads are whole blocks wide") {
  for (const std::size_t head_dim : {32u, 64u, 96u, 128u, 256u}) {
    CHECK(format::Rotated<format::Q4_0>::key_tile_bytes(head_dim) == head_dim / 32 * 18 * 16);
    CHECK(format::Rotated<format::IQ4_NL>::value_tile_bytes(head_dim) == head_dim / 32 * 18 * 16);
    CHECK(format::Rotated<format::Q4_S>::key_tile_bytes(head_dim) == head_dim / 32 * 18 * 16);
    CHECK(format::Rotated<format::Q4_1>::key_tile_bytes(head_dim) == head_dim / 32 * 20 * 16);
    CHECK(format::Rotated<format::Q5_0>::value_tile_bytes(head_dim) == head_dim / 32 * 22 * 16);
    CHECK(format::Rotated<format::Q5_1>::key_tile_bytes(head_dim) == head_dim / 32 * 24 * 16);
    CHECK(format::Rotated<format::Q6_0>::value_tile_bytes(head_dim) == head_dim / 32 * 26 * 16);
  }
  CHECK(format::Rotated<format::Q4_0>::key_tile_bytes(80) == 3 * 18 * 16);  // filled up
}

TEST_CASE("two tokens of a block element share no byte") {
  format::AllKv::for_each([](auto type) {
    using E = typename decltype(type)::type;
    CAPTURE(E::name);
    check_own_bytes<E>();
  });
}

TEST_CASE("a rotation is undone by itself, keeps dot products, and spreads what lies in one place") {
  CounterRng rng(13);
  for (const std::size_t n : {1u, 2u, 3u, 20u, 64u, 80u, 96u, 128u, 512u}) {
    CAPTURE(n);
    const auto a = random_head(n, rng), b = random_head(n, rng);
    std::vector<float> turned_a(n), turned_b(n), back(n);
    format::rotate(a.data(), n, turned_a.data());
    format::rotate(b.data(), n, turned_b.data());
    format::rotate(turned_a.data(), n, back.data());
    double before = 0, after = 0, length = 0;
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(std::fabs(back[i] - a[i]) < 1e-5f);
      before += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      after += static_cast<double>(turned_a[i]) * static_cast<double>(turned_b[i]);
      length += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    }
    CHECK(std::fabs(before - after) < 1e-5 * length + 1e-5);
  }
  std::vector<float> peak(64), spread(64);
  peak[5] = 8;
  format::rotate(peak.data(), 64, spread.data());
  for (const float x : spread) CHECK(std::fabs(x) == 1.0f);
}

TEST_CASE("a name that is no element is refused with the known ones") {
  const Error keys = refusal([] { return kv::parse_elements("f15", "keys"); });
  CHECK(keys.code() == ErrorCode::usage);
  CHECK(mentions(
      keys, "'f15' for keys",
      "F16 Q8_0 F32 BF16 Q6_0 Q5_1_ROTATED Q5_0 Q4_1_ROTATED Q4_0 Q4_S IQ4_NL_ROTATED Q6_0_PLAIN Q5_1"));
  CHECK(mentions(refusal([] { return kv::parse_elements("q4_k", "values"); }),
                 "'q4_k' for values"));  // a format, no element
  CHECK(mentions(
      refusal([] { return kv::AnyElements<TypeList<format::F32>>(kv::Element::f32, kv::Element::f16); }),
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
    CHECK(kv::tile_bytes(kv::AnyElements<>(kv::parse_elements("F16"), kv::parse_elements("Q8_0")),
                         head_dim) == bytes);
  }
}

}  // namespace mica::test::elements_test
