// SPDX-License-Identifier: Apache-2.0
//
// What a pager read, and how long it was waited for: whether a run is at the speed of the disk or of the
// cores.
#pragma once

#include <cstdint>

namespace mica::paging {

/// Counts since a pager was made; the difference of two is what happened in between.
struct Reads {
  std::uint64_t bytes = 0;  // of layers, head and experts, without those that stay
  double waited = 0;        // seconds in which nothing was computed because bytes were missing
  std::uint64_t expert_hits = 0;
  std::uint64_t expert_misses = 0;

  [[nodiscard]] friend Reads operator+(const Reads& a, const Reads& b) noexcept {
    return {a.bytes + b.bytes, a.waited + b.waited, a.expert_hits + b.expert_hits,
            a.expert_misses + b.expert_misses};
  }
  [[nodiscard]] friend Reads operator-(const Reads& a, const Reads& b) noexcept {
    return {a.bytes - b.bytes, a.waited - b.waited, a.expert_hits - b.expert_hits,
            a.expert_misses - b.expert_misses};
  }
};

}  // namespace mica::paging
