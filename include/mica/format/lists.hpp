// SPDX-License-Identifier: Apache-2.0
//
// The lists of mica's own: formats of weights and elements of a KV cache. Order is the order in which a visit
// looks.
// A user's format joins a list: Append<All, Mine>.
#pragma once

#include "mica/format/detail/block_element.hpp"
#include "mica/format/element.hpp"
#include "mica/format/few_bits.hpp"
#include "mica/format/float.hpp"
#include "mica/format/fp4.hpp"
#include "mica/format/iq1.hpp"
#include "mica/format/iq2.hpp"
#include "mica/format/iq3.hpp"
#include "mica/format/iq4.hpp"
#include "mica/format/k.hpp"
#include "mica/format/kivi.hpp"
#include "mica/format/kvarn.hpp"
#include "mica/format/legacy.hpp"
#include "mica/format/nf4.hpp"
#include "mica/format/q4_s.hpp"
#include "mica/format/q8_0.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace mica::format {

/// Every weight format mica can compute with.
using All = TypeList<Q4_K, Q6_K, Q8_0, Q5_K, Q4_0, Q3_K, Q2_K, F32, F16, BF16, IQ4_XS, IQ4_NL, Q5_0, Q5_1,
                     Q4_1, MXFP4, IQ3_S, IQ3_XXS, IQ2_S, IQ2_XS, IQ2_XXS, IQ1_M, IQ1_S, TQ1_0, TQ2_0, NVFP4,
                     Q1_0, Q2_0, NF4, F64, I8, I16, I32, I64>;

/// Formats of ggml that a file may have and that mica cannot compute with: the reader sizes and names them.
struct Q8_1 {
  static constexpr Id id{9};
  static constexpr std::string_view name = "Q8_1";
  static constexpr std::size_t block_size = 32;
  using Block = std::array<std::byte, 36>;
};
/// Known by name and size alone: other programs have it for products, and no file for weights.
struct Q8_K {
  static constexpr Id id{15};
  static constexpr std::string_view name = "Q8_K";
  static constexpr std::size_t block_size = 256;
  using Block = std::array<std::byte, 292>;
};

/// Every format that mica knows, and their table: what files may have, unless a program names its own table.
using Known = Append<All, Q8_1, Q8_K>;
inline constexpr Table known = table<Known>();

namespace detail {
template <class F>
struct IsNew : std::bool_constant<!known.contains(F::id)> {};
}  // namespace detail

/// The table of what mica knows and of the formats of a list that are not mica's.
template <class List>
[[nodiscard]] constexpr Table table_with() noexcept {
  return table<Concat<Known, Filter<List, detail::IsNew>>>();
}

/// The entry of a format of `known`.
[[nodiscard]] constexpr const Info& info(Id id) noexcept { return *known.find(id); }
[[nodiscard]] constexpr std::string_view name(Id id) noexcept { return info(id).name; }

/// Every KV element. Those of four to six bits store heads rotated or as they are.
using AllKv = TypeList<F16, Q8_0, F32, BF16, Rotated<Q6_0>, Rotated<Q5_1>, Rotated<Q5_0>, Rotated<Q4_1>,
                       Rotated<Q4_0>, Rotated<Q4_S>, Rotated<IQ4_NL>, Plain<Q6_0>, Plain<Q5_1>, Plain<Q5_0>,
                       Plain<Q4_1>, Plain<Q4_0>, Plain<Q4_S>, Plain<IQ4_NL>>;

/// Every element that only old tokens can have.
using TileKv = TypeList<KIVI4, KIVI2, KVARN4, KVARN3, KVARN2>;

/// "Q4_K Q6_K ...", for messages. A packed form (tensor/packed.hpp) is no format of files.
template <class List>
[[nodiscard]] std::string names() {
  std::string out;
  List::for_each([&](auto type) {
    using Format = typename decltype(type)::type;
    if constexpr (!requires { typename Format::File; })
      out.append(out.empty() ? "" : " ").append(Format::name);
  });
  return out;
}

}  // namespace mica::format
