// SPDX-License-Identifier: Apache-2.0

#include "mica/base/visit.hpp"

#include "mica/base/type_list.hpp"

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

namespace mica::test::visit_test {
namespace {

template <int Id, int Size>
struct Kind {
  static constexpr int id = Id;
  static constexpr int size = Size;
};
using A = Kind<1, 10>;
using B = Kind<2, 20>;
using C = Kind<2, 30>;  // the same number as B
using List = TypeList<A, B, C>;

static_assert(List::size == 3 && List::contains<B> && !List::contains<int>);
static_assert(std::is_same_v<Concat<TypeList<A>, TypeList<B, C>>, List>);
static_assert(std::is_same_v<Concat<TypeList<>, List>, List>);
static_assert(visit_id<List>(1, [](auto) {}) && !visit_id<List>(3, [](auto) {}) &&
              !visit_id<TypeList<>>(1, [](auto) {}));

}  // namespace

TEST_CASE("a list is walked in order") {
  std::string sizes;
  List::for_each([&](auto type) { sizes += std::to_string(decltype(type)::type::size) + ' '; });
  CHECK(sizes == "10 20 30 ");
}

TEST_CASE("a visit calls back once, for the first type of that number") {
  int calls = 0, size = 0;
  CHECK(visit_id<List>(2, [&](auto type) {
    ++calls;
    size = decltype(type)::type::size;
  }));
  CHECK(calls == 1);
  CHECK(size == 20);
}

TEST_CASE("a visit that finds nothing looks at all and calls nobody") {
  int looked = 0;
  const bool found = visit_if(
      List{},
      [&](auto) {
        ++looked;
        return false;
      },
      [](auto) { FAIL("called"); });
  CHECK_FALSE(found);
  CHECK(looked == 3);
}

TEST_CASE("a visit stops looking when it has found") {
  int looked = 0;
  CHECK(visit_if(
      List{}, [&](auto) { return ++looked == 2; }, [](auto) {}));
  CHECK(looked == 2);
}

}  // namespace mica::test::visit_test
