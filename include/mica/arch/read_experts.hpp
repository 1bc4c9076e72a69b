// SPDX-License-Identifier: Apache-2.0
//
// Common to families with experts.
#pragma once

#include "mica/arch/read_keys.hpp"
#include "mica/block/experts.hpp"
#include "mica/block/experts_beside_dense.hpp"

#include <algorithm>
#include <cstddef>

namespace mica::arch {

/// A mixture of experts with the keys that all families share. ff_width: where the file does not say.
[[nodiscard]] inline block::ExpertsConfig read_experts(const KeyReader& keys, std::size_t ff_width) {
  block::ExpertsConfig experts;
  experts.count = keys.count("expert_count", 1, max_experts);
  experts.used = keys.count("expert_used_count", 1, experts.count);
  experts.ff_width = keys.count_or("expert_feed_forward_length", 1, max_width, ff_width);
  MICA_CHECK(experts.ff_width >= 1, file, keys.file(), ": key '", keys.key("expert_feed_forward_length"),
             "' is missing; needed: a whole number from 1 to ", max_width);
  return experts;
}

/// Of the dense block that a layer begins with.
[[nodiscard]] inline std::size_t ff_width_of(const Layer& layer) {
  return layer.get<block::DenseFeedForward>().ff_width;
}
/// Puts experts in the place of that block. ff_width: of an expert, where the file does not say.
inline block::ExpertsConfig& replace_by_experts(const KeyReader& keys, Layer& layer, std::size_t ff_width) {
  return layer.replace<block::DenseFeedForward, block::Experts>(read_experts(keys, ff_width));
}

/// Experts of one layer; 0: none has any.
[[nodiscard]] inline std::size_t largest_mixture(const Config& config) {
  return std::max(config.max_of<block::Experts>([](const auto& e) { return e.count; }),
                  config.max_of<block::ExpertsBesideDense>([](const auto& e) { return e.experts.count; }));
}

}  // namespace mica::arch
