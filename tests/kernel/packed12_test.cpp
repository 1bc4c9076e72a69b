// SPDX-License-Identifier: Apache-2.0
//
// Products with rows packed in twelve bits against the specification with the file's: every bit, every target.

#include "kernel/formats.hpp"
#include "kernel/product.hpp"
#ifdef MICA_HAS_XSIMD
#include "mica/kernel/xsimd.hpp"
#endif

#include <cmath>

namespace mica::packed12_test {
namespace {

/// Weights as of a model that was published in BF16; one in `odd` has any exponent.
template <class F>
void fill_rounded(test::Product<F>& product, CounterRng& rng, std::size_t odd) {
  for (auto& block : product.blocks) {
    float value = to_float(to_bfloat(test::noise(rng, 0.02f)));
    if (rng.next() % odd == 0)
      value =
          std::ldexp(1 + static_cast<float>(rng.next() % 128) / 128, static_cast<int>(rng.next() % 30) - 14);
    F::encode(&value, block);
  }
}

template <class F>
void check_packed(test::Product<F>& product, std::size_t first, std::size_t last, bool add) {
  const std::vector<float> expected = product.template run<kernel::Scalar>(first, last, add);
  test::for_each_target([&] {
    INFO(F::name << ' ' << product.rows << " x " << product.cols << ", tokens " << product.x.n << ", rows "
                 << first << " to " << last);
    const std::vector<float> actual = product.template run_packed12<kernel::Highway>(first, last, add);
    REQUIRE(actual.size() == expected.size());
    CHECK(test::differences(expected.data(), actual.data(), expected.size()) == 0);
  });
}

TEST_CASE_TEMPLATE("products with rows packed in twelve bits equal those with the file's", F, format::F16,
                   format::BF16) {
  CounterRng rng(1);
  for (const std::size_t cols : {64u, 128u, 1088u, 2176u}) {
    for (const std::size_t tokens : {1u, 2u, 3u, 4u, 5u, 7u, 17u, 41u}) {
      for (const std::size_t odd : {700u, 100000u}) {
        test::Product<F> product(35, cols, tokens, rng);
        fill_rounded(product, rng, odd);
        check_packed(product, 0, 35, false);
      }
    }
  }
}

TEST_CASE_TEMPLATE("a slice of rows packed in twelve bits writes its own outputs only, and adds when asked",
                   F, format::F16, format::BF16) {
  CounterRng rng(2);
  for (const std::size_t tokens : {1u, 3u, 19u}) {
    test::Product<F> product(69, 192, tokens, rng);
    fill_rounded(product, rng, 500);
    check_packed(product, 0, 0, false);
    check_packed(product, 5, 6, true);
    check_packed(product, 3, 66, true);
    check_packed(product, 16, 32, false);
    check_packed(product, 64, 69, true);
  }
}

TEST_CASE_TEMPLATE("requantised products with rows packed in twelve bits equal those with the file's", F,
                   format::F16, format::BF16) {
  CounterRng rng(3);
  for (const std::size_t tokens : {17u, 97u}) {
    test::Product<F> product(37, 768, tokens, rng);
    fill_rounded(product, rng, 500);
    product.use_fast8();
    check_packed(product, 0, 37, false);
    check_packed(product, 5, 36, true);
  }
}

TEST_CASE("the kernels without code for rows packed in twelve bits take them as the file's") {
  CounterRng rng(4);
  test::Product<format::F16> product(19, 128, 3, rng);
  fill_rounded(product, rng, 300);
  const std::vector<float> expected = product.run<kernel::Scalar>(0, 19, false),
                           scalar = product.run_packed12<kernel::Scalar>(0, 19, false);
  CHECK((scalar == expected));
#ifdef MICA_HAS_XSIMD
  const std::vector<float> xsimd = product.run_packed12<kernel::Xsimd>(0, 19, false);
  CHECK((xsimd == expected));
#endif
}

}  // namespace
}  // namespace mica::packed12_test
