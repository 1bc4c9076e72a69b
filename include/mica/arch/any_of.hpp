// SPDX-License-Identifier: Apache-2.0
//
// The family of a file that is known at run time: one of a closed list, chosen by general.architecture.
// Families differ in blocks and numbers, so a Transformer of this one, with the blocks of all, is all that a
// program needs to compile.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/visit.hpp"

#include <string>
#include <string_view>
#include <type_traits>

namespace mica::arch {

namespace detail {

/// The members of all lists, each once.
template <class Joined, class... Lists>
struct Join {
  using type = Joined;
};
template <class... Js, class... Rest>
struct Join<TypeList<Js...>, TypeList<>, Rest...> : Join<TypeList<Js...>, Rest...> {};
template <class... Js, class T, class... Ts, class... Rest>
struct Join<TypeList<Js...>, TypeList<T, Ts...>, Rest...>
    : Join<std::conditional_t<TypeList<Js...>::template contains<T>, TypeList<Js...>, TypeList<Js..., T>>,
           TypeList<Ts...>, Rest...> {};

template <class Families>
struct BlocksOf;
template <class... F>
struct BlocksOf<TypeList<F...>> : Join<TypeList<>, typename F::Blocks...> {};

}  // namespace detail

template <class Families>
struct AnyOf {
  // Required by Arch
  static constexpr std::string_view name = "any";
  using Blocks = typename detail::BlocksOf<Families>::type;

  /// Raises ErrorCode::unsupported, listing the known ones, and what the family's own config() raises.
  [[nodiscard]] static Config config(const gguf::Document& document) {
    const auto wanted = document.metadata().require<std::string_view>("general.architecture");
    Config config;
    std::string known;
    const bool found = visit_if(
        Families{},
        [&](auto type) {
          known.append(known.empty() ? "" : ", ").append(decltype(type)::type::name);
          return decltype(type)::type::name == wanted;
        },
        [&](auto type) { config = decltype(type)::type::config(document); });
    MICA_CHECK(found, unsupported, document.path(), ": architecture '", escaped(wanted),
               "' is not supported; known: ", known);
    return config;
  }
};

}  // namespace mica::arch
