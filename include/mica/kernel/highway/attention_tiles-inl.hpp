// SPDX-License-Identifier: Apache-2.0
//
// Per target: what the kernels of attention share: which tokens of a tile a row sees, and numbers as
// integers.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_TILES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_TILES_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_TILES_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_TILES_INL_HPP
#endif

#include "mica/kernel/highway/ops-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Tokens of tile `tile` that a row sees, as slots.
struct Slots {
  std::size_t first;
  std::size_t last;

  [[nodiscard]] bool none() const { return first >= last; }
  [[nodiscard]] bool all() const { return first == 0 && last == 16; }
};

HWY_INLINE Slots slots_in(const Visible& v, std::size_t tile) {
  const std::size_t begin = tile * 16;
  const auto slot = [&](std::size_t j) { return j < begin ? 0 : HWY_MIN(j - begin, std::size_t{16}); };
  return {slot(v.first), slot(v.last)};
}

/// Tiles that a row may see: [first, last).
HWY_INLINE std::size_t first_tile(const Visible& v) { return v.first / 16u; }
HWY_INLINE std::size_t last_tile(const Visible& v) {
  return v.empty() ? v.first / 16u : (v.last + 15u) / 16u;
}

HWY_INLINE hn::Mask<DF> mask_of(const Slots& s, std::size_t part) {
  const VI slot = hn::Iota(DI(), static_cast<std::int32_t>(part * lanes));
  const auto from = hn::Ge(slot, hn::Set(DI(), static_cast<std::int32_t>(s.first)));
  const auto to = hn::Lt(slot, hn::Set(DI(), static_cast<std::int32_t>(s.last)));
  return hn::RebindMask(DF(), hn::And(from, to));
}

/// How far behind a tile its successor lies, modulo 2^64; 0, which asks for what is being read, when there is
/// none.
HWY_INLINE std::size_t distance_ahead(const AttentionArgs& a, std::size_t tile, bool first_rows) {
  if (!first_rows || a.ahead == nullptr || a.ahead[tile] == nullptr) return 0;
  return reinterpret_cast<std::uintptr_t>(a.ahead[tile]) - reinterpret_cast<std::uintptr_t>(a.tiles[tile]);
}

/// The visible scores of one part of a tile.
HWY_INLINE void store_scores(VF scores, const Slots& s, std::size_t part, float* p) {
  if (s.all()) {
    hn::StoreU(scores, DF(), p + part * lanes);
  } else {
    hn::BlendedStore(scores, mask_of(s, part), DF(), p + part * lanes);
  }
}

/// What some rows see of a chunk: the tiles that at least one of them reads.
struct SeenTiles {
  std::size_t tile[chunk_tiles];
  std::size_t count = 0;
};

HWY_INLINE SeenTiles seen_by(const AttentionArgs& a, const std::size_t* row, std::size_t rows) {
  static_assert(chunk_tiles < 32);
  std::uint32_t any = 0;  // a bit for each tile
  for (std::size_t r = 0; r < rows; ++r) {
    const Visible& v = a.visible[row[r]];
    if (!v.empty()) any |= (1u << last_tile(v)) - (1u << first_tile(v));
  }
  SeenTiles seen;
  for (; any != 0; any &= any - 1) seen.tile[seen.count++] = static_cast<std::size_t>(std::countr_zero(any));
  return seen;
}

/// Calls of_rows(a, rows, their number) for all rows that see something, n by n.
template <std::size_t n, class OfRows>
HWY_INLINE void for_seeing_rows(const AttentionArgs& a, const OfRows& of_rows) {
  std::size_t row[n];
  std::size_t count = 0;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (!a.visible[r].empty()) row[count++] = r;
    if (count == n || (count != 0 && r + 1 == a.q.rows())) {
      of_rows(a, row, count);
      count = 0;
    }
  }
}

/// The same four by four, with the number as a constant: of_rows(number, rows).
template <class OfRows>
HWY_INLINE void for_seeing_fours(const AttentionArgs& a, const OfRows& of_rows) {
  for_seeing_rows<4>(a, [&](const AttentionArgs&, const std::size_t* row, std::size_t count) HWY_ATTR {
    with_constant<4>(count, [&](auto number) HWY_ATTR { of_rows(number, row); });
  });
}

/// As many tokens of a tile as a vector of floats has lanes.
struct Block {
  std::size_t tile;
  std::size_t part;
};

/// Numbers as integers: x = scale * code.
struct IntegerRow {
  std::int16_t code[max_head_dim];  // padded with zeros to a multiple of 32
  float scale;
};

/// The bits of the largest |x| of n numbers: bits of floats that are not negative sort as the floats do.
inline std::int32_t largest_bits(const float* x, std::size_t n) {
  VI largest = hn::Zero(DI());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) largest = hn::Max(largest, hn::BitCast(DI(), hn::Abs(load(x + i))));
  std::int32_t bits = hn::ReduceMax(DI(), largest);
  for (; i < n; ++i) bits = HWY_MAX(bits, std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF);
  return bits;
}
inline constexpr std::int32_t infinite_bits = 0x7F800000;  // of infinity; those of NaNs are above

/// The scale by which the largest |x| becomes `top`, and its inverse.
struct IntegerScale {
  float scale;    // NaN: a number was not finite
  float inverse;  // 0: all integers are 0

  HWY_INLINE IntegerScale(std::int32_t largest, float top) {
    const float amax = std::bit_cast<float>(largest);
    const bool finite = largest < infinite_bits, zero = !finite || amax < 1e-30f;
    scale = !finite ? std::bit_cast<float>(0x7FC00000u) : zero ? 0.0f : amax / top;
    inverse = zero ? 0.0f : top / amax;
  }
};

/// The largest number becomes `top`.
inline void quantize_row(const float* x, std::size_t n, float top, IntegerRow& out) {
  const IntegerScale how(largest_bits(x, n), top);
  std::fill_n(out.code, (n + 31) / 32 * 32, std::int16_t{0});
  out.scale = how.scale;
  if (how.inverse == 0) return;
  const hn::Rebind<std::int16_t, DF> d16;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VI code = hn::NearestInt(hn::Mul(load(x + i), hn::Set(DF(), how.inverse)));
    hn::StoreU(hn::DemoteTo(d16, code), d16, out.code + i);
  }
  for (; i < n; ++i) out.code[i] = static_cast<std::int16_t>(std::nearbyint(x[i] * how.inverse));
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
