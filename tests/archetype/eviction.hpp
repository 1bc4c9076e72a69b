// SPDX-License-Identifier: Apache-2.0
//
// The least Eviction: the oldest tokens go.

#pragma once

#include "mica/kv/eviction.hpp"

namespace mica::archetype {

class Eviction {
 public:
  explicit Eviction(std::size_t keep = 128) noexcept : keep_(keep) {}

  // Required by Eviction
  static constexpr std::string_view name = "oldest";
  static constexpr bool evicts = true;
  [[nodiscard]] std::size_t capacity() const noexcept { return keep_; }
  [[nodiscard]] static bool needs_scores() noexcept { return false; }
  [[nodiscard]] static float decay() noexcept { return 1; }
  [[nodiscard]] static std::size_t choose(const kv::EvictionView& /*held*/) noexcept { return 0; }

 private:
  std::size_t keep_;  // a multiple of 64
};
static_assert(mica::Eviction<Eviction>);

}  // namespace mica::archetype
