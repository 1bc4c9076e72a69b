// SPDX-License-Identifier: Apache-2.0
//
// Per target: keys and values are stored in blocks of 32 with a scale, or a scale and a minimum
// (format/detail/block_element.hpp). Scales and minima have the bits of the quick searches of
// format/encode/scale.hpp and format/encode/line.hpp. Each lane is a candidate.

#if defined(MICA_KERNEL_HIGHWAY_STORE_BLOCKS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_STORE_BLOCKS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_STORE_BLOCKS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_STORE_BLOCKS_INL_HPP
#endif

#include "mica/format/encode/blocks.hpp"
#include "mica/kernel/highway/attention_blocks-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// The candidates for a line in a quick search.
inline constexpr std::size_t line_candidates = 9;

/// The levels of a search: integers.
struct SearchedLevels {
  float low, high;
  alignas(64) float start[16] = {};  // scales: the level of the peak, 0.75 to 1.3 times the outermost one
  alignas(64) float below[16] = {};  // lines: steps from the smallest number to the first code
  alignas(64) float above[16] = {};  // lines: steps from the last code to the largest number

  template <class Levels>
  static SearchedLevels of(Levels) {
    SearchedLevels levels{Levels::low, Levels::high};
    format::search::detail::ScaleLanes<Levels> scales;
    scales.start(1, {});
    std::copy_n(scales.inverse, 16, levels.start);
    using Lines = format::search::detail::LineLanes<static_cast<int>(Levels::high), 3>;
    static_assert(Lines::count == line_candidates);
    for (std::size_t k = 0; k < line_candidates; ++k) {
      levels.below[k] = Lines::below(k);
      levels.above[k] = Lines::above(k);
    }
    return levels;
  }

  /// The level nearest to t; the lowest one where t is no number.
  [[nodiscard]] HWY_INLINE VF nearest(VF t) const {
    const DF d;
    const VF least = hn::Set(d, low), most = hn::Set(d, high), magic = hn::Set(d, 0x1.8p23f);
    const VF from_low = hn::IfThenElse(hn::Gt(t, least), t, least);
    return hn::Sub(hn::Add(hn::Min(from_low, most), magic), magic);
  }
};

/// 16 candidates for the scale of a block, as search::detail::ScaleLanes.
struct Candidates {
  VF inverse[parts], xq[parts], qq[parts];

  /// x: 32 numbers; peak: the one with the largest magnitude.
  HWY_INLINE Candidates(const float* x, float peak, const SearchedLevels& levels) {
    const DF d;
    MICA_UNROLL
    for (std::size_t p = 0; p < parts; ++p) {
      inverse[p] = hn::Div(hn::Load(d, levels.start + p * lanes), hn::Set(d, peak));
      xq[p] = qq[p] = hn::Zero(d);
    }
    for (std::size_t i = 0; i < 32; ++i) {
      const VF value = hn::Set(d, x[i]);
      MICA_UNROLL
      for (std::size_t p = 0; p < parts; ++p) {
        const VF q = levels.nearest(hn::Mul(value, inverse[p]));
        xq[p] = hn::Add(xq[p], hn::Mul(value, q));
        qq[p] = hn::Add(qq[p], hn::Mul(q, q));
      }
    }
  }

  /// The smallest scale whose error is larger by a 64th at most than the smallest error; squares: the sum of x^2.
  [[nodiscard]] HWY_INLINE float best(float squares) const {
    const DF d;
    const VF none = hn::Set(d, std::numeric_limits<float>::max());
    VF gain[parts], max = hn::Zero(d), least = none;
    MICA_UNROLL
    for (std::size_t p = 0; p < parts; ++p) {
      const VF square = hn::Mul(xq[p], xq[p]);
      gain[p] = hn::IfThenElse(hn::Gt(qq[p], hn::Zero(d)), hn::Div(square, qq[p]), hn::Set(d, -1));
      max = hn::Max(max, gain[p]);
    }
    const float largest = hn::ReduceMax(d, max);
    const VF enough = hn::Set(d, largest - std::max(squares - largest, 0.0f) / 64);
    alignas(64) float scale[16];
    alignas(64) float size[16];
    MICA_UNROLL
    for (std::size_t p = 0; p < parts; ++p) {
      const VF found = hn::Div(xq[p], qq[p]);
      const auto good = hn::And(hn::Ge(gain[p], hn::Zero(d)), hn::Ge(gain[p], enough));
      const VF found_size = hn::IfThenElse(good, hn::Abs(found), none);
      least = hn::Min(least, found_size);
      hn::Store(found, d, scale + p * lanes);
      hn::Store(found_size, d, size + p * lanes);
    }
    const float smallest = hn::ReduceMin(d, least);
    if (!(smallest < std::numeric_limits<float>::max())) return 0;
    return scale[std::find(size, size + 16, smallest) - size];
  }
};

/// Candidates for a scale and an offset, as search::detail::LineLanes; lanes from the tenth on are not read.
struct LineCandidates {
  VF scale[parts], offset[parts];

  /// x: 32 numbers; low, high, sum: their minimum, maximum and sum.
  HWY_INLINE LineCandidates(const float* x, float low, float high, float sum, const SearchedLevels& levels) {
    const DF d;
    const VF one = hn::Set(d, 1), width = hn::Set(d, high - low), sum_x = hn::Set(d, sum), n = hn::Set(d, 32);
    for (std::size_t p = 0; p < parts; ++p) {
      const VF below = hn::Load(d, levels.below + p * lanes);
      const VF steps =
          hn::Add(hn::Add(hn::Set(d, levels.high), below), hn::Load(d, levels.above + p * lanes));
      scale[p] = hn::Div(width, steps);
      offset[p] = hn::Add(hn::Set(d, low), hn::Mul(below, scale[p]));
      const VF inverse = hn::Div(one, scale[p]);
      VF q = hn::Zero(d), qq = q, xq = q;
      for (std::size_t i = 0; i < 32; ++i) {
        const VF value = hn::Set(d, x[i]);
        const VF code = levels.nearest(hn::Mul(hn::Sub(value, offset[p]), inverse));
        q = hn::Add(q, code);
        qq = hn::Add(qq, hn::Mul(code, code));
        xq = hn::Add(xq, hn::Mul(value, code));
      }
      const VF determinant = hn::Sub(hn::Mul(n, qq), hn::Mul(q, q));
      const VF s = hn::Div(hn::Sub(hn::Mul(n, xq), hn::Mul(q, sum_x)), determinant);
      const VF c = hn::Div(hn::Sub(hn::Mul(qq, sum_x), hn::Mul(q, xq)), determinant);
      const auto solved = hn::And(hn::Gt(determinant, hn::Zero(d)), hn::Gt(s, hn::Zero(d)));
      scale[p] = hn::IfThenElse(solved, s, scale[p]);
      offset[p] = hn::IfThenElse(solved, c, offset[p]);
    }
  }

  /// The line with the smallest error.
  [[nodiscard]] HWY_INLINE format::search::Line best(const float* x, const SearchedLevels& levels) const {
    const DF d;
    alignas(64) float error[16];
    alignas(64) float scales[16];
    alignas(64) float offsets[16];
    for (std::size_t p = 0; p < parts; ++p) {
      const VF inverse = hn::Div(hn::Set(d, 1), scale[p]);
      VF sum = hn::Zero(d);
      for (std::size_t i = 0; i < 32; ++i) {
        const VF from = hn::Sub(hn::Set(d, x[i]), offset[p]);
        const VF miss = hn::Sub(from, hn::Mul(scale[p], levels.nearest(hn::Mul(from, inverse))));
        sum = hn::Add(sum, hn::Mul(miss, miss));
      }
      hn::Store(sum, d, error + p * lanes);
      hn::Store(scale[p], d, scales + p * lanes);
      hn::Store(offset[p], d, offsets + p * lanes);
    }
    const auto best = std::min_element(error, error + line_candidates) - error;
    return {scales[best], offsets[best]};
  }
};

/// 32 numbers in units of a power of two, as format::search::Values.
struct BlockValues {
  alignas(64) float x[32];
  float unit;
  bool fits;  // F16 holds all of them

  HWY_INLINE explicit BlockValues(const float* values) {
    const DF d;
    const hn::RebindToUnsigned<DF> du;
    const auto infinite = hn::Set(du, 0x7F800000u);
    auto top = hn::Zero(du), any = hn::Zero(du);  // magnitudes are ordered as their bits are
    for (std::size_t i = 0; i < 32; i += lanes) {
      const auto bits = hn::And(hn::BitCast(du, load(values + i)), hn::Set(du, 0x7FFFFFFFu));
      any = hn::Max(any, bits);
      top = hn::Max(top, hn::IfThenElseZero(hn::Lt(bits, infinite), bits));
    }
    fits = hn::ReduceMax(du, any) <= 0x477FE000u;  // 65504
    const int exponent = std::clamp(static_cast<int>(hn::ReduceMax(du, top) >> 23) - 127, -126, 126);
    unit = std::bit_cast<float>((127 + exponent) << 23);
    const VF inverse = hn::Set(d, std::bit_cast<float>((127 - exponent) << 23));
    for (std::size_t i = 0; i < 32; i += lanes) {
      const VF v = load(values + i);
      hn::Store(hn::IfThenElseZero(hn::IsFinite(v), hn::Mul(v, inverse)), d, x + i);
    }
  }

  /// The nearest codes for the d that is stored.
  HWY_INLINE void take_nearest(Half half, const SearchedLevels& levels, std::uint8_t* codes) const {
    const DF d;
    const VF inverse = hn::Set(d, format::search::inverse_or_zero(to_float(half) / unit));
    const hn::Rebind<std::uint8_t, DF> d8;
    for (std::size_t i = 0; i < 32; i += lanes) {
      const VF code = hn::Sub(levels.nearest(hn::Mul(hn::Load(d, x + i), inverse)), hn::Set(d, levels.low));
      hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(DI(), code)), d8, codes + i);
    }
  }
};

/// The scale with about the smallest error, as search::find_scale.
HWY_INLINE float find_scale(const float* x, const SearchedLevels& levels) {
  const DF d;
  VF sizes = hn::Zero(d);
  for (std::size_t i = 0; i < 32; i += lanes) sizes = hn::Max(sizes, hn::Abs(hn::Load(d, x + i)));
  const float largest = hn::ReduceMax(d, sizes);
  if (largest == 0) return 0;
  const float* const peak = std::find_if(x, x + 32, [&](float v) { return std::fabs(v) == largest; });
  float squares = 0;
  for (std::size_t i = 0; i < 32; ++i) squares += x[i] * x[i];
  return Candidates(x, *peak, levels).best(squares);
}

/// The line with about the smallest error, as search::find_line.
HWY_INLINE format::search::Line find_line(const float* x, const SearchedLevels& levels) {
  const DF d;
  VF least = hn::Load(d, x), most = least;
  for (std::size_t i = lanes; i < 32; i += lanes) {
    least = hn::Min(least, hn::Load(d, x + i));
    most = hn::Max(most, hn::Load(d, x + i));
  }
  const float low = hn::ReduceMin(d, least), high = hn::ReduceMax(d, most);
  if (!(high > low)) return {0, low};
  float sum = 0;
  for (std::size_t i = 0; i < 32; ++i) sum += x[i];
  return LineCandidates(x, low, high, sum, levels).best(x, levels);
}

/// Encodes 32 numbers; d becomes NaN where the magnitude of one is above 65504, the largest F16.
template <class Block>
HWY_INLINE void search_block(const float* values, const SearchedLevels& levels, Block& block) {
  namespace search = format::search;
  BlockValues all(values);
  std::uint8_t codes[32];
  if constexpr (requires { block.m; }) {
    float mean = 0;
    for (const float x : all.x) mean += x / 32.0f;
    for (float& x : all.x) x -= mean;
    const search::Line line = find_line(all.x, levels);
    block.m = search::finite_half((line.offset + mean) * all.unit);
    const float shift = mean - to_float(block.m) / all.unit;
    for (float& x : all.x) x += shift;
    block.d = search::stored_scale(line.scale, all.unit);
  } else {
    block.d = search::stored_scale(find_scale(all.x, levels), all.unit);
  }
  all.take_nearest(block.d, levels, codes);
  search::pack_codes(codes, block);
  if (!all.fits) block.d = to_half(std::numeric_limits<float>::quiet_NaN());
}

/// Stores tokens of one tile.
template <class E>
void store_blocks(const StoreArgs& a) {
  using F = typename E::Format;
  const SearchedLevels levels = SearchedLevels::of(typename format::Encoder<F>::Levels());
  const std::size_t dims = a.x.cols(), blocks = E::blocks(dims), last = 32 * (blocks - 1);
  alignas(64) float head[max_head_dim + 32];
  for (std::size_t i = 0; i < a.x.rows(); ++i) {
    if constexpr (E::rotated) {
      rotate_head(a.x[i].data(), dims, head);
    } else {
      std::copy_n(a.x[i].data(), dims, head);
    }
    // The last block is filled up with its own numbers.
    for (std::size_t k = dims; k < 32 * blocks; ++k) head[k] = head[last + (k - last) % (dims - last)];
    for (std::size_t b = 0; b < blocks; ++b) {
      typename E::Block block;
      search_block(head + 32 * b, levels, block);
      if (a.values) {
        E::template set_block<typename E::Values>(a.tile, a.slot + i, dims, b, block);
      } else {
        E::template set_block<typename E::Keys>(a.tile, a.slot + i, dims, b, block);
      }
    }
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
