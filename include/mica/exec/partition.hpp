// SPDX-License-Identifier: Apache-2.0
//
// Divides [0, n) into contiguous slices, one per worker, whose boundaries are multiples of a granularity.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"

#include <cstddef>

namespace mica::exec {

/// Units [begin, end).
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] constexpr std::size_t size() const noexcept { return end - begin; }
  [[nodiscard]] constexpr bool empty() const noexcept { return begin == end; }
  friend constexpr bool operator==(const Range&, const Range&) noexcept = default;
};

/// Slice `index` of `parts` of [0, n): the slices are contiguous, in order, cover all, begin on multiples of
/// `granularity` and differ by at most one granule. Later slices may be empty.
/// granularity > 0, parts > 0, index < parts.
[[nodiscard]] constexpr Range partition(std::size_t n, std::size_t granularity, std::size_t parts,
                                        std::size_t index) noexcept {
  MICA_ASSERT(granularity > 0 && index < parts);
  const std::size_t granules = ceil_div(n, granularity);
  const std::size_t each = granules / parts;
  const std::size_t longer = granules % parts;  // the first slices have one granule more
  const std::size_t first = index * each + (index < longer ? index : longer);
  const std::size_t last = first + each + (index < longer ? 1 : 0);
  // The last granule may be cut short, so only a slice that ends before it can multiply safely.
  const std::size_t begin = first == granules ? n : first * granularity;
  const std::size_t end = last == granules ? n : last * granularity;
  return {begin, end};
}

}  // namespace mica::exec
