// SPDX-License-Identifier: Apache-2.0
//
// The concept of eviction policies: the maximum of resident tokens of a layer without a window, and the tiles
// that are evicted at that number. Decisions are made at positions that are multiples of 64, by tiles:
//
//   | t0 t1 t2 t3 | t4 ... t11 | t12 ... t15 |        keep = 256 tokens, 16 tiles, and position 256 comes
//     stay          four of these go   stay           four times choose(), then room for 64 tokens
//
// Resident tokens keep their positions: keys are stored rotated by them. Layers with a window and recurrent
// states are not changed.
#pragma once

#include "mica/format/concept.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mica {

namespace kv {

/// Tokens between two decisions.
inline constexpr std::size_t eviction_step = 64;

/// The resident tiles, in the order of their positions.
struct Held {
  std::span<const std::uint32_t> tiles;  // their numbers: position of the first token / 16
  std::span<const float> mass = {};      // (tiles) accumulated attention scores, where the policy needs them
};

/// A policy that needs no attention scores.
struct Unwatching {
  [[nodiscard]] static constexpr bool watches() noexcept { return false; }
  [[nodiscard]] static constexpr float fade() noexcept { return 1; }
};

}  // namespace kv

/// Chooses the tokens that a cache evicts. It decides from its arguments alone, so that answers do not depend
/// on steps.
// clang-format off
template <class E>
concept Eviction = std::copyable<E> && requires(const E policy, const kv::Held& held) {
  { E::name } -> std::convertible_to<std::string_view>;
  { E::forgets } -> std::convertible_to<bool>;                      // false: other members are not called
  { policy.keep() } noexcept -> std::same_as<std::size_t>;          // max resident tokens, 64 n; 0: all
  { policy.watches() } noexcept -> std::same_as<bool>;              // whether it needs Held::mass
  { policy.fade() } noexcept -> std::same_as<float>;                // the factor of mass every 64 tokens
  { policy.choose(held) } noexcept -> std::same_as<std::size_t>;    // index of the tile to evict
};
// clang-format on

namespace kv {

/// Evicts nothing: a full cache refuses.
struct KeepAll : Unwatching {
  static constexpr std::string_view name = "none";
  static constexpr bool forgets = false;
  [[nodiscard]] static constexpr std::size_t keep() noexcept { return 0; }
  [[nodiscard]] static constexpr std::size_t choose(const Held&) noexcept { return 0; }
};

static_assert(Eviction<KeepAll>);

}  // namespace kv
}  // namespace mica
