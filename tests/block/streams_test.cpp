// SPDX-License-Identifier: Apache-2.0

#include "mica/block/detail/streams.hpp"

#include "mica/base/rng.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/scalar.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace mica::test::streams_test {
namespace {

constexpr std::size_t n = 5, width = 13;

std::vector<float> random(std::size_t size, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(size);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 2 - 1);
  return out;
}

/// Whether a number is what an exact one says.
bool near(float x, double exact) { return std::fabs(static_cast<double>(x) - exact) < 1e-5; }

}  // namespace

TEST_CASE("streams are predicted from all of them, the first one from what the blocks left") {
  exec::Team team(3);
  for (const std::size_t count : {1u, 2u, 4u, 8u}) {
    CAPTURE(count);
    const auto before = random(n * count * width, 1), left = random(n * width, 2),
               p = random(n * count * count, 3);
    std::vector<float> x = left, streams = before;
    block::predict_streams(team, {x.data(), n, width}, {streams.data(), n, count * width},
                           {p.data(), n, count * count});
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t k = 0; k < width; ++k) {
        const auto old = [&](std::size_t s) {
          return static_cast<double>(s == 0 ? left[t * width + k] : before[(t * count + s) * width + k]);
        };
        for (std::size_t i = 0; i < count; ++i) {
          double expected = old(i);
          for (std::size_t j = 0; j < count; ++j) {
            expected += static_cast<double>(p[(t * count + i) * count + j]) * old(j);
          }
          CHECK(near(streams[(t * count + i) * width + k], expected));
        }
        CHECK(x[t * width + k] == streams[t * count * width + k]);
      }
    }
  }
}

TEST_CASE("streams are corrected by what the blocks changed in the first one") {
  exec::Inline executor;
  constexpr std::size_t count = 3;
  const auto before = random(n * count * width, 4), left = random(n * width, 5), c = random(n * count, 6);
  std::vector<float> x = left, streams = before;
  block::correct_streams(executor, {x.data(), n, width}, {streams.data(), n, count * width},
                         {c.data(), n, count});
  for (std::size_t t = 0; t < n; ++t) {
    for (std::size_t k = 0; k < width; ++k) {
      const double first = static_cast<double>(before[t * count * width + k]);
      const double change = static_cast<double>(left[t * width + k]) - first;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = (t * count + i) * width + k;
        const double weight = 1 + static_cast<double>(c[t * count + i]);
        CHECK(near(streams[at], static_cast<double>(before[at]) + weight * change));
      }
      CHECK(x[t * width + k] == streams[t * count * width + k]);
    }
  }
}

TEST_CASE("modalities are the hyperbolic tangent of what the router says, per number of the width") {
  exec::Inline executor;
  const auto before = random(n * 4, 7);
  std::vector<float> m = before;
  for (float& v : m) v *= 100;
  block::modalities(executor, {m.data(), n, 4}, width);
  for (std::size_t i = 0; i < m.size(); ++i) {
    CHECK(near(m[i], std::tanh(100 * static_cast<double>(before[i]) / width)));
  }
}

TEST_CASE("the norm of a branch is added to every stream but the first") {
  exec::Team team(2);
  constexpr std::size_t count = 4;
  const auto before = random(n * count * width, 8), out = random(n * width, 9), weight = random(width, 10);
  std::vector<float> streams = before, scratch = out;
  const block::Branch branch{{}, {scratch.data(), n, width}, weight.data(), 1e-6f};
  block::join_streams<kernel::Scalar>(team, branch, {streams.data(), n, count * width});
  for (std::size_t t = 0; t < n; ++t) {
    double squares = 0;
    for (std::size_t k = 0; k < width; ++k) squares += std::pow(out[t * width + k], 2.0);
    const double factor = 1 / std::sqrt(squares / width + 1e-6);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < width; ++k) {
        const std::size_t at = (t * count + i) * width + k;
        const double added =
            static_cast<double>(out[t * width + k]) * factor * static_cast<double>(weight[k]);
        CHECK(near(streams[at], static_cast<double>(before[at]) + (i == 0 ? 0 : added)));
      }
    }
  }
}

TEST_CASE("rows get the length of others, and short ones are not blown up") {
  exec::Inline executor;
  const auto like = random(2 * width, 11);
  std::vector<float> x = random(2 * width, 12);
  for (std::size_t k = 0; k < width; ++k) x[width + k] *= 1e-6f;
  const std::vector<float> before = x;
  block::match_magnitude(executor, {like.data(), 2, width}, {x.data(), 2, width});
  for (std::size_t t = 0; t < 2; ++t) {
    double wanted = 0, found = 0;
    for (std::size_t k = 0; k < width; ++k) {
      wanted += std::pow(like[t * width + k], 2.0) / width;
      found += std::pow(before[t * width + k], 2.0) / width;
    }
    const double factor = std::sqrt(wanted / (t == 0 ? found : 1e-5));
    for (std::size_t k = 0; k < width; ++k) {
      CHECK(near(x[t * width + k], static_cast<double>(before[t * width + k]) * factor));
    }
  }
}

}  // namespace mica::test::streams_test
