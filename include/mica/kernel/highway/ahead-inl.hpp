// SPDX-License-Identifier: Apache-2.0
//
// Per target: asking for weights before they are needed. A core gets more from memory when it asks at two
// places in turns than in order (docs/design/0004-kernels.md). A matrix is walked in spans; while two of them
// are used, the next two are asked for, a line of one and a line of the other:
//
//   | in use: two spans        | asked for: two spans     |
//   |----->                    |-->         |-->          |       half the speed, twice
//
// The second level has to hold four spans. The first two spans of a walk are not prefetched here but by the
// core.

#if defined(MICA_KERNEL_HIGHWAY_AHEAD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_AHEAD_INL_HPP
#undef MICA_KERNEL_HIGHWAY_AHEAD_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_AHEAD_INL_HPP
#endif

#include "mica/kernel/highway/ops-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

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
};

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
