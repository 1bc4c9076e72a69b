// SPDX-License-Identifier: Apache-2.0
//
// The concept of eviction policies: the maximum of resident tokens of a layer without a window, and the tiles
// that are evicted when this number is reached. The policy decides at positions that are multiples of 64, and
// chooses whole tiles:
//
//   | t0 t1 t2 t3 | t4 ... t11 | t12 ... t15 |    capacity 256 tokens = 16 tiles; all are used
//     stay          four are evicted   stay           choose() is called four times: 64 tokens are free
//
// Resident tokens keep their positions, because keys are stored after their rotation by the position. Layers
// with a window and recurrent states are not changed.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/format/concept.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace mica {

namespace kv {

/// Tokens between two decisions.
inline constexpr std::size_t eviction_step = 64;

/// The minimum of resident tokens where `kept` always stay: these, rounded up, and two steps.
[[nodiscard]] constexpr std::size_t least_capacity(std::size_t kept) noexcept {
  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max() - 3 * eviction_step;
  return kept > largest ? kept : round_up(kept, eviction_step) + 2 * eviction_step;
}

/// The resident tiles, in the order of their positions.
struct EvictionView {
  std::span<const std::uint32_t> tiles;  // their numbers: position of the first token / 16
  std::span<const float> scores = {};    // (tiles) accumulated attention scores, where the policy needs them
};

/// A policy that needs no attention scores.
struct Scoreless {
  // Required by Eviction
  [[nodiscard]] static constexpr bool needs_scores() noexcept { return false; }
  [[nodiscard]] static constexpr float decay() noexcept { return 1; }
};

}  // namespace kv

/// Chooses the tokens that a cache evicts. It decides from its arguments alone, so that answers do not depend
/// on steps. Const members may be called from several threads.
// clang-format off
template <class E>
concept Eviction = std::copyable<E> && requires(const E policy, const kv::EvictionView& resident) {
  { E::name } -> std::convertible_to<std::string_view>;
  { E::evicts } -> std::convertible_to<bool>;  // false: other members are not called
  { policy.capacity() } noexcept -> std::same_as<std::size_t>;  // max resident tokens, 64 times n; 0: all
  { policy.needs_scores() } noexcept -> std::same_as<bool>;     // whether it needs EvictionView::scores
  { policy.decay() } noexcept -> std::same_as<float>;           // the factor of scores every 64 tokens
  { policy.choose(resident) } noexcept -> std::same_as<std::size_t>;  // index of the tile to evict
};
// clang-format on

namespace kv {

/// Evicts nothing: a full cache refuses.
struct KeepAll : Scoreless {
  // Required by Eviction
  static constexpr std::string_view name = "none";
  static constexpr bool evicts = false;
  [[nodiscard]] static constexpr std::size_t capacity() noexcept { return 0; }
  [[nodiscard]] static constexpr std::size_t choose(const EvictionView&) noexcept { return 0; }
};

static_assert(Eviction<KeepAll>);

}  // namespace kv
}  // namespace mica
