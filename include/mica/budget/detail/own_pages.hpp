// SPDX-License-Identifier: Apache-2.0
//
// The memory of this process as the kernel counts it, in pages: /proc/self/statm.
#pragma once

#include "mica/budget/detail/cgroup.hpp"

#include <cstdint>
#include <string_view>
#include <unistd.h>

namespace mica::budget::detail {

/// Pages; 0 where the system does not say.
struct OwnPages {
  std::uint64_t mapped = 0;
  std::uint64_t resident = 0;
  std::uint64_t shared = 0;  // of those resident, the ones that a file has

  /// text: of /proc/self/statm.
  [[nodiscard]] static OwnPages of(std::string_view text) noexcept {
    const auto next = [&] { return number_at(take_until(text, ' ')).value_or(0); };
    OwnPages pages;
    pages.mapped = next();
    pages.resident = next();
    pages.shared = next();
    return pages;
  }
};

/// Bytes of a page.
[[nodiscard]] inline std::uint64_t page_bytes() noexcept {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace mica::budget::detail
