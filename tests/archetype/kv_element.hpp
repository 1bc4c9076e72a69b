// SPDX-License-Identifier: Apache-2.0
//
// The minimal KvElement: floats, a token after the other, keys and values alike.

#pragma once

#include "mica/format/concept.hpp"

#include <algorithm>

namespace mica::archetype {

struct KvElement {
  // Required by KvElement
  static constexpr std::string_view name = "plain";

  static std::size_t key_tile_bytes(std::size_t head_dim) noexcept { return 16 * head_dim * sizeof(float); }
  static std::size_t value_tile_bytes(std::size_t head_dim) noexcept { return 16 * head_dim * sizeof(float); }

  static void store_key(std::byte* tile, std::size_t slot, std::size_t head_dim, const float* head) noexcept {
    std::copy_n(head, head_dim, reinterpret_cast<float*>(tile) + slot * head_dim);
  }
  static void load_key(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    std::copy_n(reinterpret_cast<const float*>(tile) + slot * head_dim, head_dim, out);
  }
  static void store_value(std::byte* tile, std::size_t slot, std::size_t head_dim,
                          const float* head) noexcept {
    store_key(tile, slot, head_dim, head);
  }
  static void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    load_key(tile, slot, head_dim, out);
  }
};
static_assert(mica::KvElement<KvElement>);

}  // namespace mica::archetype
