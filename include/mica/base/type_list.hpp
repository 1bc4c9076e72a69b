// SPDX-License-Identifier: Apache-2.0
//
// Lists of types: the formats a program knows, the families it can open.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace mica {

/// A type as a value, so that a visitor can receive it as an argument.
template <class T>
struct Type {
  using type = T;  // what the argument of a visitor stands for
};

/// A list of types.
template <class... Ts>
struct TypeList {
  static constexpr std::size_t size = sizeof...(Ts);

  template <class T>
  static constexpr bool contains = (std::is_same_v<T, Ts> || ...);  // T itself; const T is another type

  /// The place of T; size where the list does not have it.
  template <class T>
  static constexpr std::size_t place_of = [] {
    std::size_t place = 0;
    static_cast<void>(((std::is_same_v<T, Ts> || (++place, false)) || ...));
    return place;
  }();

  /// Calls `f(Type<T>{})` for each member in order.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(Type<Ts>{}), ...);
  }
};

namespace detail {

template <class A, class B>
struct Concat;
template <class... As, class... Bs>
struct Concat<TypeList<As...>, TypeList<Bs...>> {
  using type = TypeList<As..., Bs...>;
};

template <class Kept, class List, template <class> class Has>
struct Filter {
  using type = Kept;
};
template <class... Kept, class First, class... Rest, template <class> class Has>
struct Filter<TypeList<Kept...>, TypeList<First, Rest...>, Has>
    : Filter<std::conditional_t<Has<First>::value, TypeList<Kept..., First>, TypeList<Kept...>>,
             TypeList<Rest...>, Has> {};

}  // namespace detail

/// The names of the types, in the order of the list.
template <class... Ts>
[[nodiscard]] constexpr std::array<std::string_view, sizeof...(Ts)> names_of(TypeList<Ts...>) noexcept {
  return {Ts::name...};
}

/// The members of A followed by those of B.
template <class A, class B>
using Concat = typename detail::Concat<A, B>::type;

/// A list with more members at its end.
template <class List, class... Ts>
using Append = Concat<List, TypeList<Ts...>>;

/// The members of a list for which `Has<T>::value` holds.
template <class List, template <class> class Has>
using Filter = typename detail::Filter<TypeList<>, List, Has>::type;

}  // namespace mica
