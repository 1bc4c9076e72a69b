// SPDX-License-Identifier: Apache-2.0
//
// Storages and elements that are no part of the library, each a file of a lesson, keep what the library's own
// keep.

#include "../../examples/03_custom_kv/slabs.hpp"
#include "../../examples/07_own_kv/f8.hpp"
#include "../../examples/07_own_kv/file_tiles.hpp"
#include "archetype/kv_element.hpp"
#include "archetype/kv_storage.hpp"
#include "io/temporary_folder.hpp"
#include "kv/element_promises.hpp"
#include "kv/storage_promises.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/counting.hpp"
#include "model/kv_same_bits.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

namespace mica::test::own_kv_test {

TEST_CASE_TEMPLATE("a storage of a lesson keeps what it promises", Storage, Slabs<alloc::Aligned>,
                   FileTiles<alloc::Aligned>, archetype::KvStorage<alloc::Aligned>) {
  if constexpr (std::is_same_v<Storage, archetype::KvStorage<alloc::Aligned>>) {
    check_runs<Storage>();  // it takes all at once and holds all
    check_limit<Storage>();
    check_windows<Storage>(false);
  } else {
    check_storage<Storage>();
    check_windows<Storage>(true);
  }
}

TEST_CASE_TEMPLATE("a storage of a lesson gives the bits of a contiguous one", Storage, Slabs<alloc::Huge>,
                   FileTiles<alloc::Huge>, archetype::KvStorage<alloc::Huge>) {
  check_same_bits_on<Storage>();
}

TEST_CASE("an element of a lesson keeps what it promises, and the minimal one loses nothing") {
  check_element<F8>([](float x) { return std::fabs(x) * 0x1p-4f + 0x1p-10f; });
  check_element<archetype::KvElement>([](float) { return 0.0f; });
}

TEST_CASE("an element of a lesson gives the same bits by chunks, threads and kernels") {
  check_same_bits_with<F8>();
  check_same_bits_with<archetype::KvElement>();
}

TEST_CASE("bytes with an exponent are the numbers of their form, and the nearest is chosen") {
  CHECK(F8::decode(std::byte{0x38}) == 1.0f);
  CHECK(F8::decode(std::byte{0x7E}) == 448.0f);
  CHECK(F8::decode(std::byte{0x01}) == 0x1p-9f);
  CHECK(F8::decode(std::byte{0x08}) == 0x1p-6f);
  CHECK(F8::decode(std::byte{0xC0}) == -2.0f);
  CHECK(F8::encode(464.0f) == std::byte{0x7E});
  CHECK(std::isnan(F8::decode(F8::encode(465.0f))));
  CHECK(F8::encode(-0.0f) == std::byte{0x80});
  for (unsigned code = 0; code < 256; ++code) {
    const float value = F8::decode(static_cast<std::byte>(code));
    if (std::isnan(value)) continue;
    CAPTURE(value);
    CHECK(F8::encode(value) == static_cast<std::byte>(code));
    if ((code & 0x7Fu) >= 0x7E) continue;
    const float next = F8::decode(static_cast<std::byte>(code + 1)), middle = (value + next) / 2;
    const auto even = static_cast<std::byte>(code % 2 == 0 ? code : code + 1);
    CHECK(F8::encode(middle) == even);
    CHECK(F8::encode(std::nextafter(middle, value)) == static_cast<std::byte>(code));
    CHECK(F8::encode(std::nextafter(middle, next)) == static_cast<std::byte>(code + 1));
  }
}

TEST_CASE("tiles in a file go with their cache, and a folder that is not there is a refusal") {
  using Tiles = FileTiles<alloc::Aligned>;
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  const TemporaryFolder folder;
  ::setenv("TMPDIR", folder.path("").c_str(), 1);
  {
    Tiles storage({}, promised_layers, 1000);
    REQUIRE(storage.reserve(300));
    check_tiles(storage, 300);
    CHECK(storage.capacity() == 512);
    CHECK(std::filesystem::is_empty(folder.path("")));
    Tiles counted_like({}, promised_layers, 1000);
    ::setenv("TMPDIR", "/nowhere at all", 1);
    CHECK_FALSE(counted_like.reserve(1));
    CHECK(counted_like.capacity() == 0);
    CHECK(storage.reserve(1000));
  }
  ::setenv("TMPDIR", kept.c_str(), 1);
  if (before == nullptr) ::unsetenv("TMPDIR");
  budget::Ledger ledger;
  FileTiles<alloc::Counting> dry(alloc::Counting(ledger, budget::Account::kv), promised_layers, 1000);
  CHECK(dry.reserve(1000));
  CHECK(ledger.used() == 0);  // the file's pages are the system's to take away
}

}  // namespace mica::test::own_kv_test
