// SPDX-License-Identifier: Apache-2.0
//
// Per target: the formats with codebooks (format/ has the layouts). Words of a codebook are gathered by plain
// loads, since machines' own gathers are slow or absent, and meet in a register, since stores of words that
// are loaded as vectors stall. Loops over a block are rolled where an entry is one load: unrolled, compilers
// load all entries ahead and spill them.

#if defined(MICA_KERNEL_HIGHWAY_DECODE_CODEBOOKS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_CODEBOOKS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_CODEBOOKS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_CODEBOOKS_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// A vector of the words word(first), word(first + 1) and so on, of eight or four bytes.
template <class D, class Word>
HWY_INLINE hn::Vec<D> words_from(D d, const Word& word, std::size_t first) {
  constexpr std::size_t n = hn::MaxLanes(D());
  if constexpr (n * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return hn::Combine(d, words_from(half, word, first + n / 2), words_from(half, word, first));
  } else if constexpr (n == 2) {
    return hn::Dup128VecFromValues(d, word(first), word(first + 1));
  } else {
    return hn::Dup128VecFromValues(d, word(first), word(first + 1), word(first + 2), word(first + 3));
  }
}

/// 64 codes + offset: bytes out of words, negative where the bits of `signs` are set.
template <class WordType, int offset, class Word>
HWY_INLINE void store_signed(const Word& word, std::uint64_t signs, std::uint8_t* HWY_RESTRICT codes) {
  const DU8 d;
  const hn::Repartition<WordType, DU8> dw;
  const auto zero = hn::Set(d, static_cast<std::uint8_t>(offset));
  const std::uint64_t padded[2] = {signs, 0};  // eight bytes can be read at any of the first eight
  const auto* const bits = reinterpret_cast<const std::uint8_t*>(padded);
  MICA_UNROLL
  for (std::size_t i = 0; i < 64; i += 4 * lanes) {
    const VU8 level = hn::BitCast(d, words_from(dw, word, i / sizeof(WordType)));
    const auto negative = hn::LoadMaskBits(d, bits + i / 8);
    hn::StoreU(hn::IfThenElse(negative, hn::Sub(zero, level), hn::Add(zero, level)), d, codes + i);
  }
}

/// 256 codes + offset of a block whose signs lie apart from its entries: F::entry(block, i) numbers the words
/// of a codebook.
template <class F, class WordType, std::size_t n>
HWY_INLINE void store_entries(const typename F::Block& block, const std::array<WordType, n>& words,
                              std::uint8_t* HWY_RESTRICT codes) {
  constexpr std::size_t count = 64 / sizeof(WordType);
  MICA_UNROLL
  for (std::size_t q = 0; q < 4; ++q) {
    const auto word = [&](std::size_t j) { return words[F::entry(block, count * q + j)]; };
    std::uint64_t signs;
    hwy::CopyBytes<8>(block.signs + 8 * q, &signs);
    store_signed<WordType, F::code_offset>(word, signs, codes + 64 * q);
  }
}

/// Eight times seven signs become eight times eight, an even number of them set.
HWY_INLINE std::uint64_t even_signs(std::uint64_t signs) {
  std::uint64_t parity = signs ^ (signs >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return signs | (parity & 0x0101010101010101u) << 7;
}

/// Twice four times seven signs, from the lowest bit, as eight times eight.
HWY_INLINE std::uint64_t spread_signs(std::uint32_t low, std::uint32_t high) {
  const auto spread = [](std::uint32_t bits) -> std::uint64_t {
    return (bits & 0x7F) | (bits & 0x3F80) << 1 | (bits & 0x1FC000) << 2 | (bits & 0xFE00000) << 3;
  };
  return even_signs(spread(low) | spread(high) << 32);
}

/// 2 s + 1.
HWY_INLINE VF odd_scale(VI s) { return hn::ConvertTo(DF(), hn::Add(hn::Add(s, s), hn::Set(DI(), 1))); }

/// The field d of a block of 16 rows, times `factor`, a power of two.
template <class Block>
HWY_INLINE void gather_scaled_d(const Block* const* rows, float factor, float (&out)[1][panel_rows]) {
  gather_d(rows, 1, out);
  for (std::size_t r = 0; r < panel_rows; r += lanes) {
    hn::Store(hn::Mul(hn::Load(DF(), out[0] + r), hn::Set(DF(), factor)), DF(), out[0] + r);
  }
}

/// Sixteen four-bit scales, eight bytes from byte `offset` of a block on, as 2 s + 1.
template <class Block>
HWY_INLINE void odd_nibble_scales(const Block* const* rows, std::size_t offset,
                                  float (&out)[16][panel_rows]) {
  for (std::size_t r = 0; r < panel_rows; r += lanes) {
    VI word[4];
    load_words(rows, offset - 8, r, word);
    MICA_UNROLL
    for (int k = 0; k < 8; ++k) {
      hn::Store(odd_scale(bits(word[2], 4 * k, 15)), DF(), out[k] + r);
      hn::Store(odd_scale(bits(word[3], 4 * k, 15)), DF(), out[8 + k] + r);
    }
  }
}

/// 256 codes + 9 of IQ1: bytes out of words of the codebook, already shifted.
template <class Word>
HWY_INLINE void store_shifted(const Word& word, std::uint8_t* HWY_RESTRICT codes) {
  const hn::Repartition<std::uint64_t, DU8> d;
  MICA_UNROLL
  for (std::size_t i = 0; i < 256; i += 4 * lanes)
    hn::StoreU(hn::BitCast(DU8(), words_from(d, word, i / 8)), DU8(), codes + i);
}

/// Entry n of the codebook with a shift up, or with a shift down: 8 number + 9 + 1 or 8 number + 9 - 1.
HWY_INLINE std::uint64_t shifted_word(unsigned n, unsigned down) {
  constexpr auto& words =
      format::codebook::words<std::uint64_t, format::codebook::iq1, format::codebook::iq1_lifted>;
  static constexpr std::uint64_t up[2] = {0x0202020202020202u, 0};
  return words[n] + up[down];
}

template <>
struct Codec<format::IQ1_S> : GroupScales<format::IQ1_S> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const auto word = [&](std::size_t j) {
      return shifted_word(format::IQ1_S::entry(block, j), block.high[j / 4] >> 15);
    };
    store_shifted(word, codes);
  }

  /// The last 16 bytes of a block are four words, that is scales of two groups each. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ1_S>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(rows, offsetof(Block, high), r, word);
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) {
        hn::Store(odd_scale(bits(word[i], 12, 7)), DF(), out.scale[2 * i] + r);
        hn::Store(odd_scale(bits(word[i], 28, 7)), DF(), out.scale[2 * i + 1] + r);
      }
    }
    gather_scaled_d(rows, 0.125f, out.d);
  }
};

template <>
struct Codec<format::IQ1_M> : GroupScales<format::IQ1_M> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const auto word = [&](std::size_t j) {
      const unsigned entry = format::IQ1_M::shifted_entry(block, j);
      return shifted_word(entry & 2047, entry >> 11);
    };
    store_shifted(word, codes);
  }

  /// The last eight bytes of a block are two words: eight scales each, and half of the bits of d. Lanes are
  /// rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ1_M>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(rows, sizeof(Block) - 16, r, word);
      const VI low = word[2], high = word[3];
      MICA_UNROLL
      for (int i = 0; i < 8; ++i) {
        const int shift = i / 4 * 16 + i % 4 * 3;
        hn::Store(odd_scale(bits(low, shift, 7)), DF(), out.scale[i] + r);
        hn::Store(odd_scale(bits(high, shift, 7)), DF(), out.scale[8 + i] + r);
      }
      const VI d = hn::Or(hn::Or(bits(low, 12, 0x000F), bits(low, 24, 0x00F0)),
                          hn::Or(bits(high, 4, 0x0F00), bits(high, 16, 0xF000)));
      hn::Store(hn::Mul(widen_low(d), hn::Set(DF(), 0.125f)), DF(), out.d[0] + r);
    }
  }
};

template <>
struct Codec<format::IQ2_XXS> : GroupScales<format::IQ2_XXS> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    constexpr auto& words =
        format::codebook::words<std::uint64_t, format::codebook::iq2_xxs, format::codebook::iq2_levels>;
    HWY_UNROLL(1)
    for (std::size_t q = 0; q < 4; ++q) {
      const format::IQ2_XXS::Group* const group = block.groups + 2 * q;
      const auto word = [&](std::size_t j) { return words[group[j / 4].entries[j % 4]]; };
      const std::uint64_t signs = spread_signs(group[0].bits(), group[1].bits());
      store_signed<std::uint64_t, format::IQ2_XXS::code_offset>(word, signs, codes + 64 * q);
    }
  }

  /// Two groups are four words; scales are in the top bits of the second and the fourth. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ2_XXS>& out) {
    for (std::size_t g = 0; g < 8; g += 2) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        VI word[4];
        load_words(rows, offsetof(Block, groups) + g * sizeof(format::IQ2_XXS::Group), r, word);
        hn::Store(odd_scale(bits(word[1], 28, 15)), DF(), out.scale[g] + r);
        hn::Store(odd_scale(bits(word[3], 28, 15)), DF(), out.scale[g + 1] + r);
      }
    }
    gather_scaled_d(rows, 0.125f, out.d);
  }
};

template <>
struct Codec<format::IQ2_XS> : GroupScales<format::IQ2_XS> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    constexpr auto& words =
        format::codebook::words<std::uint64_t, format::codebook::iq2_xs, format::codebook::iq2_levels>;
    HWY_UNROLL(1)
    for (std::size_t q = 0; q < 4; ++q) {
      const std::uint16_t* const from = block.words + 8 * q;
      const auto word = [&](std::size_t j) { return words[from[j] & 511]; };
      store_signed<std::uint64_t, format::IQ2_XS::code_offset>(word, eight_signs(from), codes + 64 * q);
    }
  }

  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ2_XS>& out) {
    odd_nibble_scales(rows, offsetof(Block, scales), out.scale);
    gather_scaled_d(rows, 0.125f, out.d);
  }

 private:
  /// The upper seven bits of eight words, with the eighth sign.
  static HWY_INLINE std::uint64_t eight_signs(const std::uint16_t* words) {
    const hn::CappedTag<std::uint16_t, 8> d;
    const hn::Rebind<std::uint8_t, decltype(d)> bytes;
    std::uint64_t signs;
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<9>(hn::LoadU(d, words))), bytes,
               reinterpret_cast<std::uint8_t*>(&signs));
    return even_signs(signs);
  }
};

template <>
struct Codec<format::IQ2_S> : GroupScales<format::IQ2_S> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    store_entries<format::IQ2_S>(
        block, format::codebook::words<std::uint64_t, format::codebook::iq2_s, format::codebook::iq2_levels>,
        codes);
  }

  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ2_S>& out) {
    odd_nibble_scales(rows, offsetof(Block, scales), out.scale);
    gather_scaled_d(rows, 0.125f, out.d);
  }
};

template <>
struct Codec<format::IQ3_XXS> : GroupScales<format::IQ3_XXS> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    constexpr auto& words =
        format::codebook::words<std::uint32_t, format::codebook::iq3_xxs, format::codebook::iq3_xxs_levels>;
    HWY_UNROLL(1)
    for (std::size_t q = 0; q < 4; ++q) {
      const std::uint8_t* const entries = block.entries + 16 * q;
      const auto word = [&](std::size_t j) { return words[entries[j]]; };
      const std::uint64_t signs =
          spread_signs(format::IQ3_XXS::bits(block, 2 * q), format::IQ3_XXS::bits(block, 2 * q + 1));
      store_signed<std::uint32_t, format::IQ3_XXS::code_offset>(word, signs, codes + 64 * q);
    }
  }

  /// Four groups have four words of signs, with scales in their top bits. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ3_XXS>& out) {
    for (std::size_t g = 0; g < 8; g += 4) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        VI word[4];
        load_words(rows, offsetof(Block, halves) + 4 * g, r, word);
        MICA_UNROLL
        for (std::size_t i = 0; i < 4; ++i)
          hn::Store(odd_scale(bits(word[i], 28, 15)), DF(), out.scale[g + i] + r);
      }
    }
    gather_scaled_d(rows, 0.25f, out.d);
  }
};

template <>
struct Codec<format::IQ3_S> : GroupScales<format::IQ3_S> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    store_entries<format::IQ3_S>(
        block,
        format::codebook::words<std::uint32_t, format::codebook::iq3_s, format::codebook::iq3_s_levels>,
        codes);
  }

  /// The last four bytes of a block are eight scales. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ3_S>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(rows, sizeof(Block) - 16, r, word);
      MICA_UNROLL
      for (int g = 0; g < 8; ++g) hn::Store(odd_scale(bits(word[3], 4 * g, 15)), DF(), out.scale[g] + r);
    }
    gather_d(rows, 1, out.d);
  }
};

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
