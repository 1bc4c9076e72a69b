// SPDX-License-Identifier: Apache-2.0
//
// The best logits of a row that ranks have in parts: what a sampler chooses among is the same as with all.

#include "mica/alloc/aligned.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica/model/detail/exchange.hpp"
#include "mica/sample/candidates.hpp"
#include "model/tiny_model.hpp"
#include "ranks/crew.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace mica::test::best_test {
namespace {

/// Numbers of which many are equal.
std::vector<float> numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> row(n);
  for (float& x : row) x = static_cast<float>(random() % 300) / 16 - 9;
  return row;
}

/// The row as each rank has it afterwards, which begins with its own part alone.
std::vector<std::vector<float>> exchanged(const std::vector<float>& row, std::size_t count,
                                          const std::vector<double>& shares) {
  return each_rank(shares, [&](RanksOfThreads ranks) {
    const ranks::Part own = ranks.division().own(row.size() / 16).times(16);
    model::Exchange<RanksOfThreads, alloc::Aligned> exchange(ranks, {4, 1024}, 1024, alloc::Aligned());
    std::vector<float> mine(row.size(), 77);
    std::copy_n(row.begin() + static_cast<std::ptrdiff_t>(own.first), own.count,
                mine.begin() + static_cast<std::ptrdiff_t>(own.first));
    CHECK(exchange.best(mine, 16, count));
    return mine;
  });
}

std::vector<std::pair<TokenId, float>> best_of(const std::vector<float>& row, std::size_t count) {
  std::vector<sample::Candidate> memory(row.size());
  sample::Candidates candidates(memory);
  REQUIRE(candidates.fill(row));
  candidates.keep_best(count);
  std::vector<std::pair<TokenId, float>> out;
  for (const auto& each : candidates.span()) out.emplace_back(each.id, each.logit);
  return out;
}

}  // namespace

TEST_CASE("the best numbers of a row are those of one rank, and others are not above them") {
  for (const auto& shares : std::vector<std::vector<double>>{{1, 1}, {3, 1, 2}, {1, 1, 1, 1, 1}, {1, 1000}}) {
    for (const std::size_t count : {1, 2, 40, 300, 4096}) {
      CAPTURE(shares.size());
      CAPTURE(count);
      const std::vector<float> row = numbers(4096, static_cast<unsigned>(count));
      for (const auto& each : exchanged(row, count, shares)) {
        CHECK(best_of(each, count) == best_of(row, count));
        CHECK(std::all_of(each.begin(), each.end(), [](float x) { return std::isfinite(x) && x < 77; }));
      }
    }
  }
}

TEST_CASE("a number that is not finite reaches every rank") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> row = numbers(4096, 1);
    row[4000] = bad;
    for (const auto& each : exchanged(row, 3, {1, 1, 1})) CHECK(!all_finite(each));
  }
}

TEST_CASE("few logits are exchanged where few are wanted") {
  Recipe recipe = blocks_of(format::Q8_0::id);
  recipe.n_vocab = 2048;
  const TinyModel tiny(recipe);
  // Bytes that both ranks copy in one step and, where `count` is not 0, in one exchange of its logits.
  const auto copied = [&](std::size_t count) {
    ranks::Threads meeting(2);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        ranks::Threads::Link link(meeting, r);
        using Divided = Transformer<arch::Llama, WithRanks<RanksOfThreads>>;
        exec::Inline executor;
        Divided::Parts parts;
        parts.ranks = RanksOfThreads(link);
        Divided model(tiny.document(), executor, {.n_ctx = 64}, parts);
        auto cache = model.make_cache();
        const text::TokenId token = 5;
        CHECK(model.step(cache, std::span(&token, 1)) == model::StepStatus::ok);
        const std::size_t row = 0;
        if (count > 0) CHECK(model.best_logits(std::span(&row, 1), count).rows() == 1);
      });
    }
    for (std::thread& each : threads) each.join();
    return meeting.copied();
  };
  const std::size_t step = copied(0);
  CHECK(copied(40) - step <= 2 * 40 * 8);
  CHECK(copied(2048) - step >= 1024 * sizeof(float));
}

}  // namespace mica::test::best_test
