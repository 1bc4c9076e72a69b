// SPDX-License-Identifier: Apache-2.0
//
// The bytes that a pager read, and the time that steps waited for them: whether a run has the speed of the
// disk or of the cores.
#pragma once

#include <cstdint>

namespace mica::paging {

/// Counts since a pager was made; take the difference of two.
struct Reads {
  std::uint64_t bytes = 0;  // of layers, output matrix and experts, without resident ones
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
