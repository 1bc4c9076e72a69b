// SPDX-License-Identifier: Apache-2.0
//
// F32, F16 and BF16: a block is one number. As KV elements their tiles are
//
//   keys     [head_dim][16 tokens]
//   values   [16 tokens][head_dim]
#pragma once

#include "mica/base/bits.hpp"
#include "mica/format/concept.hpp"

#include <cstring>

namespace mica::format {

namespace detail {

inline float widen(float x) noexcept { return x; }
inline float widen(Half x) noexcept { return to_float(x); }
inline float widen(Bfloat x) noexcept { return to_float(x); }

inline void narrow(float x, float& out) noexcept { out = x; }
inline void narrow(float x, Half& out) noexcept { out = to_half(x); }
inline void narrow(float x, Bfloat& out) noexcept { out = to_bfloat(x); }

/// What the three float formats share; T is the number as it lies in memory.
template <class T>
struct FloatFormat {
  using Block = T;
  static constexpr std::size_t block_size = 1;
  static constexpr Arithmetic arithmetic = Arithmetic::real;
  static constexpr bool vector_codec = true;

  static void decode(const Block& block, float* values) noexcept { *values = widen(block); }
  static void encode(const float* values, Block& block) noexcept { narrow(*values, block); }

  // Required by KvElement
  static std::size_t key_tile_bytes(std::size_t head_dim) noexcept {
    return head_dim * tile_tokens * sizeof(T);
  }
  static std::size_t value_tile_bytes(std::size_t head_dim) noexcept { return key_tile_bytes(head_dim); }

  static void store_key(std::byte* tile, std::size_t slot, std::size_t head_dim, const float* head) noexcept {
    T* const keys = reinterpret_cast<T*>(tile);  // (head_dim, 16)
    for (std::size_t i = 0; i < head_dim; ++i) narrow(head[i], keys[i * tile_tokens + slot]);
  }
  static void store_value(std::byte* tile, std::size_t slot, std::size_t head_dim,
                          const float* head) noexcept {
    T* const values = reinterpret_cast<T*>(tile) + slot * head_dim;  // (16, head_dim)
    for (std::size_t i = 0; i < head_dim; ++i) narrow(head[i], values[i]);
  }
  static void load_key(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    const T* const keys = reinterpret_cast<const T*>(tile);
    for (std::size_t i = 0; i < head_dim; ++i) out[i] = widen(keys[i * tile_tokens + slot]);
  }
  static void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    const T* const values = reinterpret_cast<const T*>(tile) + slot * head_dim;
    for (std::size_t i = 0; i < head_dim; ++i) out[i] = widen(values[i]);
  }
};

}  // namespace detail

struct F32 : detail::FloatFormat<float> {
  static constexpr Id id = Id::F32;
  static constexpr std::string_view name = "F32";
};

struct F16 : detail::FloatFormat<Half> {
  static constexpr Id id = Id::F16;
  static constexpr std::string_view name = "F16";
};

struct BF16 : detail::FloatFormat<Bfloat> {
  static constexpr Id id = Id::BF16;
  static constexpr std::string_view name = "BF16";
};

static_assert(EncodableFormat<F32> && EncodableFormat<F16> && EncodableFormat<BF16>);
static_assert(KvElement<F32> && KvElement<F16> && KvElement<BF16>);

}  // namespace mica::format
