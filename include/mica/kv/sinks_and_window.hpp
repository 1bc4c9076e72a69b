// SPDX-License-Identifier: Apache-2.0
//
// The first tokens of a text and the last ones stay, as StreamingLLM does (G. Xiao et al., arXiv 2309.17453):
// models put unused attention on the first tokens, and fail without them.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/kv/eviction.hpp"

#include <cstddef>
#include <string_view>

namespace mica::kv {

class SinksAndWindow : public Scoreless {
 public:
  // Required by Eviction
  static constexpr std::string_view name = "sinks";
  static constexpr bool evicts = true;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t choose(const EvictionView&) const noexcept {
    return sinks_ / format::tile_tokens;
  }

  // Specific to SinksAndWindow
  /// capacity: max resident tokens, rounded down to a multiple of 64. sinks: first tokens that stay, rounded
  /// up to a multiple of 16. A query sees them and the last capacity - sinks - 63 to capacity - sinks tokens.
  /// Raises ErrorCode::usage for capacity < sinks + 128.
  explicit SinksAndWindow(std::size_t capacity, std::size_t sinks = 16)
      : capacity_(capacity / eviction_step * eviction_step), sinks_(round_up(sinks, format::tile_tokens)) {
    MICA_CHECK(sinks <= capacity && capacity_ >= sinks_ + 2 * eviction_step, usage, "eviction: ", capacity,
               " tokens do not hold ", sinks, " first ones and a window; the minimum is ",
               least_capacity(sinks));
  }

 private:
  std::size_t capacity_;
  std::size_t sinks_;
};

static_assert(Eviction<SinksAndWindow>);

}  // namespace mica::kv
