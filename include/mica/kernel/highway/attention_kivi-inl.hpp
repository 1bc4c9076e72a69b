// SPDX-License-Identifier: Apache-2.0
//
// Per target: attention over keys with a scale for each channel and values with one for 32 numbers of a token
// (format/kivi.hpp). A channel's scale goes into the query once per tile, so that keys are read as codes:
// sixteen bytes hold two or four channels of all tokens. Scores have tokens in lanes, values have dimensions
// in lanes.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_KIVI_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_KIVI_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_KIVI_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_KIVI_INL_HPP
#endif

#include "mica/kernel/highway/attention_blocks-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Ranges as words, the scale in the low byte.
HWY_INLINE VU load_words(const format::KiviRange* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  std::uint16_t words[lanes];
  hwy::CopyBytes<lanes * 2>(p, words);
  return hn::PromoteTo(DU(), hn::LoadU(d16, words));
}
HWY_INLINE VF factors_of(VU words) { return scales_of_bytes(hn::And(words, hn::Set(DU(), 255))); }
HWY_INLINE VF minima_of(VU words) {
  const VI zeros = hn::ShiftRight<24>(hn::BitCast(DI(), hn::ShiftLeft<16>(words)));
  return hn::Mul(factors_of(words), hn::ConvertTo(DF(), zeros));
}
template <class E>
HWY_INLINE VF steps_of(VU words) {
  return hn::Mul(factors_of(words), hn::Set(DF(), static_cast<float>(E::Group::step)));
}

/// Codes at one place of as many bytes as a vector has lanes.
template <class E>
HWY_INLINE VF codes_at(VI bytes, std::size_t place) {
  constexpr int bits = 8 / static_cast<int>(E::per_byte);
  const VI shifted = hn::ShiftRightSame(bytes, static_cast<int>(place) * bits);
  return hn::ConvertTo(DF(), hn::And(shifted, hn::Set(DI(), E::Group::code_max)));
}
HWY_INLINE VI load_bytes(const std::byte* p) {
  const hn::Rebind<std::uint8_t, DF> d8;
  return hn::PromoteTo(DI(), hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(p)));
}

// ---- scores

/// A query times what the codes of each channel of a tile are worth; answers what its minima add to every
/// score.
template <class E>
HWY_INLINE float fold_query(const float* q, const std::byte* tile, std::size_t head_dim, float* folded) {
  const DF d;
  const format::KiviRange* const ranges = E::key_ranges(tile, head_dim);
  VF c[parts];
  for (std::size_t part = 0; part < parts; ++part) c[part] = hn::Zero(d);
  for (std::size_t i = 0; i < head_dim; i += 16) {
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t at = i + part * lanes;
      const VU words = load_words(ranges + at);
      const VF query =
          at + lanes <= head_dim ? load(q + at) : load_first(q + at, head_dim > at ? head_dim - at : 0);
      hn::Store(hn::Mul(query, steps_of<E>(words)), d, folded + at);
      c[part] = hn::Add(c[part], hn::Mul(query, minima_of(words)));
    }
  }
  return tree(c);
}

/// `rows` rows with `tiles` tiles; folded query times code in order of channels.
template <std::size_t rows, std::size_t tiles, class E>
HWY_INLINE void kivi_scores(const AttentionArgs& a, const std::size_t* row, const std::size_t* tile) {
  const DF d;
  alignas(64) float folded[tiles][rows][max_head_dim];
  float minima[tiles][rows];
  VF c[tiles][rows][parts];
  std::size_t ahead[tiles];
  for (std::size_t t = 0; t < tiles; ++t) {
    ahead[t] = distance_ahead(a, tile[t], row[0] < 4);
    for (std::size_t r = 0; r < rows; ++r) {
      minima[t][r] = fold_query<E>(a.q[row[r]].data(), a.tiles[tile[t]], a.head_dim, folded[t][r]);
    }
  }
  clear(c);
  const std::size_t planes = E::planes(a.head_dim);
  for (std::size_t p = 0; p < planes; ++p) {
    const std::size_t first = p * E::per_byte;
    MICA_UNROLL
    for (std::size_t t = 0; t < tiles; ++t) {
      const std::byte* const plane = a.tiles[tile[t]] + p * 16;
      prefetch(plane, ahead[t]);
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part) {
        const VI bytes = load_bytes(plane + part * lanes);
        MICA_UNROLL
        for (std::size_t k = 0; k < E::per_byte; ++k) {
          if (first + k >= a.head_dim) continue;
          const VF codes = codes_at<E>(bytes, k);
          MICA_UNROLL
          for (std::size_t r = 0; r < rows; ++r)
            c[t][r][part] = hn::MulAdd(hn::Set(d, folded[t][r][first + k]), codes, c[t][r][part]);
        }
      }
    }
  }
  for (std::size_t t = 0; t < tiles; ++t) {
    for (std::size_t r = 0; r < rows; ++r) {
      const Slots s = slots_in(a.visible[row[r]], tile[t]);
      for (std::size_t part = 0; part < parts; ++part) {
        const VF sum = hn::Add(c[t][r][part], hn::Set(d, minima[t][r]));
        store_scores(hn::Mul(sum, hn::Set(d, a.scale)), s, part, a.p[row[r]].data() + tile[t] * 16);
      }
    }
  }
}

template <std::size_t rows, class E>
HWY_NOINLINE void kivi_scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  // Eight sums hide the latency of the multiply-add.
  constexpr std::size_t tiles = HWY_MAX(std::size_t{1}, 8 / (rows * parts));
  const SeenTiles seen = seen_by(a, row, rows);
  std::size_t t = 0;
  for (; t + tiles <= seen.count; t += tiles) kivi_scores<rows, tiles, E>(a, row, seen.tile + t);
  if constexpr (tiles > 1) {
    for (; t < seen.count; ++t) kivi_scores<rows, 1, E>(a, row, seen.tile + t);
  }
}

// ---- values

/// Block b of the outputs stays in registers while the tokens that all rows see pass by in order.
template <std::size_t rows, class E>
HWY_INLINE void add_kivi_block(const AttentionArgs& a, std::size_t row, const Visible& seen, std::size_t b) {
  constexpr std::size_t groups = E::groups_per_block;
  const DF d;
  alignas(64) float weight[groups][rows][chunk_tokens];
  alignas(64) float out[rows][E::block_size] = {};
  const std::size_t first = b * E::block_size, count = HWY_MIN(E::block_size, a.head_dim - first);
  for (std::size_t tile = first_tile(seen); tile < last_tile(seen); ++tile) {
    const std::byte* const values = a.tiles[tile] + a.value_offset;
    for (std::size_t g = 0; g < groups; ++g) {
      const format::KiviRange* const ranges = E::value_ranges(values, a.head_dim, b * groups + g);
      for (std::size_t part = 0; part < parts; ++part) {
        const VF steps = steps_of<E>(load_words(ranges + part * lanes));
        const std::size_t at = tile * 16 + part * lanes;
        for (std::size_t r = 0; r < rows; ++r)
          hn::Store(hn::Mul(load(a.p[row + r].data() + at), steps), d, weight[g][r] + at);
      }
    }
  }
  VF c[rows][E::per_byte][parts];
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(a.out[row + r].data() + first, count, out[r]);
    MICA_UNROLL
    for (std::size_t k = 0; k < E::per_byte; ++k) {
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part)
        c[r][k][part] = hn::Load(d, out[r] + k * 16 + part * lanes);
    }
  }
  for (std::size_t tile = first_tile(seen); tile < last_tile(seen); ++tile) {
    const Slots s = slots_in(seen, tile);
    const std::size_t ahead = distance_ahead(a, tile, row == 0);
    const std::byte* const block = a.tiles[tile] + a.value_offset + b * 256;
    for (std::size_t slot = s.first; slot < s.last; ++slot) {
      prefetch(block + slot * 16, ahead);
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part) {
        const VI bytes = load_bytes(block + slot * 16 + part * lanes);
        MICA_UNROLL
        for (std::size_t k = 0; k < E::per_byte; ++k) {
          const VF codes = codes_at<E>(bytes, k);
          MICA_UNROLL
          for (std::size_t r = 0; r < rows; ++r)
            c[r][k][part] = hn::MulAdd(hn::Set(d, weight[k / 2][r][tile * 16 + slot]), codes, c[r][k][part]);
        }
      }
    }
  }
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t k = 0; k < E::per_byte; ++k) {
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part)
        hn::Store(c[r][k][part], d, out[r] + k * 16 + part * lanes);
    }
    std::copy_n(out[r], count, a.out[row + r].data() + first);
  }
}

template <std::size_t rows, class E>
HWY_INLINE void add_kivi_run(const AttentionArgs& a, std::size_t row, const Visible& seen) {
  // As many sums as the registers hold beside codes and weights.
  constexpr std::size_t sums = many_registers ? 16 : 8;
  if constexpr (rows > 1 && rows * E::per_byte * parts > sums) {
    add_kivi_run<rows / 2, E>(a, row, seen);
    add_kivi_run<rows - rows / 2, E>(a, row + rows / 2, seen);
  } else {
    for (std::size_t b = 0; b < E::blocks(a.head_dim); ++b) add_kivi_block<rows, E>(a, row, seen, b);
  }
}

/// After all tokens: minima.
template <class E>
HWY_INLINE void finish_kivi_values(const AttentionArgs& a) {
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    float* const out = a.out[r].data();
    for (std::size_t g = 0; g * E::group_size < a.head_dim; ++g) {
      const auto minima = [&](std::size_t tile, std::size_t part) HWY_ATTR {
        const std::byte* const values = a.tiles[tile] + a.value_offset;
        return minima_of(load_words(E::value_ranges(values, a.head_dim, g) + part * lanes));
      };
      const float sum = sum_of_minima(a, r, minima);
      const std::size_t first = g * E::group_size;
      for (std::size_t i = first; i < HWY_MIN(first + E::group_size, a.head_dim); ++i) out[i] += sum;
    }
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
