// SPDX-License-Identifier: Apache-2.0
//
// Keeps tiles with high accumulated attention scores. With decay 1 the scores of all queries count, as in H2O
// (Z. Zhang et al., arXiv 2306.14048); with decay 0 those of the last 64 alone, as in SnapKV (Y. Li et al.,
// arXiv 2404.14469). The first tile and the newest ones are never evicted. In these papers each head and
// layer chooses its own tokens; here the choice is the same for all, so that there is one table of resident
// tiles.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/kv/eviction.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace mica::kv {

/// Numbers of HeavyHitters.
struct HeavyHittersOptions {
  std::size_t recent = 0;  // newest tokens that stay, rounded up to a multiple of 16; 0: half of the capacity
  float decay = 0.5f;      // the factor of accumulated scores every 64 tokens, [0, 1]
};

class HeavyHitters {
 public:
  // Required by Eviction
  static constexpr std::string_view name = "heavy";
  static constexpr bool evicts = true;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] static constexpr bool needs_scores() noexcept { return true; }
  [[nodiscard]] float decay() const noexcept { return decay_; }
  /// The tile with the lowest score, of equal ones the oldest.
  [[nodiscard]] std::size_t choose(const EvictionView& resident) const noexcept {
    const std::size_t end = resident.tiles.size() - recent_ / format::tile_tokens;
    const auto first = resident.scores.begin() + 1;
    return static_cast<std::size_t>(
        std::min_element(first, resident.scores.begin() + static_cast<std::ptrdiff_t>(end)) -
        resident.scores.begin());
  }

  // Specific to HeavyHitters
  /// capacity: max resident tokens, rounded down to a multiple of 64. Raises ErrorCode::usage for less than
  /// recent + 128, or less than 256 where recent is not given, and for a decay outside [0, 1].
  explicit HeavyHitters(std::size_t capacity, const HeavyHittersOptions& options = {})
      : capacity_(capacity / eviction_step * eviction_step),
        recent_(round_up(options.recent == 0 ? capacity_ / 2 : std::min(options.recent, capacity),
                         format::tile_tokens)),
        decay_(options.decay) {
    MICA_CHECK(capacity_ >= recent_ + 2 * eviction_step, usage, "eviction: ", capacity,
               " tokens do not hold the last ", recent_, " and others; the minimum is ",
               options.recent == 0 ? 4 * eviction_step : least_capacity(options.recent));
    MICA_CHECK(decay_ >= 0 && decay_ <= 1, usage, "eviction: a decay of ", decay_, " is not between 0 and 1");
  }

 private:
  std::size_t capacity_;
  std::size_t recent_;
  float decay_;
};

static_assert(Eviction<HeavyHitters>);

}  // namespace mica::kv
