// SPDX-License-Identifier: Apache-2.0
//
// Which element keys and values have: fixed by types, or chosen by name at run time. Kernels are visited once per call,
// keys and values apart, so that choices add up instead of multiplying.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/visit.hpp"
#include "mica/format/concept.hpp"
#include "mica/format/lists.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace mica {

namespace detail {
struct AnyVisitor {
  template <class T>
  void operator()(T) const noexcept {}
};
}  // namespace detail

/// A choice of elements. visit_keys(f), visit_values(f): call f(Type<E>) with the element of keys, of values.
// clang-format off
template <class E>
concept KvElements = requires(const E& elements, detail::AnyVisitor f) {
  { elements.visit_keys(f) } noexcept;
  { elements.visit_values(f) } noexcept;
};
// clang-format on

namespace kv {

/// Elements that the compiler knows.
template <KvElement K, KvElement V = K>
struct Fixed {
  template <class F>
  void visit_keys(F&& f) const noexcept {
    f(Type<K>{});
  }
  template <class F>
  void visit_values(F&& f) const noexcept {
    f(Type<V>{});
  }
};

/// Elements of a closed list, chosen by name.
template <class List = format::AllKv>
class AnyElements {
 public:
  /// F16 for both.
  AnyElements() : AnyElements("F16", "F16") {}

  /// Names as command lines spell them, upper or lower case; an unknown one raises an error that lists the known ones.
  AnyElements(std::string_view keys, std::string_view values)
      : keys_(find("keys", keys)), values_(find("values", values)) {}

  template <class F>
  void visit_keys(F&& f) const noexcept {
    visit(keys_, f);
  }
  template <class F>
  void visit_values(F&& f) const noexcept {
    visit(values_, f);
  }

 private:
  template <class F>
  static void visit(std::size_t place, F&& f) noexcept {
    visit_if(
        List{}, [i = std::size_t{0}, place](auto) mutable { return i++ == place; }, f);
  }
  /// The place of an element in the list.
  [[nodiscard]] static std::size_t find(std::string_view what, std::string_view name) {
    const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
    std::size_t place = 0;
    bool known = false;
    List::for_each([&](auto type) {
      constexpr std::string_view own = decltype(type)::type::name;
      known = known || std::equal(own.begin(), own.end(), name.begin(), name.end(),
                                  [&](char a, char b) { return upper(a) == upper(b); });
      place += known ? 0 : 1;
    });
    MICA_CHECK(known, usage, "KV element '", escaped(name), "' for ", what, ": not known; choose one of ",
               format::names<List>());
    return place;
  }

  std::size_t keys_;
  std::size_t values_;
};

namespace detail {

template <class E>
struct ElementsOf {
  using type = E;
};
template <KvElement E>
struct ElementsOf<E> {
  using type = Fixed<E>;
};

}  // namespace detail

/// What WithKvElement<E> means: E for keys and values both, or E itself when it already is a choice.
template <class E>
using ElementsOf = typename detail::ElementsOf<E>::type;

/// Bytes of one tile of a head, key part and value part; the value part starts at key_bytes().
template <KvElements E>
[[nodiscard]] std::size_t key_bytes(const E& elements, std::size_t head_dim) noexcept {
  std::size_t bytes = 0;
  elements.visit_keys([&](auto type) { bytes = decltype(type)::type::key_tile_bytes(head_dim); });
  return bytes;
}

template <KvElements E>
[[nodiscard]] std::size_t tile_bytes(const E& elements, std::size_t head_dim) noexcept {
  std::size_t bytes = key_bytes(elements, head_dim);
  elements.visit_values([&](auto type) { bytes += decltype(type)::type::value_tile_bytes(head_dim); });
  return round_up<std::size_t>(bytes, 64);
}

static_assert(KvElements<Fixed<format::F16>> && KvElements<AnyElements<>>);

}  // namespace kv
}  // namespace mica
