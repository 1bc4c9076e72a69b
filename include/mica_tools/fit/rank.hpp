// SPDX-License-Identifier: Apache-2.0
//
// The order of fits: the best model that is quick enough comes first.
//
//   quick      in memory with headroom, with the context of the use, and with at least its speed: by quality
//   limited    in memory, but slower, with less headroom, or with less context: by speed
//   streamed   weights are read from the disk for each token: by speed
//   too tight  does not run: by the missing memory
//
// In the tier quick, speed beyond that of the use does not count, and neither does memory that remains.
#pragma once

#include "mica_tools/fit/quality.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::fit {

/// How near a fit is to the requirements of a use.
enum class Tier : std::uint8_t { quick, limited, streamed, too_tight };

[[nodiscard]] constexpr std::string_view name(Tier tier) noexcept {
  constexpr std::array<std::string_view, 4> names = {"quick", "limited", "streamed", "too tight"};
  return names[static_cast<std::size_t>(tier)];
}

/// The context that a use requires of a fit: the requested one if that is shorter.
[[nodiscard]] constexpr std::size_t needed_context(const Fit& fit, const Use& use) noexcept {
  return std::min(use.tokens, fit.wanted);
}

/// The tier of a fit for a use: docs/fit.md has the table.
[[nodiscard]] constexpr Tier tier_of(const Fit& fit, const Use& use) noexcept {
  if (fit.level == Level::too_tight) return Tier::too_tight;
  if (fit.mode == Mode::streamed) return Tier::streamed;
  const bool quick = fit.level <= Level::good && fit.decode >= use.min_decode &&
                     fit.setting.n_ctx >= needed_context(fit, use);
  return quick ? Tier::quick : Tier::limited;
}

/// A fit, its tier and its quality.
struct Ranked {
  Fit fit;                      // as the Selector chose it
  Tier tier = Tier::too_tight;  // for the use
  Quality quality;              // for the use
};

/// Whether a comes before b. Ties within a tier are decided by speed, then quality, then name.
[[nodiscard]] inline bool before(const Ranked& a, const Ranked& b) noexcept {
  if (a.tier != b.tier) return a.tier < b.tier;
  if (a.tier == Tier::too_tight) {
    const double part_a = utilisation(a.fit.need, a.fit.available),
                 part_b = utilisation(b.fit.need, b.fit.available);
    return part_a != part_b ? part_a < part_b : a.fit.name < b.fit.name;
  }
  if (a.tier == Tier::quick && a.quality.total != b.quality.total) return a.quality.total > b.quality.total;
  if (a.fit.decode != b.fit.decode) return a.fit.decode > b.fit.decode;
  if (a.quality.total != b.quality.total) return a.quality.total > b.quality.total;
  return a.fit.name < b.fit.name;
}

/// All fits in that order.
[[nodiscard]] inline std::vector<Ranked> ranked(std::vector<Fit> fits, const Use& use) {
  std::vector<Ranked> all;
  for (Fit& fit : fits) {
    const Tier tier = tier_of(fit, use);
    const Quality quality = quality_of(fit, use);
    all.push_back({std::move(fit), tier, quality});
  }
  std::sort(all.begin(), all.end(), before);
  return all;
}

}  // namespace mica::fit
