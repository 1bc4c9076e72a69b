// SPDX-License-Identifier: Apache-2.0
//
// The formats that typed tests run over, as doctest wants them: a new member of format::All comes along.

#pragma once

#include "mica/format/lists.hpp"

#include <doctest/doctest.h>

#include <tuple>

namespace mica::test {

template <class F>
inline constexpr bool has_codec = F::vector_codec;
template <class F>
inline constexpr bool is_integer = IntegerFormat<F>;
/// The conformance kit has blocks of every format with blocks, and of two formats of single numbers.
template <class F>
inline constexpr bool in_kit = F::id != format::NF4::id &&
                               (F::block_size > 1 || F::id == format::F16::id || F::id == format::BF16::id);

template <bool keep, class F>
using Maybe = std::conditional_t<keep, std::tuple<F>, std::tuple<>>;

template <class... Fs>
auto with_codec(TypeList<Fs...>) -> decltype(std::tuple_cat(std::declval<Maybe<has_codec<Fs>, Fs>>()...));
template <class... Fs>
auto integer(TypeList<Fs...>) -> decltype(std::tuple_cat(std::declval<Maybe<is_integer<Fs>, Fs>>()...));
template <class... Fs>
auto of_kit(TypeList<Fs...>) -> decltype(std::tuple_cat(std::declval<Maybe<in_kit<Fs>, Fs>>()...));

using VectorFormats = decltype(with_codec(format::All()));
/// Formats whose products can follow kernel/fast8.hpp.
using Fast8Formats =
    decltype(std::tuple_cat(integer(format::All()), std::tuple<format::F16, format::BF16>()));
using IntegerFormats = decltype(integer(format::All()));
using KitFormats = decltype(of_kit(format::All()));

}  // namespace mica::test
