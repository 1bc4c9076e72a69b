// SPDX-License-Identifier: Apache-2.0
//
// usage: attention_bench [ELEMENT]
//
// One thread, one chunk of 256 tokens, heads of 128, for 1 query row (a head of its own), 4 (a group that shares a KV
// head) and 32 (eight tokens of such a group). Each result is compared with the specification first. GMAC/s of scores
// and of values, and millions of exponentials per second in the softmax. Best and median of half a second.

#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"

#include <string>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t head_dim = 128;
constexpr std::size_t max_rows = 32;

template <class E>
struct Bench {
  bench::Pages<std::byte> tiles{kernel::chunk_tiles *
                                (E::key_tile_bytes(head_dim) + E::value_tile_bytes(head_dim))};
  std::vector<const std::byte*> pointers;
  std::vector<kernel::Visible> visible{max_rows, {0, 256}};
  bench::Pages<float> q{max_rows * head_dim};
  bench::Pages<float> p{max_rows * kernel::chunk_tokens};
  bench::Pages<float> out{max_rows * head_dim};
  std::vector<float> max = std::vector<float>(max_rows), sum = std::vector<float>(max_rows);

  Bench() {
    CounterRng rng(1);
    const auto noise = [&] { return static_cast<float>(rng.uniform() - 0.5); };
    for (float& v : q) v = noise();
    const std::size_t bytes = E::key_tile_bytes(head_dim) + E::value_tile_bytes(head_dim);
    std::vector<float> head(head_dim);
    for (std::size_t t = 0; t < kernel::chunk_tiles; ++t) {
      std::byte* const tile = tiles.data() + t * bytes;
      pointers.push_back(tile);
      for (std::size_t slot = 0; slot < 16; ++slot) {
        for (float& v : head) v = noise();
        E::store_key(tile, slot, head_dim, head.data());
        E::store_value(tile + E::key_tile_bytes(head_dim), slot, head_dim, head.data());
      }
    }
  }
  kernel::AttentionArgs args(std::size_t rows) {
    kernel::AttentionArgs a;
    a.tiles = pointers.data();
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
  void run(std::size_t rows) {
    const auto a = args(rows);
    K::template attention_scores<E>(a);
    K::attention_softmax(a);
    K::template attention_values<E>(a);
  }
  void check() {
    bench::Pages<float> expected(out.size());
    for (const std::size_t rows : std::initializer_list<std::size_t>{1, 4, 7}) {
      run<kernel::Scalar>(rows);
      std::copy(out.begin(), out.end(), expected.begin());
      run<kernel::Highway>(rows);
      if (std::equal(expected.begin(), expected.end(), out.begin())) continue;
      std::fprintf(stderr, "%s: not what the specification says\n", std::string(E::name).c_str());
      std::exit(1);
    }
  }
};

template <class E>
void measure() {
  Bench<E> bench;
  bench.check();
  for (const std::size_t rows : std::initializer_list<std::size_t>{1, 4, 32}) {
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
    std::printf("%-5s %4zu | %6.1f %6.1f | %6.1f %6.1f | %6.0f %6.0f\n", std::string(E::name).c_str(), rows,
                macs / scores.best, macs / scores.median, macs / values.best, macs / values.median,
                exps / softmax.best, exps / softmax.median);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::printf(
      "           | scores, GMAC/s | values, GMAC/s| softmax, M/s\n"
      "       rows|   best    med  |   best    med |   best    med\n");
  format::AllKv::for_each([&](auto type) {
    using E = typename decltype(type)::type;
    if (argc < 2 || E::name == argv[1]) measure<E>();
  });
}
