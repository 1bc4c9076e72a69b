// SPDX-License-Identifier: Apache-2.0
//
// The minimal Eviction: the oldest tokens are evicted.

#pragma once

#include "mica/kv/eviction.hpp"

namespace mica::archetype {

class Eviction {
 public:
  explicit Eviction(std::size_t capacity = 128) noexcept : capacity_(capacity) {}

  // Required by Eviction
  static constexpr std::string_view name = "oldest";
  static constexpr bool evicts = true;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] static bool needs_scores() noexcept { return false; }
  [[nodiscard]] static float decay() noexcept { return 1; }
  [[nodiscard]] static std::size_t choose(const mica::kv::EvictionView& /*view*/) noexcept { return 0; }

 private:
  std::size_t capacity_;  // a multiple of 64
};
static_assert(mica::Eviction<Eviction>);

}  // namespace mica::archetype
