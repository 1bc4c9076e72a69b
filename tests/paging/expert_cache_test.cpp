// SPDX-License-Identifier: Apache-2.0
//
// Experts are those of the file, stay while there is room, and are forgotten in the order in which they were
// used.

#include "mica/paging/expert_cache.hpp"

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/base/rng.hpp"
#include "mica/gguf/source.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <vector>

namespace mica::test::expert_cache_test {
namespace {

using A = alloc::Budgeted<alloc::Aligned>;
using Cache = paging::ExpertCache<A>;

constexpr std::size_t block = 4096, experts = 9, place = 3 * block;

/// A file of nine experts of two parts each: a block here, and one or two far behind. The last ends in the
/// middle of a block.
struct File {
  TemporaryFolder folder;
  std::vector<std::byte> bytes = [] {
    std::vector<std::byte> all(experts * place - 1000);
    CounterRng rng(1);
    for (std::byte& b : all) b = static_cast<std::byte>(rng.next());
    return all;
  }();
  std::string path = folder.file("experts", bytes);
  std::vector<gguf::Source> sources = [this] {
    std::vector<gguf::Source> all;
    all.emplace_back(io::File::open(path));
    return all;
  }();
  std::vector<std::vector<paging::ByteRange>> parts = [] {
    std::vector<std::vector<paging::ByteRange>> all;
    for (std::size_t e = 0; e < experts; ++e) {
      all.push_back({{0, e * block, block}, {0, (experts + 2 * e) * block, 2 * block}});
    }
    return all;
  }();
  budget::Ledger ledger;

  [[nodiscard]] Cache cache(std::size_t places) {
    return {A(ledger, budget::Account::weights), experts, place, places, sources, {}};
  }
  [[nodiscard]] bool same(const std::byte* at, std::size_t expert) const {
    const auto part = [&](std::size_t offset, std::size_t n) {
      n = std::min(n, bytes.size() - offset);
      const bool equal = std::memcmp(at, bytes.data() + offset, n) == 0;
      at += n;
      return equal;
    };
    return part(expert * block, block) && part((experts + 2 * expert) * block, 2 * block);
  }
  /// Uses experts as a batch does.
  void use(Cache& cache, const std::vector<std::size_t>& batch) {
    for (const std::size_t e : batch) cache.begin(e, parts[e]);
    for (const std::size_t e : batch) {
      const std::byte* const at = cache.acquire(e, parts[e]);
      REQUIRE(at != nullptr);
      CHECK(same(at, e));
    }
    for (const std::size_t e : batch) cache.release(e);
  }
};

}  // namespace

TEST_CASE("experts are those of the file, and those used lately are there") {
  File file;
  {
    Cache cache = file.cache(4);
    CHECK(file.ledger.used() == 4 * place);
    file.use(cache, {0, 1, 2});
    CHECK(cache.reads().expert_misses == 3);
    file.use(cache, {2, 0});
    CHECK(cache.reads().expert_hits == 2);
    file.use(cache, {8, 7});  // takes the free place, and that of 1
    file.use(cache, {0, 2});
    CHECK(cache.reads().expert_hits == 4);
    CHECK(cache.reads().expert_misses == 5);
    file.use(cache, {1});
    CHECK(cache.reads().expert_misses == 6);
  }
  CHECK(file.ledger.used() == 0);
}

TEST_CASE("a batch never loses an expert to another one of it, whatever was there before") {
  File file;
  Cache cache = file.cache(4);
  CounterRng rng(4);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::size_t> batch;
    while (batch.size() < 1 + rng.next() % 4) {
      const std::size_t e = rng.next() % experts;
      if (std::find(batch.begin(), batch.end(), e) == batch.end()) batch.push_back(e);
    }
    file.use(cache, batch);
  }
  CHECK(cache.reads().expert_hits > 100);
  CHECK(cache.reads().expert_misses > 100);
}

TEST_CASE(
    "without a free place, and without a file to read, the answer is no, and what was begun is not lost") {
  File file;
  Cache cache = file.cache(2);
  REQUIRE(cache.acquire(0, file.parts[0]) != nullptr);
  REQUIRE(cache.acquire(1, file.parts[1]) != nullptr);
  CHECK(cache.acquire(2, file.parts[2]) == nullptr);
  cache.release(1);
  CHECK(file.same(cache.acquire(2, file.parts[2]), 2));
  cache.release(0);
  cache.release(2);
  cache.begin(3, file.parts[3]);  // a batch that is given up
  cache.begin(4, file.parts[4]);
  file.use(cache, {5, 6});
  std::filesystem::resize_file(file.path, block);
  CHECK(cache.acquire(7, file.parts[7]) == nullptr);
  CHECK(file.same(cache.acquire(6, file.parts[6]), 6));
  cache.release(6);
  budget::Ledger small(place);
  CHECK_THROWS_AS(Cache(A(small, budget::Account::weights), experts, place, 2, file.sources, {}), Error);
}

}  // namespace mica::test::expert_cache_test
