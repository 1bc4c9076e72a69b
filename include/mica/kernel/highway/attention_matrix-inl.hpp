// SPDX-License-Identifier: Apache-2.0
//
// Per target: attention over Q8_0 by the matrix unit (matrix_tiles-inl.hpp), with the integers of
// attention_q8_0-inl.hpp. Each is two signed bytes, x = 256 * upper + lower, so that eight rows are the
// sixteen of a tile. Keys are columns as they lie; of values, those of 256 tokens and 64 dimensions are put
// together first.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_MATRIX_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_MATRIX_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_MATRIX_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_MATRIX_INL_HPP
#endif

#include "mica/kernel/highway/attention_q8_0-inl.hpp"
#include "mica/kernel/highway/matrix_tiles-inl.hpp"

#if MICA_VECTORS && MICA_MATRIX_UNIT
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Rows whose integers are multiplied at once.
inline constexpr std::size_t paired_rows = matrix_rows / 2;

/// Up to eight rows of n integers as bytes: the upper ones of all rows, then the lower ones.
template <std::size_t n>
struct ByteRows {
  alignas(64) std::int8_t byte[matrix_rows][n];
  float scale[paired_rows];
  std::size_t rows;

  HWY_INLINE void set(std::size_t r, const IntegerRow& row, std::size_t count) {
    const DI16 d;
    const hn::Rebind<std::int8_t, DI16> d8;
    for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
      const VI16 x = hn::LoadU(d, row.code + i);
      const VI16 upper = hn::ShiftRight<8>(hn::Add(x, hn::Set(d, 128)));
      hn::StoreU(hn::DemoteTo(d8, upper), d8, byte[r] + i);
      hn::StoreU(hn::DemoteTo(d8, hn::Sub(x, hn::ShiftLeft<8>(upper))), d8, byte[rows + r] + i);
    }
    scale[r] = row.scale;
  }
  /// The sums of row r's integers with 16 columns, from those of its bytes.
  HWY_INLINE VF total(const std::int32_t (*sums)[matrix_columns], std::size_t r) const {
    const DI d;
    return hn::ConvertTo(DF(), hn::Add(hn::ShiftLeft<8>(hn::Load(d, sums[r])), hn::Load(d, sums[rows + r])));
  }
};

/// Scores of up to eight rows.
inline HWY_NOINLINE void matrix_scores_of_rows(const AttentionArgs& a, const std::size_t* row,
                                               std::size_t rows) {
  const DF d;
  ByteRows<max_head_dim> q;
  q.rows = rows;
  for (std::size_t r = 0; r < rows; ++r) {
    IntegerRow integers;
    quantize_row(a.q[row[r]].data(), a.head_dim, a.query_max(), integers);
    q.set(r, integers, a.head_dim);
  }
  const SeenTiles seen = seen_by(a, row, rows);
  const MatrixTiles unit(matrix_depth_max, 2 * rows);
  alignas(64) MatrixSums sums;
  for (std::size_t t = 0; t < seen.count; t += 4) {
    const std::size_t count = HWY_MIN(seen.count - t, std::size_t{4});
    const std::int8_t* keys[4];
    std::size_t ahead[4];
    VF scales[4];
    for (std::size_t k = 0; k < 4; ++k) {  // the last tile stands in for those that are missing
      const std::size_t tile = seen.tile[t + HWY_MIN(k, count - 1)];
      keys[k] = reinterpret_cast<const std::int8_t*>(a.tiles[tile]);
      ahead[k] = distance_ahead(a, tile, row[0] < paired_rows);
      scales[k] = load(format::Q8_0::scales(a.tiles[tile], a.head_dim));
    }
    clear_sums();
    for (std::size_t i = 0; i < a.head_dim; i += matrix_depth_max) {
      add_matrix_dots(q.byte[0] + i, max_head_dim, keys, 64);
      for (std::size_t k = 0; k < count; ++k) {
        for (std::size_t line = 0; ahead[k] != 0 && line < 16; ++line)
          prefetch(keys[k] + 64 * line, ahead[k]);
      }
      for (const std::int8_t*& each : keys) each += 16 * matrix_depth_max;
    }
    store_sums(sums);
    for (std::size_t r = 0; r < rows; ++r) {
      const VF factor = hn::Set(d, q.scale[r] * a.scale);
      const Visible& v = a.visible[row[r]];
      float* const p = a.p[row[r]].data();
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t tile = seen.tile[t + k];
        const VF scores = hn::Mul(hn::Mul(q.total(sums[k], r), factor), scales[k]);
        store_scores(scores, slots_in(v, tile), 0, p + tile * 16);
      }
    }
  }
}

/// The values of a chunk's tokens, dimensions [i, i + 64), as columns: [256 / 4][64][4].
struct ValueColumns {
  static constexpr std::size_t dims = 4 * matrix_columns;
  alignas(64) std::int8_t byte[chunk_tokens / 4][dims * 4];

  HWY_INLINE void gather(const AttentionArgs& a, const SeenTiles& seen, std::size_t i, bool first_rows) {
    const DU8 d;
    const std::size_t four_bytes = format::Q8_0::padded(a.head_dim) * 4;
    for (std::size_t t = 0; t < seen.count; ++t) {
      const std::size_t tile = seen.tile[t], ahead = distance_ahead(a, tile, first_rows);
      const auto* from = reinterpret_cast<const std::uint8_t*>(a.tiles[tile] + a.value_offset) + i * 4;
      for (std::size_t four = 0; four < 4; ++four, from += four_bytes) {
        auto* const to = reinterpret_cast<std::uint8_t*>(byte[tile * 4 + four]);
        MICA_UNROLL
        for (std::size_t k = 0; k < dims * 4; k += 64) {
          prefetch(from + k, ahead);
          hn::Store(hn::LoadU(d, from + k), d, to + k);
        }
      }
    }
  }
};

/// Rows whose weights are kept while the columns of a chunk pass by.
inline constexpr std::size_t rows_of_columns = 64;

/// Values of up to 64 rows.
inline HWY_NOINLINE void matrix_values_of_rows(const AttentionArgs& a, const std::size_t* row,
                                               std::size_t rows) {
  const DF d;
  const std::size_t groups = (rows + paired_rows - 1) / paired_rows;
  const SeenTiles seen = seen_by(a, row, rows);
  const ValueScales scales(a, seen);
  ByteRows<chunk_tokens> w[rows_of_columns / paired_rows];
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t group = r / paired_rows;
    w[group].rows = HWY_MIN(rows - group * paired_rows, paired_rows);
    IntegerRow integers;
    q8_weights(a, row[r], scales, integers);
    w[group].set(r % paired_rows, integers, chunk_tokens);
  }
  ValueColumns columns;
  std::memset(columns.byte, 0, sizeof(columns.byte));
  alignas(64) MatrixSums sums;
  for (std::size_t i = 0; i < a.head_dim; i += ValueColumns::dims) {
    columns.gather(a, seen, i, row[0] < paired_rows);
    for (std::size_t group = 0; group < groups; ++group) {
      const ByteRows<chunk_tokens>& weights = w[group];
      const MatrixTiles unit(matrix_depth_max, 2 * weights.rows);
      clear_sums();
      for (std::size_t j = 0; j < chunk_tokens; j += matrix_depth_max) {
        const std::int8_t* const lines = columns.byte[j / 4];
        const std::int8_t* const tiles[4] = {lines, lines + 64, lines + 128, lines + 192};
        add_matrix_dots(weights.byte[0] + j, chunk_tokens, tiles, sizeof(columns.byte[0]));
      }
      store_sums(sums);
      for (std::size_t r = 0; r < weights.rows; ++r) {
        float* const out = a.out[row[group * paired_rows + r]].data() + i;
        MICA_UNROLL
        for (std::size_t k = 0; k < 4; ++k) {
          const VF now = load(out + k * lanes);
          hn::StoreU(hn::MulAdd(weights.total(sums[k], r), hn::Set(d, weights.scale[r]), now), d,
                     out + k * lanes);
        }
      }
    }
  }
}

/// The fewest rows for which the unit is the faster one. One token's wait for memory, which they ask for a
/// line at a time while they multiply; the unit would ask for many lines at once.
inline constexpr std::size_t min_rows_of_unit = 16;

/// Whether the unit takes `rows` rows of heads of this width.
HWY_INLINE bool by_matrix_unit(const AttentionArgs& a) {
  return a.head_dim % matrix_depth_max == 0 && a.q.rows() >= min_rows_of_unit && MatrixUnit::used();
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS && MICA_MATRIX_UNIT
#endif
