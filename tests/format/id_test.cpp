// SPDX-License-Identifier: Apache-2.0

#include "mica/format/lists.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace mica::id_test {
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
  std::vector<format::Id> ids = {format::NF4::id};
  for (std::uint32_t id = 0; id < 1000; ++id) ids.push_back({id});
  for (const format::Id id : ids) {
    const format::Info* const info = format::known.find(id);
    if (info == nullptr) continue;
    ++known;
    CHECK(info->id == id);
    CHECK(format::known.find(info->name) == info);
  }
  CHECK(known == format::known.size());
  CHECK(format::known.find("q6_k")->id == format::Q6_K::id);
  CHECK(format::known.find("Q4_K_M") == nullptr);
  CHECK(format::known.find("") == nullptr);
}

TEST_CASE("lists spell their members in order") {
  CHECK(format::names<TypeList<format::Q4_K, format::F16, format::IQ4_NL>>() == "Q4_K F16 IQ4_NL");
  CHECK(format::names<TypeList<>>().empty());
}

}  // namespace
}  // namespace mica::id_test
