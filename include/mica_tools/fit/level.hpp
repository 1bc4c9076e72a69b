// SPDX-License-Identifier: Apache-2.0
//
// Where a model runs and how well it fits there: the run modes and fit levels of llmfit.
//
//   level       GPU                              MoE offload, CPU+GPU, CPU        CPU streamed
//   Perfect     recommended memory and headroom  -                                -
//   Good        headroom                         headroom                         -
//   Marginal    fits                             fits                             fits
//   Too tight   in no pool
//
// Headroom: memory of a fifth of the requirement remains. A fit with less than the requested context is
// Marginal at best. CPU without a card is Good at best, as in llmfit's code of 2026; its older pages, and its
// planner, say Marginal.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace mica::fit {

/// Where the weights are while a model runs, from the fastest down.
enum class Mode : std::uint8_t {
  gpu,          // in the memory of cards, or in memory that both processors share
  moe_offload,  // the other experts beside the processor, all else on the card
  cpu_gpu,      // beside the processor, and as much as fits on the card
  cpu,          // beside the processor: mica, resident
  streamed,     // on the disk, and as much as fits beside the processor: mica, --weights streamed
};

enum class Level : std::uint8_t { perfect, good, marginal, too_tight };

[[nodiscard]] constexpr std::string_view name(Mode mode) noexcept {
  constexpr std::array<std::string_view, 5> names = {"GPU", "MoE offload", "CPU+GPU", "CPU", "CPU streamed"};
  return names[static_cast<std::size_t>(mode)];
}
[[nodiscard]] constexpr std::string_view name(Level level) noexcept {
  constexpr std::array<std::string_view, 4> names = {"Perfect", "Good", "Marginal", "Too tight"};
  return names[static_cast<std::size_t>(level)];
}

/// Bytes in the memory of cards and in that of the processor: needed, or available.
struct Pools {
  std::uint64_t vram = 0;  // of all cards together
  std::uint64_t ram = 0;   // beside the processor
};

/// Whether both pools are large enough.
[[nodiscard]] constexpr bool fits(Pools need, Pools available) noexcept {
  return need.vram <= available.vram && need.ram <= available.ram;
}

/// Whether a fifth of the requirement remains in both pools: need * 1.2 <= available, in whole bytes.
[[nodiscard]] constexpr bool has_headroom(Pools need, Pools available) noexcept {
  const auto spacious = [](std::uint64_t n, std::uint64_t a) {
    return n <= a && n / 5 + (n % 5 != 0) <= a - n;
  };
  return spacious(need.vram, available.vram) && spacious(need.ram, available.ram);
}

/// The part of the fuller pool that is needed; above 1: too much.
[[nodiscard]] constexpr double utilisation(Pools need, Pools available) noexcept {
  const auto part = [](std::uint64_t n, std::uint64_t a) {
    return n == 0 ? 0.0 : a == 0 ? 2.0 : static_cast<double>(n) / static_cast<double>(a);
  };
  return std::max(part(need.vram, available.vram), part(need.ram, available.ram));
}

/// The level. recommended: bytes of a card for this model in any quantisation. whole: with the requested
/// context.
[[nodiscard]] constexpr Level level_of(Mode mode, Pools need, Pools available, std::uint64_t recommended,
                                       bool whole) noexcept {
  if (!fits(need, available)) return Level::too_tight;
  if (mode == Mode::streamed || !whole || !has_headroom(need, available)) return Level::marginal;
  return mode == Mode::gpu && recommended <= available.vram ? Level::perfect : Level::good;
}

}  // namespace mica::fit
