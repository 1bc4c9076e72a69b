// SPDX-License-Identifier: Apache-2.0
//
// From a number read in a file to a type of a closed list: the only way from run time to compile time in
// mica.
#pragma once

#include "mica/base/type_list.hpp"

namespace mica {

/// Calls `f(Type<T>{})` for the first T of the list for which `is(Type<T>{})` holds; false: there is none.
template <class... Ts, class Is, class F>
constexpr bool visit_if(TypeList<Ts...>, Is&& is, F&& f) {
  return ((is(Type<Ts>{}) && (f(Type<Ts>{}), true)) || ...);
}

/// Calls `f(Type<T>{})` for the T at a place of the list; false when the list is shorter.
template <class... Ts, class F>
constexpr bool visit_at(TypeList<Ts...>, std::size_t place, F&& f) {
  std::size_t i = 0;
  return ((i++ == place && (f(Type<Ts>{}), true)) || ...);
}

/// Calls `f(Type<T>{})` for the T whose `T::id` equals `id`; false when the list has none.
template <class List, class Id, class F>
constexpr bool visit_id(Id id, F&& f) {
  return
      [&]<class... Ts>(TypeList<Ts...>) { return ((Ts::id == id && (f(Type<Ts>{}), true)) || ...); }(List{});
}

}  // namespace mica
