// SPDX-License-Identifier: Apache-2.0
//
// Per target: attention over keys with scales for each channel and each token, and over values of rotated
// heads (format/kvarn.hpp). A channel's scale goes into the query once per tile, a token's scale multiplies
// the sum of a group. Codes and their paths become the indices of levels, and those levels by a lookup of
// bytes. Scores have tokens in lanes, values have dimensions in lanes.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_KVARN_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_KVARN_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_KVARN_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_KVARN_INL_HPP
#endif

#include "mica/kernel/highway/attention_kivi-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// The numbers of a table of up to 32 for sixteen indices of a byte each, as floats.
template <const auto& numbers>
HWY_INLINE void levels_of(VBytes indices, VF* out) {
  alignas(16) static constexpr auto table = [] {
    std::array<std::int8_t, 32> levels{};
    std::copy(std::begin(numbers), std::end(numbers), levels.begin());
    return levels;
  }();
  const DBytes d;
  const hn::RebindToSigned<DBytes> ds;
  const VBytes first = hn::BitCast(d, hn::Load(ds, table.data()));
  if constexpr (sizeof(numbers) > 16) {
    const VBytes second = hn::BitCast(d, hn::Load(ds, table.data() + 16));
    const VBytes place = hn::And(indices, hn::Set(d, 15));
    floats_of(hn::IfThenElse(hn::TestBit(indices, hn::Set(d, 16)), hn::TableLookupBytes(second, place),
                             hn::TableLookupBytes(first, place)),
              out);
  } else {
    floats_of(hn::TableLookupBytes(first, indices), out);
  }
}

HWY_INLINE VBytes bytes_at(const std::byte* p) {
  return hn::LoadU(DBytes(), reinterpret_cast<const std::uint8_t*>(p));
}

/// The token scales of as many tokens as a vector has lanes.
HWY_INLINE VF token_scales(const std::uint8_t* p) {
  const VU bits = hn::BitCast(DU(), load_bytes(reinterpret_cast<const std::byte*>(p)));
  return hn::Mul(scales_of_bytes(bits), hn::Set(DF(), format::detail::LevelScale::unit));
}

// ---- scores

/// A query times the scales of the channels; returns what the means of the channels add to every score.
template <class E>
HWY_INLINE float fold_channels(const float* q, const std::byte* tile, std::size_t head_dim, float* folded) {
  using Channels = format::KvarnChannels;
  const DF d;
  const std::byte* const bytes = E::channel_bytes(tile, head_dim, 0);
  VF c[parts];
  for (std::size_t part = 0; part < parts; ++part) c[part] = hn::Zero(d);
  for (std::size_t i = 0; i < head_dim; i += 16) {
    VF level[parts];
    levels_of<format::IQ4_NL::levels>(hn::And(bytes_at(bytes + i), hn::Set(DBytes(), 15)), level);
    const VF factor = hn::Set(d, E::channels(tile, head_dim, i / E::group_size).mean_factor());
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t at = i + part * lanes;
      const VF query =
          at + lanes <= head_dim ? load(q + at) : load_first(q + at, head_dim > at ? head_dim - at : 0);
      const VI one = hn::Set(DI(), 1);
      const VI step = hn::And(hn::ShiftRight<4>(load_bytes(bytes + at)), hn::Set(DI(), Channels::max_step));
      const VI power = hn::Sub(hn::Set(DI(), 127), hn::ShiftRight<1>(hn::Add(step, one)));
      const VF whole = hn::BitCast(d, hn::ShiftLeft<23>(power));
      const auto odd = hn::RebindMask(d, hn::Eq(hn::And(step, one), one));
      const VF scale = hn::IfThenElse(odd, hn::Mul(whole, hn::Set(d, Channels::half_step)), whole);
      hn::Store(hn::Mul(query, scale), d, folded + at);
      c[part] = hn::Add(c[part], hn::Mul(query, hn::Mul(factor, level[part])));
    }
  }
  return tree(c);
}

/// The indices of the levels of eight channels of all tokens, octet `octet` of a group.
template <int bits>
HWY_INLINE void indices_of_octet(const std::byte* group, std::size_t octet, VBytes* indices) {
  const DBytes d;
  const std::byte* const planes = group + octet * bits * 16;
  const VBytes path = bytes_at(planes + (bits - 1) * 16);
  const VBytes before = bytes_at(group + ((octet + 3) % 4 * bits + bits - 1) * 16);
  const VBytes low = hn::Or(hn::ShiftLeft<1>(path), hn::ShiftRight<7>(before));
  const VBytes high = hn::Xor(path, hn::Or(hn::ShiftLeft<2>(path), hn::ShiftRight<6>(before)));
  // Both bits of even channels side by side, and those of odd ones.
  const VBytes even = hn::Set(d, 0x55), odd = hn::Set(d, 0xAA);
  const VBytes both[2] = {hn::Or(hn::And(low, even), hn::ShiftLeft<1>(hn::And(high, even))),
                          hn::Or(hn::ShiftRight<1>(hn::And(low, odd)), hn::And(high, odd))};
  MICA_UNROLL
  for (std::size_t k = 0; k < 8; ++k) {
    indices[k] = hn::And(hn::ShiftRightSame(both[k % 2], static_cast<int>(k / 2 * 2)), hn::Set(d, 3));
    if constexpr (bits >= 3) {
      const VBytes pairs = bytes_at(planes + k / 4 * 16);
      const VBytes at_two =
          k % 4 == 0 ? hn::ShiftLeft<2>(pairs) : hn::ShiftRightSame(pairs, static_cast<int>(k % 4) * 2 - 2);
      indices[k] = hn::Or(indices[k], hn::And(at_two, hn::Set(d, 12)));
    }
    if constexpr (bits % 2 == 0) {
      const auto set =
          hn::TestBit(bytes_at(planes + (bits - 2) * 16), hn::Set(d, static_cast<std::uint8_t>(1u << k)));
      indices[k] = hn::Or(indices[k], hn::IfThenElseZero(set, hn::Set(d, 1 << bits)));
    }
  }
}

template <std::size_t rows, class E>
HWY_INLINE void kvarn_scores(const AttentionArgs& a, const std::size_t* row, std::size_t t) {
  const DF d;
  const std::byte* const tile = a.tiles[t];
  const std::size_t ahead = distance_ahead(a, t, row[0] < 4);
  alignas(64) float folded[rows][max_head_dim];
  float means[rows];
  VF c[rows][parts];
  for (std::size_t r = 0; r < rows; ++r) {
    means[r] = fold_channels<E>(a.q[row[r]].data(), tile, a.head_dim, folded[r]);
    for (std::size_t part = 0; part < parts; ++part) c[r][part] = hn::Zero(d);
  }
  for (std::size_t g = 0; g < E::groups(a.head_dim); ++g) {
    VF sum[rows][parts];
    MICA_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part) sum[r][part] = hn::Zero(d);
    }
    const std::size_t last = HWY_MIN((g + 1) * E::group_size, a.head_dim);
    const std::byte* const group = tile + g * E::key_code_bytes;
    for (std::size_t first = g * E::group_size; first < last; first += 8) {
      const std::size_t octet = first / 8 % 4;
      prefetch(group + octet * 16 * E::code_bits, ahead);
      VBytes indices[8];
      indices_of_octet<E::code_bits>(group, octet, indices);
      MICA_UNROLL
      for (std::size_t k = 0; k < 8; ++k) {
        if (first + k >= last) continue;
        VF level[parts];
        levels_of<E::levels>(indices[k], level);
        MICA_UNROLL
        for (std::size_t r = 0; r < rows; ++r) {
          const VF query = hn::Set(d, folded[r][first + k]);
          MICA_UNROLL
          for (std::size_t part = 0; part < parts; ++part)
            sum[r][part] = hn::MulAdd(query, level[part], sum[r][part]);
        }
      }
    }
    MICA_UNROLL
    for (std::size_t part = 0; part < parts; ++part) {
      const VF scale = token_scales(E::key_scales(tile, a.head_dim, g) + part * lanes);
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r) c[r][part] = hn::MulAdd(sum[r][part], scale, c[r][part]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    const Slots s = slots_in(a.visible[row[r]], t);
    for (std::size_t part = 0; part < parts; ++part) {
      const VF sum = hn::Add(c[r][part], hn::Set(d, means[r]));
      store_scores(hn::Mul(sum, hn::Set(d, a.scale)), s, part, a.p[row[r]].data() + t * 16);
    }
  }
}

template <std::size_t rows, class E>
HWY_NOINLINE void kvarn_scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  const SeenTiles seen = seen_by(a, row, rows);
  for (std::size_t t = 0; t < seen.count; ++t) kvarn_scores<rows, E>(a, row, seen.tile[t]);
}

// ---- values

/// The indices of the levels of 16 numbers of a token: those of dimensions 0 to 15 of a group, or of 16 to
/// 31.
template <class E, bool upper>
HWY_INLINE VBytes indices_of_values(const std::byte* bytes) {
  format::detail::TrellisPath path;
  hwy::CopyBytes<4>(bytes + E::path_at, &path.bits);
  // At bit 4 and above.
  VBytes out =
      hn::Or(spread_fifth_bits<upper>(path.low()), hn::ShiftLeft<1>(spread_fifth_bits<upper>(path.high())));
  if constexpr (E::code_bits >= 3) {
    std::uint64_t pairs;
    hwy::CopyBytes<8>(bytes, &pairs);
    out = hn::Or(out, hn::ShiftLeft<2>(spread_high_pairs<upper>(pairs)));
  }
  out = hn::ShiftRight<4>(out);
  if constexpr (E::code_bits % 2 == 0) {
    std::uint32_t top;
    hwy::CopyBytes<4>(bytes + E::top_at, &top);
    const VBytes bit = spread_fifth_bits<upper>(top);
    out = hn::Or(out, hn::ShiftRight<4 - E::code_bits>(bit));
  }
  return out;
}

/// The levels of the 32 numbers of a group of one token.
template <class E>
HWY_INLINE void levels_of_values(const std::byte* bytes, VF* out) {
  levels_of<E::levels>(indices_of_values<E, false>(bytes), out);
  levels_of<E::levels>(indices_of_values<E, true>(bytes), out + parts);
}

/// Group g of the outputs stays in registers while the tokens that all rows see pass by in order.
template <std::size_t rows, class E>
HWY_INLINE void add_kvarn_group(const AttentionArgs& a, std::size_t row, const Visible& seen, std::size_t g) {
  constexpr std::size_t vectors = 2 * parts;  // of a group
  const DF d;
  alignas(64) float weight[rows][chunk_tokens];
  alignas(64) float out[rows][E::group_size] = {};
  const std::size_t first = g * E::group_size, count = HWY_MIN(E::group_size, a.head_dim - first);
  for (std::size_t tile = first_tile(seen); tile < last_tile(seen); ++tile) {
    const std::uint8_t* const scales = E::value_scales(a.tiles[tile] + a.value_offset, a.head_dim, g);
    for (std::size_t part = 0; part < parts; ++part) {
      const VF scale = token_scales(scales + part * lanes);
      const std::size_t at = tile * 16 + part * lanes;
      for (std::size_t r = 0; r < rows; ++r)
        hn::Store(hn::Mul(load(a.p[row + r].data() + at), scale), d, weight[r] + at);
    }
  }
  VF c[rows][vectors];
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(a.out[row + r].data() + first, count, out[r]);
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) c[r][v] = hn::Load(d, out[r] + v * lanes);
  }
  for (std::size_t tile = first_tile(seen); tile < last_tile(seen); ++tile) {
    const Slots s = slots_in(seen, tile);
    const std::size_t ahead = distance_ahead(a, tile, row == 0);
    for (std::size_t slot = s.first; slot < s.last; ++slot) {
      const std::byte* const bytes = E::value_codes(a.tiles[tile] + a.value_offset, g, slot);
      prefetch(bytes, ahead);
      VF level[vectors];
      levels_of_values<E>(bytes, level);
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r) {
        const VF w = hn::Set(d, weight[r][tile * 16 + slot]);
        MICA_UNROLL
        for (std::size_t v = 0; v < vectors; ++v) c[r][v] = hn::MulAdd(w, level[v], c[r][v]);
      }
    }
  }
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) hn::Store(c[r][v], d, out[r] + v * lanes);
    std::copy_n(out[r], count, a.out[row + r].data() + first);
  }
}

template <std::size_t rows, class E>
HWY_INLINE void add_kvarn_run(const AttentionArgs& a, std::size_t row, const Visible& seen) {
  // As many sums as the registers hold beside levels and weights.
  constexpr std::size_t sums = many_registers ? 16 : 8;
  if constexpr (rows > 1 && rows * 2 * parts > sums) {
    add_kvarn_run<rows / 2, E>(a, row, seen);
    add_kvarn_run<rows - rows / 2, E>(a, row + rows / 2, seen);
  } else {
    for (std::size_t g = 0; g < E::groups(a.head_dim); ++g) add_kvarn_group<rows, E>(a, row, seen, g);
  }
}

/// After all tokens: back from the rotation.
inline void finish_kvarn_values(const AttentionArgs& a) {
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (!a.visible[r].empty()) rotate_head(a.out[r].data(), a.head_dim, a.out[r].data());
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
