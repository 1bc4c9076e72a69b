// SPDX-License-Identifier: Apache-2.0
//
// The functions of a KvElement for keys and for values, from one template each over the part: its tiling.
#pragma once

#include "mica/format/tiling.hpp"

namespace mica::format::detail {

/// E has tilings Keys and Values, and for a Part that is one of them tile_bytes<Part>(head_dim),
/// store<Part>(tile, slot, head_dim, head) and load<Part>(tile, slot, head_dim, out).
template <class E>
struct KvParts {
  static std::size_t key_tile_bytes(std::size_t head_dim) noexcept {
    return E::template tile_bytes<typename E::Keys>(head_dim);
  }
  static std::size_t value_tile_bytes(std::size_t head_dim) noexcept {
    return E::template tile_bytes<typename E::Values>(head_dim);
  }
  static void store_key(std::byte* tile, std::size_t slot, std::size_t head_dim, const float* head) noexcept {
    E::template store<typename E::Keys>(tile, slot, head_dim, head);
  }
  static void store_value(std::byte* tile, std::size_t slot, std::size_t head_dim,
                          const float* head) noexcept {
    E::template store<typename E::Values>(tile, slot, head_dim, head);
  }
  static void load_key(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    E::template load<typename E::Keys>(tile, slot, head_dim, out);
  }
  static void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    E::template load<typename E::Values>(tile, slot, head_dim, out);
  }
};

}  // namespace mica::format::detail
