// SPDX-License-Identifier: Apache-2.0
//
// The formats that the tests of products run over, as doctest wants them: a new member of format::All comes along.

#pragma once

#include "mica/format/lists.hpp"

#include <doctest/doctest.h>

#include <tuple>

namespace mica::test {

/// The members of a list with vector kernels of their own; with `integers`, only those with integer arithmetic.
template <bool integers, class... Fs>
auto with_codec(TypeList<Fs...>) -> decltype(std::tuple_cat(
    std::declval<std::conditional_t<Fs::vector_codec && (!integers || IntegerFormat<Fs>), std::tuple<Fs>,
                                    std::tuple<>>>()...));

using VectorFormats = decltype(with_codec<false>(format::All()));
using IntegerFormats = decltype(with_codec<true>(format::All()));

}  // namespace mica::test
