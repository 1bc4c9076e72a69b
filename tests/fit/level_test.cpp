// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/level.hpp"

#include <doctest/doctest.h>

namespace mica::test::level_test {

using fit::Level, fit::Mode, fit::Pools, fit::level_of;

TEST_CASE("levels follow the table: cards can be perfect, processors good, disks marginal") {
  struct Case {
    Mode mode;
    Pools need, available;
    std::uint64_t recommended;
    bool whole;
    Level level;
  };
  constexpr Case cases[] = {
      {Mode::gpu, {100, 0}, {120, 0}, 120, true, Level::perfect},
      {Mode::gpu, {100, 0}, {120, 0}, 121, true, Level::good},       // less than is recommended
      {Mode::gpu, {100, 0}, {119, 0}, 100, true, Level::marginal},   // less than a fifth is left
      {Mode::gpu, {100, 0}, {120, 0}, 100, false, Level::marginal},  // with less context than was asked for
      {Mode::gpu, {100, 0}, {99, 0}, 10, true, Level::too_tight},
      {Mode::moe_offload, {100, 500}, {200, 600}, 10, true, Level::good},
      {Mode::moe_offload, {100, 500}, {200, 599}, 10, true, Level::marginal},
      {Mode::moe_offload, {100, 500}, {200, 499}, 10, true, Level::too_tight},
      {Mode::cpu_gpu, {0, 100}, {50, 120}, 10, true, Level::good},
      {Mode::cpu, {0, 100}, {0, 1000}, 10, true, Level::good},  // never perfect
      {Mode::cpu, {0, 100}, {0, 119}, 10, true, Level::marginal},
      {Mode::streamed, {0, 100}, {0, 1000}, 10, true, Level::marginal},  // never better
      {Mode::streamed, {0, 100}, {0, 99}, 10, true, Level::too_tight},
  };
  for (const Case& c : cases) {
    CAPTURE(fit::name(c.mode));
    CAPTURE(c.available.vram);
    CAPTURE(c.available.ram);
    CHECK(level_of(c.mode, c.need, c.available, c.recommended, c.whole) == c.level);
  }
}

TEST_CASE("headroom is a fifth of what is needed, to the byte and without overflow") {
  static_assert(fit::has_headroom({0, 5}, {0, 6}));
  static_assert(!fit::has_headroom({0, 6}, {0, 7}));  // 7.2 would be needed
  static_assert(fit::has_headroom({0, 6}, {0, 8}));
  static_assert(!fit::has_headroom({0, ~std::uint64_t{0}}, {0, ~std::uint64_t{0}}));
  static_assert(fit::has_headroom({0, 0}, {0, 0}));
  CHECK(fit::utilisation({100, 30}, {200, 40}) == 0.75);  // of the fuller pool
  CHECK(fit::utilisation({1, 0}, {0, 0}) > 1);
}

TEST_CASE("more memory never gives a worse level to the same need") {
  for (const Mode mode : {Mode::gpu, Mode::moe_offload, Mode::cpu_gpu, Mode::cpu, Mode::streamed}) {
    Level before = Level::too_tight;
    for (std::uint64_t have = 0; have < 300; have += 7) {
      const Level now = level_of(mode, {100, 100}, {have, have}, 150, true);
      CHECK(now <= before);  // perfect is the least
      before = now;
    }
  }
}

}  // namespace mica::test::level_test
