// SPDX-License-Identifier: Apache-2.0
//
// usage: kv_element_bench [--json FILE]
//
// Every KV element, heads of 64: bits per number, the rms error of normal numbers relative to their rms, the
// same where one number of every head is 20 times larger, and microseconds that one thread takes to store a
// key, best and median of half a second. Elements that store whole tiles have a row for keys and one for
// values; microseconds are those of one token.

#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica/format/lists.hpp"

#include <cmath>
#include <numbers>
#include <string>
#include <string_view>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t head_dim = 64;
constexpr std::size_t heads = 2000;

std::vector<float> normal_heads(float outlier) {
  CounterRng rng(1);
  std::vector<float> out(heads * head_dim);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
    out[i] = static_cast<float>(radius * std::cos(2 * std::numbers::pi * rng.uniform()));
    if (i % head_dim == 5) out[i] *= outlier;
  }
  return out;
}

template <class E>
double error(const std::vector<float>& values) {
  std::vector<std::byte> tile(E::key_tile_bytes(head_dim));
  double missed = 0, all = 0;
  float back[head_dim];
  for (std::size_t at = 0; at < values.size(); at += head_dim) {
    E::store_key(tile.data(), 3, head_dim, values.data() + at);
    E::load_key(tile.data(), 3, head_dim, back);
    for (std::size_t i = 0; i < head_dim; ++i) {
      const double x = values[at + i], miss = back[i] - x;
      missed += miss * miss;
      all += x * x;
    }
  }
  return std::sqrt(missed / all);
}

/// The same of sixteen heads at a time.
template <class E, bool keys>
double tile_error(const std::vector<float>& values) {
  std::vector<std::byte> tile(std::max(E::key_tile_bytes(head_dim), E::value_tile_bytes(head_dim)));
  double missed = 0, all = 0;
  float back[head_dim];
  for (std::size_t at = 0; at + 16 * head_dim <= values.size(); at += 16 * head_dim) {
    keys ? E::store_keys(tile.data(), head_dim, values.data() + at)
         : E::store_values(tile.data(), head_dim, values.data() + at);
    for (std::size_t i = 0; i < 16 * head_dim; ++i) {
      if (i % head_dim == 0) {
        keys ? E::load_key(tile.data(), i / head_dim, head_dim, back)
             : E::load_value(tile.data(), i / head_dim, head_dim, back);
      }
      const double x = values[at + i], miss = back[i % head_dim] - x;
      missed += miss * miss;
      all += x * x;
    }
  }
  return std::sqrt(missed / all);
}

/// Seconds that 64 heads take.
void report(const std::string& name, std::size_t tile_bytes, double normal, double peaked,
            const bench::Spread& t, std::FILE* json) {
  const double bits = static_cast<double>(8 * tile_bytes) / (16 * head_dim);
  std::printf("| %-12s | %6.3f | %.5f | %.5f | %6.2f | %6.2f |\n", name.c_str(), bits, normal, peaked,
              t.best / 64 * 1e6, t.median / 64 * 1e6);
  std::fflush(stdout);
  if (json == nullptr) return;
  std::fprintf(json,
               "{\"element\": \"%s\", \"bits\": %.3f, \"error\": %.5f, \"error_with_outliers\": %.5f, "
               "\"store_us_best\": %.2f, \"store_us_median\": %.2f}\n",
               name.c_str(), bits, normal, peaked, t.best / 64 * 1e6, t.median / 64 * 1e6);
}

template <class E>
void measure(const std::vector<float>& plain, const std::vector<float>& outliers, std::FILE* json) {
  std::vector<std::byte> tile(E::key_tile_bytes(head_dim));
  const auto t = bench::time([&] {
    for (std::size_t i = 0; i < 64; ++i)
      E::store_key(tile.data(), i % 16, head_dim, plain.data() + i * head_dim);
  });
  report(std::string(E::name), tile.size(), error<E>(plain), error<E>(outliers), t, json);
}

template <class E, bool keys>
void measure_tiles(const std::vector<float>& plain, const std::vector<float>& outliers, std::FILE* json) {
  std::vector<std::byte> tile(keys ? E::key_tile_bytes(head_dim) : E::value_tile_bytes(head_dim));
  const auto t = bench::time([&] {
    for (std::size_t i = 0; i < 64; i += 16) {
      const float* const values = plain.data() + i * head_dim;
      keys ? E::store_keys(tile.data(), head_dim, values) : E::store_values(tile.data(), head_dim, values);
    }
  });
  report(std::string(E::name) + (keys ? " keys" : " values"), tile.size(), tile_error<E, keys>(plain),
         tile_error<E, keys>(outliers), t, json);
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* const json =
      argc == 3 && std::string_view(argv[1]) == "--json" ? std::fopen(argv[2], "w") : nullptr;
  if (json != nullptr) {
    std::fprintf(
        json,
        "{\"command\": \"kv_element_bench --json FILE\", \"clock\": \"processor time of one thread\"}\n");
  }
  const auto plain = normal_heads(1), outliers = normal_heads(20);
  std::printf("| element      |   bits |   error | outlier |  us best|  median|\n");
  format::AllKv::for_each([&](auto type) { measure<typename decltype(type)::type>(plain, outliers, json); });
  format::TileKv::for_each([&](auto type) {
    measure_tiles<typename decltype(type)::type, true>(plain, outliers, json);
    measure_tiles<typename decltype(type)::type, false>(plain, outliers, json);
  });
  if (json != nullptr) std::fclose(json);
}
