// SPDX-License-Identifier: Apache-2.0
//
// Trellis-coded quantisation (M. W. Marcellin and T. R. Fischer, 1990) with a code of four states
// (G. Ungerboeck, 1982): a number of b bits chooses among 2^b of 2^(b+1) levels, and its neighbours decide
// among which. Levels lie twice as dense as b bits alone allow; at two and three bits, normal numbers have
// about three quarters of the squared error.
//
//   index of level i = 4 * upper(i) + 2 * (path(i) ^ path(i - 2)) + path(i - 1)
//
// `upper` are b - 1 bits of number i alone, `path` is one bit. Numbers are in groups of 32, and the number
// before the first one is the last one, so that no group begins with fewer choices.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace mica::format::detail {

/// Paths of 32 numbers, number i in bit i.
struct TrellisPath {
  std::uint32_t bits = 0;

  /// Bits 0 and 1 of the indices of all levels.
  [[nodiscard]] constexpr std::uint32_t low() const noexcept { return std::rotl(bits, 1); }
  [[nodiscard]] constexpr std::uint32_t high() const noexcept { return bits ^ std::rotl(bits, 2); }
  /// Both bits of number i.
  [[nodiscard]] constexpr unsigned at(std::size_t i) const noexcept {
    return (low() >> i & 1) | (high() >> i & 1) << 1;
  }
};

/// A search for the codes of 32 numbers. levels: ascending, 2^(b + 1) of them.
template <const auto& levels>
class Trellis {
 public:
  static constexpr std::size_t size = 32;  // numbers of a group

  /// Numbers in units of levels, those at `count` and beyond free.
  Trellis(const float (&numbers)[size], std::size_t count) noexcept {
    std::copy_n(numbers, size, numbers_);
    for (std::size_t subset = 0; subset < subsets; ++subset) {
      float miss[size];
      std::fill_n(miss, size, std::numeric_limits<float>::max());
      for (std::size_t k = subset; k < level_count; k += subsets)
        take_level(static_cast<float>(levels[k]), miss);
      std::fill(miss + count, miss + size, 0.0f);
      std::copy_n(miss, size, miss_[subset]);
    }
  }

  /// About the squared error, and no more than it: that of a path whose ends need not meet.
  [[nodiscard]] float least_error() noexcept {
    costs_ = walk({});
    return costs_.of[best_of(costs_)];
  }
  /// The codes: bits of `upper`, and then that of the path. The path is the best one that ends where a second
  /// lap over the group begins. After least_error().
  void encode(std::uint8_t* codes) noexcept {
    std::size_t end = best_of(walk(costs_));
    const std::size_t begin = begin_of(end);
    if (begin != end) {
      walk(only(begin));
      end = begin;
    }
    for (std::size_t i = size, state = end; i-- > 0; state = before(i, state)) {
      const std::size_t path = state & 1, old = before(i, state);
      codes[i] = static_cast<std::uint8_t>(upper_of(i, 2 * (path ^ (old >> 1)) + (old & 1)) << 1 | path);
    }
  }

  /// The path of 32 codes.
  [[nodiscard]] static TrellisPath path_of(const std::uint8_t* codes) noexcept {
    TrellisPath path;
    for (std::size_t i = 0; i < size; ++i) path.bits |= (codes[i] & 1u) << i;
    return path;
  }
  /// The level of the code of number i.
  [[nodiscard]] static float level(unsigned code, TrellisPath path, std::size_t i) noexcept {
    return levels[code >> 1 << 2 | path.at(i)];
  }

 private:
  static constexpr std::size_t states = 4, subsets = 4, level_count = sizeof(levels) / sizeof(levels[0]);
  /// The error of the best path into each state. A state is path(i) and, in bit 1, path(i - 1).
  struct Costs {
    float of[states] = {};
  };

  /// The smaller of each error and that of one more level. Two loops, so that compilers make vectors of them.
  void take_level(float level, float (&miss)[size]) const noexcept {
    float off[size];
    for (std::size_t i = 0; i < size; ++i) off[i] = (numbers_[i] - level) * (numbers_[i] - level);
    for (std::size_t i = 0; i < size; ++i) miss[i] = std::min(miss[i], off[i]);
  }
  [[nodiscard]] static Costs only(std::size_t state) noexcept {
    Costs out;
    std::fill_n(out.of, states, 1e30f);
    out.of[state] = 0;
    return out;
  }
  [[nodiscard]] static std::size_t best_of(const Costs& costs) noexcept {
    return static_cast<std::size_t>(std::min_element(costs.of, costs.of + states) - costs.of);
  }
  /// One lap. Keeps the better of the two ways into each state.
  Costs walk(Costs costs) noexcept {
    for (std::size_t i = 0; i < size; ++i) {
      const float even[2] = {miss_[0][i], miss_[2][i]}, odd[2] = {miss_[1][i], miss_[3][i]};
      Costs next;
      // Into path(i), after path(i - 1) = 0 and 1: from path(i - 2) = 0 or 1.
      const unsigned from = better(costs.of[0] + even[0], costs.of[2] + even[1], next.of[0]) |
                            better(costs.of[0] + even[1], costs.of[2] + even[0], next.of[1]) << 1 |
                            better(costs.of[1] + odd[0], costs.of[3] + odd[1], next.of[2]) << 2 |
                            better(costs.of[1] + odd[1], costs.of[3] + odd[0], next.of[3]) << 3;
      from_[i] = static_cast<std::uint8_t>(from);
      costs = next;
    }
    return costs;
  }
  /// The smaller of two costs; returns whether it is the second.
  static unsigned better(float zero, float one, float& out) noexcept {
    out = std::min(zero, one);
    return one < zero ? 1 : 0;
  }
  /// The state before number i on the best path into `state`, and the state before all of them.
  [[nodiscard]] std::size_t before(std::size_t i, std::size_t state) const noexcept {
    return state >> 1 | (from_[i] >> state & 1u) << 1;
  }
  [[nodiscard]] std::size_t begin_of(std::size_t state) const noexcept {
    for (std::size_t i = size; i-- > 0;) state = before(i, state);
    return state;
  }
  /// The place of the nearest level in a subset.
  [[nodiscard]] std::size_t upper_of(std::size_t i, std::size_t subset) const noexcept {
    std::size_t upper = 0;
    for (std::size_t k = subset; k + subsets < level_count; k += subsets)
      upper += numbers_[i] > 0.5f * static_cast<float>(levels[k] + levels[k + subsets]) ? 1 : 0;
    return upper;
  }

  float numbers_[size];
  float miss_[subsets][size];  // the squared error of the nearest level of a subset
  std::uint8_t from_[size];    // bit s: the way into state s comes from path(i - 2) = 1
  Costs costs_;
};

static_assert(TrellisPath{0b0110}.at(1) == 2 && TrellisPath{0b0110}.at(2) == 3 &&
              TrellisPath{0b0110}.at(4) == 2 && TrellisPath{1u << 31}.at(0) == 1);

}  // namespace mica::format::detail
