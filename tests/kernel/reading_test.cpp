// SPDX-License-Identifier: Apache-2.0
//
// The order in which weights are read: how it is chosen, and that the trials read every panel once.

#include "mica/kernel/highway/reading.hpp"

#include "kernel/product.hpp"
#include "mica/base/bits.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace mica::test::reading_test {
namespace {

using namespace kernel::highway;

struct Panels {
  std::vector<int> read;  // how often
  std::vector<Reading> order;

  void operator()(std::size_t p, std::size_t end, Reading reading) {
    for (; p < end; ++p) ++read.at(p), order.push_back(reading);
  }
};

}  // namespace

TEST_CASE("weights are read in order where that is clearly faster, and apart until this is known") {
  constexpr std::uint32_t needed = ReadingChoice::needed, all = ReadingChoice::max_comparisons;
  for (const std::uint32_t wins : {0u, all / 2, needed - 1, needed, all}) {
    ReadingChoice choice;
    for (std::uint32_t i = 0; i < all; ++i) {
      CHECK_FALSE(choice.is_made());
      CHECK(choice.get() == Reading::apart);
      choice.compare(1, i < wins ? 0.9 : 1000);  // however late, it is one comparison
    }
    CHECK(choice.is_made());
    CHECK((choice.get() == Reading::in_order) == (wins >= needed));
    choice.compare(1, 0.1);
    CHECK((choice.get() == Reading::in_order) == (wins >= needed));
  }
}

TEST_CASE("trials read each panel once, and both orders as often, in slices of any size") {
  for (const std::size_t panel_bytes : {bytes_of_turn / timed_panels, std::size_t{1000}, 4 * bytes_of_turn}) {
    const std::size_t turn = round_up(ceil_div(bytes_of_turn, panel_bytes), timed_panels);
    CHECK(turn * panel_bytes >= bytes_of_turn);
    for (const std::size_t slice : {1u, 3u, 4u, 6u, 64u, 5000u}) {
      for (const std::size_t n : {1u, 7u, 100u, 8192u}) {
        CAPTURE(panel_bytes);
        CAPTURE(slice);
        CAPTURE(n);
        ReadingChoice choice;
        Panels panels{std::vector<int>(n), {}};
        for (std::size_t p = 0; p < n; p += slice)
          read_in_turns(
              choice, p, std::min(p + slice, n), panel_bytes,
              [&](std::size_t first, std::size_t end, Reading reading) { panels(first, end, reading); });
        CHECK(panels.order.size() == n);
        for (const int read : panels.read) REQUIRE(read == 1);
        for (std::size_t p = 0; p < std::min<std::size_t>(n, 4096); ++p)
          REQUIRE((panels.order[p] == Reading::in_order) == (p / turn / 2 % 2 == 1));
        const bool often = turn == timed_panels && slice >= timed_panels && slice != 6;
        CHECK(choice.is_made() == (n == 8192 && often));
      }
    }
  }
}

TEST_CASE("narrow panels of both orders are compared by lines that no other order asked for") {
  constexpr std::size_t panel_bytes = 1000,
                        turn = round_up(ceil_div(bytes_of_turn, panel_bytes), timed_panels);
  ReadingChoice choice;
  std::size_t calls = 0;
  for (std::size_t p = 0; !choice.is_made(); p += timed_panels, ++calls) {
    REQUIRE(calls < 100'000);
    read_in_turns(choice, p, p + timed_panels, panel_bytes, [](std::size_t, std::size_t, Reading) {});
  }
  CHECK(calls * timed_panels >= 4 * turn * (ReadingChoice::max_comparisons - 1));  // one in four turns
}

TEST_CASE_TEMPLATE("a product that tries both orders has the bits of the specification", F, format::Q4_K,
                   format::Q6_K, format::Q8_0) {
  CounterRng rng(8);
  Product<F> product(1500, 4096 / F::block_size, 1, rng);
  const std::vector<float> expected = product.template run<kernel::Scalar>(0, 1500, false);
  reading_choice<F>().set({});
  for (int i = 0; i < 64; ++i) {  // five comparisons each
    const std::vector<float> actual = product.template run_packed<kernel::Highway>(0, 1500, false);
    CHECK(differences(expected.data(), actual.data(), expected.size()) == 0);
  }
#if defined(__x86_64__) || defined(__aarch64__)
  CHECK(reading_choice<F>().is_made());
#endif
  reading_choice<F>().set({});
}

}  // namespace mica::test::reading_test
