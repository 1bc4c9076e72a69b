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
  bool found = false;
  [[maybe_unused]] const auto try_one = [&](auto type) {
    if (!found && is(type)) {
      found = true;
      f(type);
    }
  };
  (try_one(Type<Ts>{}), ...);
  return found;
}

/// Calls `f(Type<T>{})` for the T at a place of the list; false when the list is shorter.
template <class... Ts, class F>
constexpr bool visit_at(TypeList<Ts...> list, std::size_t place, F&& f) {
  return visit_if(
      list, [place, i = std::size_t{0}](auto) mutable { return i++ == place; }, static_cast<F&&>(f));
}

/// Calls `f(Type<T>{})` for the T whose `T::id` equals `id`; false when the list has none.
template <class List, class Id, class F>
constexpr bool visit_id(Id id, F&& f) {
  return visit_if(
      List{}, [id](auto type) { return decltype(type)::type::id == id; }, static_cast<F&&>(f));
}

}  // namespace mica
