// SPDX-License-Identifier: Apache-2.0
//
// Per target: vector shapes and the few operations that Highway lacks. With dots-inl.hpp the only file that
// may hold raw intrinsics.
//
// MICA_VECTORS is 1 where the arithmetic can be reproduced in vectors: the multiply-add is fused and the
// vectors have a size that the compiler knows. Elsewhere the specification itself is what runs.

#if defined(MICA_KERNEL_HIGHWAY_OPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_OPS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_OPS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_OPS_INL_HPP
#endif

#include <hwy/highway.h>

#undef MICA_VECTORS
#if HWY_NATIVE_FMA && !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#define MICA_VECTORS 1
#else
#define MICA_VECTORS 0
#endif

// Arrays of vectors live in registers only when the loops over them are gone.
#undef MICA_UNROLL
#if HWY_COMPILER_CLANG
#define MICA_UNROLL _Pragma("clang loop unroll(full)")
// A loop whose count is known at run time alone stays a loop, as it should; clang would warn of that.
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define MICA_UNROLL _Pragma("GCC unroll 16")
#endif

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

/// Sixteen chains, sixteen tokens of a tile and sixteen rows of a panel all fit whole vectors of at most 16
/// lanes.
using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using DI8 = hn::Repartition<std::int8_t, DF>;
using DU8 = hn::Repartition<std::uint8_t, DF>;
using DI16 = hn::Repartition<std::int16_t, DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
using VU = hn::Vec<DU>;
using VI8 = hn::Vec<DI8>;
using VU8 = hn::Vec<DU8>;
using VI16 = hn::Vec<DI16>;

inline constexpr std::size_t lanes = hn::MaxLanes(DF());
/// Vectors that hold sixteen numbers.
inline constexpr std::size_t parts = 16 / lanes;
/// Registers decide how large a tile may be.
inline constexpr bool many_registers = HWY_TARGET != HWY_AVX2;

/// Floats become halves by an instruction, which rounds as to_half() does.
inline constexpr bool converts_halves = HWY_ARCH_X86 ? HWY_TARGET <= HWY_AVX2 : HWY_ARCH_ARM_A64 != 0;

/// Adding it rounds a number of less than 2^22 to an integer, to nearest even: the lowest bits of the sum are
/// those of the integer, in two's complement.
inline constexpr float integer_magic = 12582912.0f;  // 1.5 * 2^23
/// Integers that are nearest to x * factor, of less than 2^22, in the lowest bits of lanes.
HWY_INLINE VI rounded_bits(VF x, VF factor) {
  return hn::BitCast(DI(), hn::Add(hn::Mul(x, factor), hn::Set(DF(), integer_magic)));
}
/// The integers themselves.
HWY_INLINE VI integers_of(VI bits) {
  return hn::Sub(bits, hn::Set(DI(), std::bit_cast<std::int32_t>(integer_magic)));
}
template <class Byte>
HWY_INLINE void store_lowest_bytes(VI bits, Byte* to) {
  const hn::Rebind<std::uint8_t, DF> d8;
  hn::StoreU(hn::TruncateTo(d8, hn::BitCast(DU(), bits)), d8, reinterpret_cast<std::uint8_t*>(to));
}

// Loads of numbers as they lie in memory.
HWY_INLINE VF load(const float* p) { return hn::LoadU(DF(), p); }
HWY_INLINE VF load(const Half* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::BitCast(dh, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p))));
}
HWY_INLINE VF load(const Bfloat* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const auto bits = hn::PromoteTo(DU(), hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p)));
  return hn::BitCast(DF(), hn::ShiftLeft<16>(bits));
}
HWY_INLINE VF load(const std::int8_t* p) {
  return hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<std::int8_t, DF>(), p)));
}

/// The first n numbers, then zeros; nothing behind them is read.
template <class T>
HWY_INLINE VF load_first(const T* p, std::size_t n) {
  alignas(64) T copy[lanes] = {};
  for (std::size_t i = 0; i < n; ++i) copy[i] = p[i];
  return load(copy);
}

HWY_INLINE VI broadcast4(const std::int8_t* p) {
  std::int32_t four;
  hwy::CopyBytes<4>(p, &four);
  return hn::Set(DI(), four);
}

/// A vector, or every one of an array, becomes zero.
HWY_INLINE void clear(VF& v) { v = hn::Zero(DF()); }
HWY_INLINE void clear(VI& v) { v = hn::Zero(DI()); }
template <class V, std::size_t n>
HWY_INLINE void clear(V (&v)[n]) {
  MICA_UNROLL
  for (V& each : v) clear(each);
}

/// Calls f with n, 1 to max, as a constant.
template <std::size_t max, class F>
HWY_INLINE void with_constant(std::size_t n, const F& f) {
  if constexpr (max > 1) {
    if (n != max) return with_constant<max - 1>(n, f);
  }
  f(std::integral_constant<std::size_t, max>());
}

/// Four rows of four lanes become four columns, in every 128-bit block.
template <class V>
HWY_INLINE void transpose4(V& a, V& b, V& c, V& e) {
  const hn::DFromV<V> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, a, b)),
             ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(wide, hn::InterleaveLower(d, c, e)),
             ce_high = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
  a = hn::BitCast(d, hn::InterleaveLower(wide, ab_low, ce_low));
  b = hn::BitCast(d, hn::InterleaveUpper(wide, ab_low, ce_low));
  c = hn::BitCast(d, hn::InterleaveLower(wide, ab_high, ce_high));
  e = hn::BitCast(d, hn::InterleaveUpper(wide, ab_high, ce_high));
}

/// The sums of the four lanes of a, b, c and e, in every 128-bit block.
template <class V>
HWY_INLINE V sum_blocks(V a, V b, V c, V e) {
  const hn::DFromV<V> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto ab = hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, ab, ce)),
                 hn::BitCast(d, hn::InterleaveUpper(wide, ab, ce)));
}

/// A vector of 128-bit blocks that begin at at(row), at(row + 4), at(row + 8) and so on.
template <class D, class At>
HWY_INLINE hn::Vec<D> load_blocks(D d, const At& at, std::size_t row) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, at(row));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, at, row + hn::MaxLanes(half)), load_blocks(half, at, row));
  }
}

/// Four words that follow each other in every row, beginning at at(row): word[i] has lanes rows [row, row +
/// lanes).
template <class At>
HWY_INLINE void load_words(const At& at, std::size_t row, VI (&word)[4]) {
  MICA_UNROLL
  for (std::size_t i = 0; i < 4; ++i) word[i] = load_blocks(DI(), at, row + i);
  transpose4(word[0], word[1], word[2], word[3]);
}

/// Two adjacent vectors, stored as one where the machine has wider ones: a vector should be stored as it will
/// be loaded.
template <class D, class V>
HWY_INLINE void store_pair(D d, V low, V high, std::uint8_t* p) {
  if constexpr (2 * hn::MaxLanes(D()) <= hn::MaxLanes(DU8())) {
    const hn::Twice<D> twice;
    hn::StoreU(hn::Combine(twice, high, low), twice, p);
  } else {
    hn::StoreU(low, d, p);
    hn::StoreU(high, d, p + hn::MaxLanes(D()));
  }
}

/// Asks for the cache line `ahead` bytes behind p, into the second level: far more than the first holds is on
/// its way.
template <class T>
HWY_INLINE void prefetch(const T* p, std::size_t ahead) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  __builtin_prefetch(reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(p) + ahead), 0, 2);
#endif
}

/// Requests for memory before this line are not moved behind it, nor those behind it before: gcc likes to
/// gather them.
HWY_INLINE void stay_here() {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  asm volatile("");
#endif
}

/// Asks for the cache line of p, soon to be written, into the first level.
template <class T>
HWY_INLINE void prefetch_write(T* p) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  __builtin_prefetch(p, 1, 3);
#endif
}

/// Keeps a sum of dot products in its register: gcc moves such sums to other registers and back on every turn
/// of a loop.
HWY_INLINE void keep(VI& sum) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86
  asm("" : "+v"(sum.raw));
#else
  (void)sum;
#endif
}

/// Adds the upper half to the lower one until four lanes are left.
template <class D, class V>
HWY_INLINE auto fold_halves(D, V v) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return fold_halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// tree16 of chains that lie in vectors.
HWY_INLINE float tree(const VF* c) {
  VF sum = c[0];
  if constexpr (parts == 2) sum = hn::Add(c[0], c[1]);
  if constexpr (parts == 4) sum = hn::Add(hn::Add(c[0], c[2]), hn::Add(c[1], c[3]));
  auto quarter = fold_halves(DF(), sum);
  quarter = hn::Add(quarter, hn::Shuffle1032(quarter));
  return hn::GetLane(hn::Add(quarter, hn::Shuffle2301(quarter)));
}

// ---- asking for weights before they are needed
//
// A core of a Xeon gets more from memory when it asks at two places in turns (docs/design/0004-kernels.md).
// A matrix is walked in spans; while two of them are used, the next two are asked for, a line of one and a line
// of the other:
//
//   | in use: two spans        | asked for: two spans     |
//   |----->                    |-->         |-->          |       half the speed, twice
//
// The second level has to hold four spans. The first two spans of a walk are not prefetched here but by the
// core. Some other cores read faster in order, without requests (reading.hpp).

/// Bytes of a span: at least.
inline constexpr std::size_t min_span = 16 << 10;

/// The two places to ask at while the walk is `at` bytes from `data`. There is nothing beyond `end` bytes:
/// what is in use is asked for instead, which costs little.
struct Ahead {
  const std::uint8_t* place[2];

  static HWY_INLINE Ahead of(const std::uint8_t* data, std::size_t at, std::size_t end, std::size_t span) {
    const std::size_t in_spans = at % (2 * span), first = at - in_spans + 2 * span + in_spans / 2;
    return {{data + (first < end ? first : at), data + (first + span < end ? first + span : at)}};
  }
  /// For a walk in order: lines that are in use are asked for again, which costs little.
  static HWY_INLINE Ahead nowhere(const std::uint8_t* used) { return {{used, used}}; }
};

/// Reads the lines of some bytes into the first level, one after the other, and on x86 waits for the last one:
/// no other load comes between them, so the core knows what comes next and prefetches it. Inlined, Q8_0 was
/// read at half the speed (g++ 12, Zen 4).
HWY_NOINLINE inline void read_lines(const std::uint8_t* p, std::size_t bytes) {
  const std::uint8_t* const end = p + bytes;
  for (p -= reinterpret_cast<std::uintptr_t>(p) % 64; p < end; p += 64)
    static_cast<void>(*static_cast<const volatile std::uint8_t*>(p));
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  asm volatile("lfence" : : : "memory");
#endif
}

/// For a walk that passes two lines: asks for two.
inline constexpr std::size_t two_lines = 128;
HWY_INLINE void ask_two_places(const std::uint8_t* data, std::size_t at, std::size_t end) {
  const Ahead ahead = Ahead::of(data, at, end, min_span);
  prefetch(ahead.place[0], 0);
  prefetch(ahead.place[1], 0);
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
