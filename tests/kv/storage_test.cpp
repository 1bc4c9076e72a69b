// SPDX-License-Identifier: Apache-2.0
//
// What every KV storage promises, contiguous, segmented or chosen by name.

#include "archetype/kv_storage.hpp"
#include "base/enumerators.hpp"
#include "io/temporary_folder.hpp"
#include "kv/storage_promises.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/paged.hpp"
#include "mica/kv/reserved.hpp"
#include "mica/kv/segmented.hpp"

#include <doctest/doctest.h>

#include <array>

namespace mica::test::storage_test {
namespace {

using A = alloc::Aligned;

static_assert(enumerators_are<kv::Choice>(kv::choice_names));

constexpr auto layers = promised_layers;

}  // namespace

TEST_CASE_TEMPLATE("runs cover every tile once, and tiles do not overlap", Storage, kv::Contiguous<A>,
                   kv::Segmented<A>, kv::Reserved<A>, kv::Paged<A>, kv::AnyStorage<A>) {
  check_runs<Storage>();
}

TEST_CASE_TEMPLATE("tokens stay where they are while a storage grows", Storage, kv::Contiguous<A>,
                   kv::Segmented<A>, kv::Reserved<A>, kv::Paged<A>, kv::AnyStorage<A>) {
  check_growth<Storage>();
}

TEST_CASE_TEMPLATE("a storage never holds more than it was made for", Storage, kv::Contiguous<A>,
                   kv::Segmented<A>, kv::Reserved<A>, kv::Paged<A>, kv::AnyStorage<A>) {
  check_limit<Storage>();
  Storage storage(A{}, layers, 100);
  CHECK(storage.reserve(100));
  CHECK(storage.capacity() == 112);
}

TEST_CASE_TEMPLATE("a layer with a window holds what a step can see, wherever it begins", Storage,
                   kv::Contiguous<A>, kv::Segmented<A>, kv::AnyStorage<A>) {
  check_windows<Storage>(true);
}

TEST_CASE_TEMPLATE("the least storages keep what they promise of windows", Storage, kv::Paged<A>,
                   archetype::KvStorage<A>) {
  check_windows<Storage>(false);
}

TEST_CASE("a contiguous storage takes all with the first token and gives all back with the last") {
  budget::Ledger ledger;
  using Booked = alloc::Budgeted<A>;
  kv::Contiguous<Booked> storage(Booked(ledger, budget::Account::kv), layers, 700);
  const std::size_t bytes = 44 * (2 * 192 + 64 + 3 * 128);
  CHECK(ledger.used() == 0);
  CHECK(storage.reserve(0));
  CHECK(ledger.used() == 0);
  CHECK(storage.reserve(1));
  CHECK(ledger.used() == bytes);
  CHECK(storage.run(0, 0, 0).tiles == 44);
  storage.shrink(1);
  CHECK(ledger.used() == bytes);
  storage.shrink(0);
  CHECK(ledger.used() == 0);
  CHECK(storage.capacity() == 0);
}

TEST_CASE("a contiguous storage that the budget refuses is as before") {
  budget::Ledger ledger(1000);
  using Booked = alloc::Budgeted<A>;
  kv::Contiguous<Booked> storage(Booked(ledger, budget::Account::kv), layers, 700);
  CHECK_FALSE(storage.reserve(1));
  CHECK(storage.capacity() == 0);
  CHECK(ledger.used() == 0);
}

TEST_CASE("a storage is chosen at run time, and has the name of its type") {
  kv::AnyStorage<A> contiguous(A{}, layers, 700, kv::Choice::contiguous),
      segmented(A{}, layers, 700, kv::Choice::segmented);
  CHECK(contiguous.reserve(1));
  CHECK(segmented.reserve(1));
  CHECK(contiguous.capacity() == 704);
  CHECK(segmented.capacity() == 256);
  for (std::size_t i = 0; i < kv::choice_names.size(); ++i) {
    const kv::AnyStorage<A> chosen(A{}, layers, 700, static_cast<kv::Choice>(i));
    CHECK(chosen.capacity() == 0);
  }
  CHECK(kv::name(kv::Choice::reserved) == "reserved");
  CHECK(kv::name(kv::Choice::spilled_paged) == "spilled-paged");
}

TEST_CASE("a storage refuses a size that no memory has") {
  const std::array<kv::LayerShape, 1> wide = {{{1u << 14, std::size_t{1} << 20}}};
  kv::AnyStorage<> contiguous({}, wide, std::size_t{1} << 30, kv::Choice::contiguous);
  CHECK_FALSE(contiguous.reserve(1));
  kv::AnyStorage<> segmented({}, wide, std::size_t{1} << 20, kv::Choice::segmented);
  CHECK_FALSE(segmented.reserve(std::size_t{1} << 20));
  CHECK(segmented.capacity() == 0);
}

}  // namespace mica::test::storage_test
