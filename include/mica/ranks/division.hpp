// SPDX-License-Identifier: Apache-2.0
//
// How rows, or layers, are divided among ranks: consecutive units, as many as the share of a rank says. Every
// rank computes the parts of all from the same shares.
//
//   units    | 0 1 2 | 3 4 | 5 6 7 |      of 8, for shares 3 : 2 : 3
//   rank         0      1      2
#pragma once

#include "mica/base/assert.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mica::ranks {

/// What ranks divide.
enum class Split : std::uint8_t {
  rows,    ///< of each product: all ranks work on a token at once, and exchange four times in a layer
  layers,  ///< consecutive ones: a rank passes the tokens on to the next, once in a step
};

/// Consecutive units, those of one rank.
struct Part {
  std::size_t first = 0;  // of them, among all
  std::size_t count = 0;  // 0: the rank has none
  std::size_t all = 0;    // of all ranks

  /// Whether the rank has all of them.
  [[nodiscard]] constexpr bool whole() const noexcept { return count == all; }
  [[nodiscard]] constexpr std::size_t end() const noexcept { return first + count; }
  /// The same in units of which n make one of these.
  [[nodiscard]] constexpr Part times(std::size_t n) const noexcept { return {first * n, count * n, all * n}; }

  friend bool operator==(const Part&, const Part&) = default;
};

/// All of n units.
[[nodiscard]] constexpr Part all_of(std::size_t n) noexcept { return {0, n, n}; }

/// The shares of all ranks, and which rank this is. Immutable.
class Division {
 public:
  /// One rank that has everything.
  Division() = default;
  /// A share for each rank, and the number of this one. Raises ErrorCode::usage where the rank is none of
  /// them, or a share is not a positive number.
  Division(const std::vector<double>& shares, std::size_t rank) : rank_(rank), ends_() {
    MICA_CHECK(rank < shares.size(), usage, "rank ", rank, " of ", shares.size(), " ranks");
    double sum = 0;
    for (const double share : shares) {
      MICA_CHECK(share > 0 && std::isfinite(share), usage, "shares of ranks: found ", share,
                 ", allowed are positive numbers");
      ends_.push_back(sum += share);
    }
  }

  /// The same ranks, where `owner` has everything.
  [[nodiscard]] Division all_to(std::size_t owner) const {
    Division out = *this;
    for (std::size_t r = 0; r < size(); ++r) out.ends_[r] = r < owner ? 0 : 1;
    return out;
  }
  /// The rank that has a unit, of n.
  [[nodiscard]] std::size_t owner(std::size_t n, std::size_t unit) const noexcept {
    std::size_t rank = 0;
    while (unit >= end(n, rank)) ++rank;
    return rank;
  }

  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }  // ranks
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }         // this one
  /// Units of a rank, of n.
  [[nodiscard]] Part part(std::size_t n, std::size_t rank) const noexcept {
    const std::size_t first = rank == 0 ? 0 : end(n, rank - 1);
    return {first, end(n, rank) - first, n};
  }
  /// Those of this rank.
  [[nodiscard]] Part own(std::size_t n) const noexcept { return part(n, rank_); }

 private:
  [[nodiscard]] std::size_t end(std::size_t n, std::size_t rank) const noexcept {
    if (rank + 1 == ends_.size()) return n;
    return static_cast<std::size_t>(std::floor(static_cast<double>(n) * (ends_[rank] / ends_.back()) + 0.5));
  }

  std::size_t rank_ = 0;
  std::vector<double> ends_{1.0};  // sums of shares up to each rank
};

/// How ranks divide the rows of products: where they divide layers, each has all rows of its own.
[[nodiscard]] inline Division row_division(const Division& ranks, Split split) {
  return split == Split::rows ? ranks : Division();
}

/// Rows of a product with n outputs are divided in units of this: panels of 16, where there are some.
[[nodiscard]] constexpr std::size_t output_unit(std::size_t n) noexcept { return n % 16 == 0 ? 16 : 1; }
/// Of n outputs those of this rank.
[[nodiscard]] inline Part outputs(const Division& division, std::size_t n) noexcept {
  return division.own(n / output_unit(n)).times(output_unit(n));
}

}  // namespace mica::ranks
