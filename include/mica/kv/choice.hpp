// SPDX-License-Identifier: Apache-2.0
//
// The storages and elements that a program can choose at run time: an enumerator for each type of a list, in
// the order of the list.
#pragma once

#include <cstdint>

namespace mica::kv {

/// The storages of kv::Storages (kv/any_storage.hpp).
enum class Choice : std::uint8_t { segmented, contiguous, reserved, paged, spilled, spilled_paged };

/// The elements of format::AllKv and format::TileKv, by their short names (kv/elements.hpp).
// clang-format off
enum class Element : std::uint8_t {
  f16, q8_0, f32, bf16,
  q6_0, q5_1_rotated, q5_0, q4_1_rotated, q4_0, q4_s, iq4_nl_rotated,
  q6_0_plain, q5_1, q5_0_plain, q4_1, q4_0_plain, q4_s_plain, iq4_nl,
  kivi4, kivi2, kvarn4, kvarn3, kvarn2,
};
// clang-format on

/// The element of keys, or of values: one for all tokens, or one each for recent and for old ones.
struct ElementChoice {
  Element recent = Element::f16;  // of the last tokens
  Element old = Element::f16;     // of those before them; as recent: one for all

  /// Of kivi4 and those after it, which encode whole tiles, recent tokens are in F16.
  constexpr ElementChoice(Element all = Element::f16) noexcept
      : recent(all < Element::kivi4 ? all : Element::f16), old(all) {}
  /// recent_tokens: an element before kivi4.
  constexpr ElementChoice(Element recent_tokens, Element old_tokens) noexcept
      : recent(recent_tokens), old(old_tokens) {}

  friend bool operator==(const ElementChoice&, const ElementChoice&) = default;
};

}  // namespace mica::kv
