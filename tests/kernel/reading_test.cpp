// SPDX-License-Identifier: Apache-2.0
//
// The order in which weights are read: how it is chosen, and that the trials read every panel once.

#include "mica/kernel/highway/reading.hpp"

#include "kernel/product.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace mica::test::reading_test {
namespace {

using namespace kernel::highway;
using namespace std::chrono_literals;

struct Panels {
  std::vector<int> read;  // how often
  std::vector<Reading> order;

  void operator()(std::size_t p, std::size_t end, Reading reading) {
    for (; p < end; ++p) ++read.at(p), order.push_back(reading);
  }
};

}  // namespace

TEST_CASE("weights are read in order where that is clearly faster, and apart until this is known") {
  for (const std::uint32_t wins : {0u, 16u, 19u, 20u, 32u}) {
    ReadingChoice choice;
    for (std::uint32_t i = 0; i < ReadingChoice::max_comparisons; ++i) {
      CHECK_FALSE(choice.is_made());
      CHECK(choice.get() == Reading::apart);
      choice.compare(10us, i < wins ? 9us : 1s);  // what is late once counts once
    }
    CHECK(choice.is_made());
    CHECK((choice.get() == Reading::in_order) == (wins >= ReadingChoice::needed));
    choice.compare(1s, 1us);
    CHECK((choice.get() == Reading::in_order) == (wins >= ReadingChoice::needed));
  }
}

TEST_CASE("trials read each panel once, and both orders the same number of panels") {
  for (const std::size_t panel_bytes : {std::size_t{1000}, std::size_t{36} << 10, std::size_t{1} << 20}) {
    for (const std::size_t first : {0u, 5u}) {
      for (const std::size_t n : {0u, 1u, 7u, 100u, 5000u}) {
        ReadingChoice choice;
        Panels panels{std::vector<int>(first + n), {}};
        read_in_turns(choice, first, first + n, panel_bytes,
                      [&](std::size_t p, std::size_t end, Reading reading) { panels(p, end, reading); });
        CHECK(panels.order.size() == n);
        for (std::size_t p = first; p < first + n; ++p) REQUIRE(panels.read[p] == 1);
        const std::size_t pair =
            2 * (untimed_bytes / panel_bytes + timed_bytes / panel_bytes + 2);  // of panels
        const std::size_t pairs = std::min<std::size_t>(n / pair, ReadingChoice::max_comparisons);
        std::size_t in_order = 0;
        for (std::size_t i = 0; i < pairs * pair; ++i) in_order += panels.order[i] == Reading::in_order;
        CHECK(2 * in_order == pairs * pair);
        CHECK(choice.is_made() == (pairs == ReadingChoice::max_comparisons));
      }
    }
  }
}

TEST_CASE_TEMPLATE("a product that tries both orders has the bits of the specification", F, format::Q4_K,
                   format::Q6_K, format::Q8_0) {
  CounterRng rng(8);
  Product<F> product(1500, 4096 / F::block_size, 1, rng);
  const std::vector<float> expected = product.template run<kernel::Scalar>(0, 1500, false);
  reading_choice<F>().set({});
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> actual = product.template run_packed<kernel::Highway>(0, 1500, false);
    CHECK(differences(expected.data(), actual.data(), expected.size()) == 0);
  }
}

}  // namespace mica::test::reading_test
