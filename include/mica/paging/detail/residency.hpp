// SPDX-License-Identifier: Apache-2.0
//
// The units of weights that stay in memory when not all fit. Steps use all units in one order: a resident
// unit saves its bytes once per step, so the most bytes should be resident, and a least-recently-used cache
// would never hit. Resident units are spread evenly between those that are read, so that there is always work
// while the disk is read.
//
//   ring      | unit that is used | the next one, on its way |
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mica::paging {

/// The bytes of each unit, in the order of a step, and the largest part of it that is in the ring at a time:
/// the unit itself, or a slice of which several follow each other.
struct UnitSizes {
  std::vector<std::uint64_t> bytes, passing;

  UnitSizes() = default;
  /// Units that pass as a whole.
  UnitSizes(
      std::vector<std::uint64_t> whole)  // NOLINT(google-explicit-constructor): one number for each unit
      : bytes(whole), passing(std::move(whole)) {}
  [[nodiscard]] std::size_t count() const noexcept { return bytes.size(); }
  [[nodiscard]] bool is_sliced(std::size_t unit) const noexcept { return passing[unit] < bytes[unit]; }
  [[nodiscard]] std::uint64_t largest_passing() const noexcept {
    return passing.empty() ? 0 : *std::max_element(passing.begin(), passing.end());
  }
};

/// A choice. Bytes of what stays and of the ring together are what it takes.
struct Residency {
  std::vector<bool> stays;           // by unit
  std::uint64_t staying_bytes = 0;   // of units that stay
  std::uint64_t streamed_bytes = 0;  // of the others: what a step reads
  std::uint64_t ring_bytes = 0;      // for a unit and the next one; 0: nothing is read
  bool rows_stay = false;            // so does what is read row by row; not in staying_bytes

  [[nodiscard]] std::uint64_t bytes() const noexcept { return staying_bytes + ring_bytes; }
};

namespace detail {

/// 0, 1/2, 1/4, 3/4, 1/8 ... of n: each prefix of the order is spread over all (van der Corput).
[[nodiscard]] inline std::vector<std::size_t> spread_order(std::size_t n) {
  std::vector<std::size_t> order;
  std::size_t bits = 0;
  while ((std::size_t{1} << bits) < n) ++bits;
  for (std::size_t i = 0; i < std::size_t{1} << bits; ++i) {
    std::size_t reversed = 0;
    for (std::size_t b = 0; b < bits; ++b) reversed |= (i >> b & 1) << (bits - 1 - b);
    if (reversed < n) order.push_back(reversed);
  }
  return order;
}

/// Room for any unit that is read beside the one that is read after it. Takes no memory.
[[nodiscard]] inline std::uint64_t ring_for(const UnitSizes& sizes, const std::vector<bool>& stays) noexcept {
  std::uint64_t max = 0, first = 0, last = 0;
  std::size_t streamed = 0;
  for (std::size_t g = 0; g < sizes.count(); ++g) {
    if (stays[g]) continue;
    const std::uint64_t bytes = sizes.passing[g];
    if (streamed++ == 0) first = bytes;
    max = std::max({max, last + bytes, sizes.is_sliced(g) ? 2 * bytes : 0});
    last = bytes;
  }
  return streamed > 1 ? std::max(max, last + first) : max;
}

[[nodiscard]] inline Residency residency_of(const UnitSizes& sizes, std::vector<bool> stays) {
  Residency out{.stays = std::move(stays)};
  for (std::size_t g = 0; g < sizes.count(); ++g) {
    (out.stays[g] ? out.staying_bytes : out.streamed_bytes) += sizes.bytes[g];
  }
  out.ring_bytes = ring_for(sizes, out.stays);
  return out;
}

}  // namespace detail

/// The choice that reads the least and takes no more than `budget`. Where not even a ring of two units fits,
/// one of the largest unit alone: its reads cannot overlap with anything, and it may take more than the
/// budget.
[[nodiscard]] inline Residency choose_residency(const UnitSizes& sizes, std::uint64_t budget) {
  const std::vector<std::uint64_t>& bytes = sizes.bytes;
  const std::vector<bool> none(bytes.size(), false);
  Residency best = detail::residency_of(sizes, none);
  if (best.bytes() > budget) best.ring_bytes = sizes.largest_passing();
  // The largest unit may make the ring so large that keeping it costs less than reading it.
  std::vector<std::size_t> order = detail::spread_order(bytes.size());
  std::vector<std::size_t> largest_first = order;
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b] + bytes[b] / 2; });
  for (const auto& candidates : {order, largest_first}) {
    std::vector<bool> stays = none;
    Residency now = detail::residency_of(sizes, stays);
    for (const std::size_t g : candidates) {
      stays[g] = true;
      Residency with = detail::residency_of(sizes, stays);
      if (with.bytes() <= budget) {
        now = std::move(with);
      } else {
        stays[g] = false;
      }
    }
    if (now.bytes() <= budget && (best.bytes() > budget || now.streamed_bytes < best.streamed_bytes)) {
      best = std::move(now);
    }
  }
  return best;
}

}  // namespace mica::paging
