// SPDX-License-Identifier: Apache-2.0
//
// usage: attention_bench [ELEMENT] [--json FILE]
//
// One thread, heads of 128. Each result is compared with the specification first. Two tables, best and median
// of half a second:
//
//   kernels    one chunk of 256 tokens that lies in the cache, for 1 query row (a head of its own), 4 (a head
//              group) and 64 (sixteen tokens of a head group): GMAC/s of scores and of values, millions of
//              exponentials per second in the softmax. The limit of floats is the rate of multiply-adds.
//   contexts   the chunks of a context one after the other, as a step reads them: KV heads whose keys and
//              values come from memory, GB/s of them and GMAC/s of all. The limit is reading, or the kernels.

#define MICA_USER_CODECS_INL "kernel/peak-inl.hpp"
#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica/kernel/highway/dispatch.hpp"

#include <cstring>
#include <limits>
#include <string>

namespace mica::kernel::highway {
HWY_EXPORT(float_multiply_adds);
HWY_EXPORT(read_all);
HWY_EXPORT(target_name);
}  // namespace mica::kernel::highway

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t head_dim = 128;
constexpr std::size_t max_rows = 64;
constexpr std::size_t memory_bytes = std::size_t{192} << 20;  // more than a cache holds

bench::Limits measure_limits() {
  using namespace mica::kernel::highway;
  std::int32_t sink = 1;
  const auto read = HWY_DYNAMIC_POINTER(read_all);
  return bench::measure_limits(
      HWY_DYNAMIC_DISPATCH(target_name)(),
      [&](const std::uint8_t* bytes, std::size_t n) { read(bytes, n, &sink); },
      [&] { return HWY_DYNAMIC_DISPATCH(float_multiply_adds)(1000000, &sink); });
}

/// Tiles of KV heads, one after the other, and what the kernels write.
template <class E>
struct Bench {
  const std::size_t tile_bytes = E::key_tile_bytes(head_dim) + E::value_tile_bytes(head_dim);
  const std::size_t tile_count = memory_bytes / tile_bytes;
  bench::Pages<std::byte> tiles{tile_count * tile_bytes};
  std::vector<kernel::Visible> visible{max_rows, {0, 256}};
  bench::Pages<float> q{max_rows * head_dim};
  bench::Pages<float> p{max_rows * kernel::chunk_tokens};
  bench::Pages<float> out{max_rows * head_dim}, total{max_rows * head_dim};
  std::vector<float> max = std::vector<float>(max_rows), sum = max, total_max = max, total_sum = max;
  std::array<const std::byte*, kernel::chunk_tiles> chunk{}, next{};

  /// The first chunk is noise, the others are its copies.
  Bench() {
    CounterRng rng(1);
    const auto noise = [&] { return static_cast<float>(rng.uniform() - 0.5); };
    for (float& v : q) v = noise();
    std::vector<float> head(head_dim), heads(16 * head_dim);
    for (std::size_t t = 0; t < kernel::chunk_tiles; ++t) {
      std::byte* const tile = tiles.data() + t * tile_bytes;
      std::byte* const values = tile + E::key_tile_bytes(head_dim);
      if constexpr (KvTileElement<E>) {
        for (float& v : heads) v = noise();
        E::store_keys(tile, head_dim, heads.data());
        E::store_values(values, head_dim, heads.data());
      } else {
        for (std::size_t slot = 0; slot < 16; ++slot) {
          for (float& v : head) v = noise();
          E::store_key(tile, slot, head_dim, head.data());
          E::store_value(values, slot, head_dim, head.data());
        }
      }
    }
    for (std::size_t t = kernel::chunk_tiles; t < tile_count; ++t)
      std::memcpy(tiles.data() + t * tile_bytes, tiles.data() + t % kernel::chunk_tiles * tile_bytes,
                  tile_bytes);
  }
  std::array<const std::byte*, kernel::chunk_tiles> chunk_at(std::size_t first) {
    std::array<const std::byte*, kernel::chunk_tiles> at{};
    for (std::size_t t = 0; t < kernel::chunk_tiles && first + t < tile_count; ++t)
      at[t] = tiles.data() + (first + t) * tile_bytes;
    return at;
  }
  kernel::AttentionArgs args(std::size_t rows) {
    kernel::AttentionArgs a;
    a.tiles = chunk.data();
    a.value_offset = E::key_tile_bytes(head_dim);
    a.head_dim = head_dim;
    a.scale = 0.088f;
    a.q = {q.data(), rows, head_dim};
    a.visible = visible.data();
    a.p = {p.data(), rows, kernel::chunk_tokens};
    a.max = max.data();
    a.sum = sum.data();
    a.out = {out.data(), rows, head_dim};
    return a;
  }
  template <class K>
  void run(const kernel::AttentionArgs& a) {
    K::template attention_scores<E>(a);
    K::attention_softmax(a);
    K::template attention_values<E>(a);
  }
  /// Attention of `rows` rows over a context: the head whose tiles begin at `first`.
  template <class K>
  void attend(std::size_t rows, std::size_t first, std::size_t context) {
    std::fill_n(total_max.begin(), rows, -std::numeric_limits<float>::infinity());
    const kernel::AttentionState state{total_max.data(), total_sum.data(), {total.data(), rows, head_dim}};
    auto a = args(rows);
    a.ahead = next.data();
    next = chunk_at(first);
    for (std::size_t c = 0; c < context / kernel::chunk_tokens; ++c) {
      chunk = next;
      next = chunk_at(first + (c + 1) * kernel::chunk_tiles);
      run<K>(a);
      K::attention_merge(a, state);
    }
    K::attention_finish(state);
  }
  void check() {
    for (const std::size_t rows : std::initializer_list<std::size_t>{1, 4, 7}) {
      attend<kernel::Scalar>(rows, 0, 512);
      const std::vector<float> expected(total.begin(), total.begin() + rows * head_dim);
      attend<kernel::Highway>(rows, 0, 512);
      if (std::equal(expected.begin(), expected.end(), total.begin())) continue;
      std::fprintf(stderr, "%s: not what the specification says\n", std::string(E::name).c_str());
      std::exit(1);
    }
  }
};

/// One line of JSON per measurement, when asked for.
void record(std::FILE* json, const std::string& element, const char* operation, std::size_t rows,
            std::size_t context, const char* unit, double amount, const bench::Spread& t) {
  if (json == nullptr) return;
  std::fprintf(json,
               "{\"element\": \"%s\", \"operation\": \"%s\", \"rows\": %zu, \"context\": %zu, "
               "\"unit\": \"%s\", \"best\": %.1f, \"median\": %.1f}\n",
               element.c_str(), operation, rows, context, unit, amount / t.best, amount / t.median);
}

template <class E>
void measure_kernels(Bench<E>& bench, std::FILE* json) {
  const std::string element(E::name);
  bench.chunk = bench.chunk_at(0);
  for (const std::size_t rows : std::initializer_list<std::size_t>{1, 4, max_rows}) {
    const auto a = bench.args(rows);
    // One call takes less than a microsecond: many of them are one measurement.
    constexpr std::size_t calls = 64;
    const auto timed = [&](void (*operation)(const kernel::AttentionArgs&) noexcept) {
      return bench::time([&] {
        for (std::size_t i = 0; i < calls; ++i) operation(a);
      });
    };
    const double macs = static_cast<double>(calls * rows * kernel::chunk_tokens * head_dim) / 1e9;
    const auto scores = timed(kernel::Highway::attention_scores<E>);
    const auto values = timed(kernel::Highway::attention_values<E>);
    const auto softmax = timed(kernel::Highway::attention_softmax);
    const double exps = static_cast<double>(calls * rows * kernel::chunk_tokens) / 1e6;
    std::printf("%-12s %4zu | %6.1f %6.1f | %6.1f %6.1f | %6.0f %6.0f\n", element.c_str(), rows,
                macs / scores.best, macs / scores.median, macs / values.best, macs / values.median,
                exps / softmax.best, exps / softmax.median);
    record(json, element, "scores", rows, kernel::chunk_tokens, "GMAC/s", macs, scores);
    record(json, element, "values", rows, kernel::chunk_tokens, "GMAC/s", macs, values);
    record(json, element, "softmax", rows, kernel::chunk_tokens, "M/s", exps, softmax);
  }
  std::fflush(stdout);
}

template <class E>
void measure_contexts(Bench<E>& bench, std::FILE* json) {
  const std::string element(E::name);
  for (const std::size_t rows : std::initializer_list<std::size_t>{4, max_rows}) {
    for (const std::size_t context : std::initializer_list<std::size_t>{256, 1024, 8192}) {
      const std::size_t tiles = context / 16, heads = bench.tile_count / tiles;
      // As many heads as the caches let go of before they come round again; one head after the other is one
      // measurement.
      std::size_t head = 0;
      constexpr std::size_t at_once = 16;
      const auto t = bench::time([&] {
        for (std::size_t i = 0; i < at_once; ++i) {
          bench.template attend<kernel::Highway>(rows, head * tiles, context);
          head = (head + 1) % heads;
        }
      });
      const double bytes = static_cast<double>(at_once * tiles * bench.tile_bytes) / 1e9;
      const double macs = static_cast<double>(at_once * rows * context * head_dim * 2) / 1e9;
      std::printf("%-12s %4zu %6zu | %6.1f %6.1f | %6.1f %6.1f\n", element.c_str(), rows, context,
                  bytes / t.best, bytes / t.median, macs / t.best, macs / t.median);
      record(json, element, "context", rows, context, "GB/s", bytes, t);
      record(json, element, "context", rows, context, "GMAC/s", macs, t);
    }
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string element;
  std::FILE* json = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") != 0) {
      element = argv[i];
    } else if (++i == argc || (json = std::fopen(argv[i], "w")) == nullptr) {
      std::fprintf(stderr, "usage: attention_bench [ELEMENT] [--json FILE], a file that can be written\n");
      return 2;
    }
  }
  const bench::Limits limits = measure_limits();
  std::printf("%s: read %.1f GB/s, float multiply-adds %.0f GMAC/s (one thread)\n", limits.target,
              limits.read_gbs, limits.gops);
  if (json != nullptr) {
    std::fprintf(json, "{\"target\": \"%s\", \"read_gbs\": %.2f, \"float_gmacs\": %.1f}\n", limits.target,
                 limits.read_gbs, limits.gops);
  }
  Concat<format::AllKv, format::TileKv>::for_each([&](auto type) {
    using E = typename decltype(type)::type;
    if (!element.empty() && E::name != element) return;
    Bench<E> bench;
    bench.check();
    std::printf(
        "                  | scores, GMAC/s | values, GMAC/s| softmax, M/s\n"
        "              rows|   best    med  |   best    med |   best    med\n");
    measure_kernels(bench, json);
    std::printf(
        "                         | KV, GB/s      | GMAC/s\n"
        "            rows  context|   best    med |   best    med\n");
    measure_contexts(bench, json);
  });
  if (json != nullptr) std::fclose(json);
}
