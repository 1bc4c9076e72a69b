// SPDX-License-Identifier: Apache-2.0

#include "mica/format/lists.hpp"

#include <doctest/doctest.h>

namespace mica {
namespace {

TEST_CASE("every format has the size that files give it") {
  format::All::for_each([](auto type) {
    using F = typename decltype(type)::type;
    const auto info = format::info(F::id);
    CHECK(info.name == F::name);
    CHECK(info.block_size == F::block_size);
    CHECK(info.block_bytes == sizeof(typename F::Block));
  });
}

TEST_CASE("every number of a type is found by number and by name, and no other") {
  std::size_t known = 0;
  for (std::uint32_t id = 0; id < 1000; ++id) {
    const auto info = format::info(id);
    if (!info) continue;
    ++known;
    CHECK(static_cast<std::uint32_t>(info->id) == id);
    CHECK(format::find(info->name)->id == info->id);
  }
  CHECK(known == format::infos.size());
  CHECK_FALSE(format::find("Q4_K_M"));
  CHECK_FALSE(format::find(""));
}

TEST_CASE("lists spell their members in order") {
  CHECK(format::names<format::All>() ==
        "Q4_K Q6_K Q8_0 Q4_0 F32 F16 BF16 IQ4_XS IQ4_NL IQ3_S IQ3_XXS IQ2_S IQ2_XS IQ2_XXS IQ1_M IQ1_S");
  CHECK(format::names<TypeList<>>().empty());
}

}  // namespace
}  // namespace mica
