// SPDX-License-Identifier: Apache-2.0
//
// usage: store_bench [--json FILE]
//
// Nanoseconds to store a number of keys and values in each element that tokens are stored in one by one: by the
// element itself, and by the kernels of Highway where they have the element (kernel::Stores). Tiles of 16 tokens
// of heads of 128, medians, processor time of one thread. Before, both must have written the same bytes.
#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica/format/lists.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t head_dim = 128, tokens = format::tile_tokens;

/// The keys and values of a tile.
template <class E>
struct Tile {
  std::vector<std::byte> bytes =
      std::vector<std::byte>(E::key_tile_bytes(head_dim) + E::value_tile_bytes(head_dim));

  template <class Store>
  void fill(const std::vector<float>& x, Store&& store) {
    const MatrixView<const float> heads(x.data(), tokens, head_dim);
    store(kernel::StoreArgs{bytes.data(), 0, heads, false});
    store(kernel::StoreArgs{bytes.data() + E::key_tile_bytes(head_dim), 0, heads, true});
  }
};

/// Nanoseconds a number.
template <class E, class Store>
double measure(const std::vector<float>& x, Store&& store) {
  Tile<E> tile;
  constexpr std::size_t times = 20;
  const bench::Spread found = bench::time(
      [&] {
        for (std::size_t i = 0; i < times; ++i) tile.fill(x, store);
      },
      0.2);
  return found.median * 1e9 / static_cast<double>(times * 2 * tokens * head_dim);
}

template <KvElement E>
void compare(const std::vector<float>& x, std::FILE* json) {
  const std::string name(E::name);
  const double own = measure<E>(x, kernel::scalar::store<E>);
  double kernels = 0;
  if constexpr (kernel::Stores<kernel::Highway, E>) {
    Tile<E> expected, found;
    expected.fill(x, kernel::scalar::store<E>);
    found.fill(x, kernel::Highway::store<E>);
    if (expected.bytes != found.bytes) {
      std::fprintf(stderr, "%s: other bytes than the element's\n", name.c_str());
      std::exit(1);
    }
    kernels = measure<E>(x, kernel::Highway::store<E>);
    std::printf("%-16s %7.2f %7.2f\n", name.c_str(), own, kernels);
  } else {
    std::printf("%-16s %7.2f\n", name.c_str(), own);
  }
  if (json == nullptr) return;
  std::fprintf(json, "{\"element\": \"%s\", \"own_ns\": %.3f", name.c_str(), own);
  if (kernels > 0) std::fprintf(json, ", \"highway_ns\": %.3f", kernels);
  std::fprintf(json, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* json = nullptr;
  if (argc > 1) {
    json = argc == 3 && std::string_view(argv[1]) == "--json" ? std::fopen(argv[2], "w") : nullptr;
    if (json == nullptr) {
      std::fprintf(stderr, "usage: store_bench [--json FILE], a file that can be written\n");
      return 2;
    }
  }
  CounterRng rng(1);
  std::vector<float> x(tokens * head_dim);
  for (float& v : x)
    v = static_cast<float>(rng.uniform() + rng.uniform() + rng.uniform() + rng.uniform() - 2);
  std::printf("nanoseconds a number: by the element, by Highway (%s)\n",
              std::string(kernel::highway::instruction_sets().front().name).c_str());
  format::AllKv::for_each([&](auto type) { compare<typename decltype(type)::type>(x, json); });
  if (json != nullptr) std::fclose(json);
}
