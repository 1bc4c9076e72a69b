// SPDX-License-Identifier: Apache-2.0
//
// Per target: the limits that kernels are held against, the dots of bytes, the float multiply-adds and the reading of
// memory.

#if defined(MICA_BENCH_PEAK_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_BENCH_PEAK_INL_HPP
#undef MICA_BENCH_PEAK_INL_HPP
#else
#define MICA_BENCH_PEAK_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Whether this machine has dots of four bytes that its instruction set does not promise.
inline bool dotted_machine() { return MICA_VECTORS && MICA_QUADS == MICA_QUADS_MAYBE && ByteDots::used(); }

inline const char* target_name() {
  return dotted_machine() ? ByteDots::name.data() : hwy::TargetName(HWY_TARGET);
}

#if MICA_VECTORS

/// Multiply-adds of `rounds` times twelve independent dots; `sink` keeps them alive.
template <bool quads>
double dots_of(std::size_t rounds, std::int32_t* sink) {
  VI sum[12];
  MICA_UNROLL
  for (std::size_t i = 0; i < 12; ++i) sum[i] = hn::Set(DI(), static_cast<std::int32_t>(i));
  VU8 w = hn::Set(DU8(), static_cast<std::uint8_t>(*sink & 15));
  const VI8 x = hn::Set(DI8(), std::int8_t{3});
  for (std::size_t n = 0; n < rounds; ++n) {
    MICA_UNROLL
    for (std::size_t i = 0; i < 12; ++i) sum[i] = dot4<15, quads>(w, x, sum[i]);
    w = hn::Xor(w, hn::Set(DU8(), 1));
  }
  for (std::size_t i = 1; i < 12; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  *sink = hn::GetLane(sum[0]);
  return static_cast<double>(rounds * 12 * 4 * lanes);
}

inline double dots(std::size_t rounds, std::int32_t* sink) {
  if constexpr (MICA_QUADS == MICA_QUADS_MAYBE) {
    if (dotted_machine()) return dots_of<true>(rounds, sink);
  }
  return dots_of<target_quads>(rounds, sink);
}

/// The same of floats.
inline double float_multiply_adds(std::size_t rounds, std::int32_t* sink) {
  VF sum[12];
  const VF w = hn::Set(DF(), static_cast<float>(*sink & 15)), x = hn::Set(DF(), 0.5f);
  MICA_UNROLL
  for (std::size_t i = 0; i < 12; ++i) sum[i] = hn::Set(DF(), static_cast<float>(i));
  for (std::size_t n = 0; n < rounds; ++n) {
    MICA_UNROLL
    for (std::size_t i = 0; i < 12; ++i) sum[i] = hn::MulAdd(sum[i], x, w);
  }
  for (std::size_t i = 1; i < 12; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  *sink = static_cast<std::int32_t>(hn::GetLane(sum[0]));
  return static_cast<double>(rounds * 12 * lanes);
}

inline void read_all(const std::uint8_t* p, std::size_t n, std::int32_t* sink) {
  VU8 sum[4] = {hn::Zero(DU8()), hn::Zero(DU8()), hn::Zero(DU8()), hn::Zero(DU8())};
  constexpr std::size_t step = 4 * lanes;
  for (std::size_t i = 0; i + 4 * step <= n; i += 4 * step) {
    MICA_UNROLL
    for (std::size_t v = 0; v < 4; ++v) {
      prefetch(p + i, 8192 + v * step);
      sum[v] = hn::Xor(sum[v], hn::LoadU(DU8(), p + i + v * step));
    }
  }
  *sink += hn::GetLane(hn::Xor(hn::Xor(sum[0], sum[1]), hn::Xor(sum[2], sum[3])));
}

#else

inline double dots(std::size_t rounds, std::int32_t* sink) {
  for (std::size_t n = 0; n < rounds; ++n) *sink = (*sink & 15) * 3 + static_cast<std::int32_t>(n);
  return static_cast<double>(rounds);
}
inline double float_multiply_adds(std::size_t rounds, std::int32_t* sink) { return dots(rounds, sink); }
inline void read_all(const std::uint8_t* p, std::size_t n, std::int32_t* sink) {
  for (std::size_t i = 0; i < n; i += 64) *sink += p[i];
}

#endif
}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif
