// SPDX-License-Identifier: Apache-2.0
//
// F32, F16 and BF16: a block is one number. In KV tiles, one dimension of the keys of 16 tokens lies
// together, and all dimensions of a token's value.
#pragma once

#include "mica/format/concept.hpp"
#include "mica/format/tiling.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

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
struct FloatFormat : KvParts<FloatFormat<T>> {
  using Block = T;
  static constexpr std::size_t block_size = 1;
  static constexpr Arithmetic arithmetic = Arithmetic::real;
  static constexpr bool vector_codec = true;

  static void decode(const Block& block, float* values) noexcept { *values = widen(block); }
  static void encode(const float* values, Block& block) noexcept { narrow(*values, block); }

  // Required by KvParts
  using Keys = Tiling<tile_tokens, Columns<>, Rows<>>;
  using Values = Tiling<tile_tokens, Rows<>, Columns<>>;
  template <class Part>
  static std::size_t tile_bytes(std::size_t head_dim) noexcept {
    return Part::size(head_dim) * sizeof(T);
  }
  template <class Part>
  static void store(std::byte* tile, std::size_t slot, std::size_t head_dim, const float* head) noexcept {
    T* const numbers = reinterpret_cast<T*>(tile);
    if constexpr (std::is_same_v<Part, Values> && std::is_same_v<T, float>) {
      std::copy_n(head, head_dim, numbers + Part::place(slot, 0, head_dim));
    } else {
      for (std::size_t i = 0; i < head_dim; ++i) narrow(head[i], numbers[Part::place(slot, i, head_dim)]);
    }
  }
  template <class Part>
  static void load(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    const T* const numbers = reinterpret_cast<const T*>(tile);
    for (std::size_t i = 0; i < head_dim; ++i) out[i] = widen(numbers[Part::place(slot, i, head_dim)]);
  }
};

}  // namespace detail

/// Single precision of IEEE 754.
struct F32 : detail::FloatFormat<float> {
  static constexpr Id id{0};
  static constexpr std::string_view name = "F32";
};

/// Half precision of IEEE 754.
struct F16 : detail::FloatFormat<Half> {
  static constexpr Id id{1};
  static constexpr std::string_view name = "F16";
};

/// The upper half of single precision.
struct BF16 : detail::FloatFormat<Bfloat> {
  static constexpr Id id{30};
  static constexpr std::string_view name = "BF16";
};

static_assert(EncodableFormat<F32> && EncodableFormat<F16> && EncodableFormat<BF16>);
static_assert(KvElement<F32> && KvElement<F16> && KvElement<BF16>);

}  // namespace mica::format
