// SPDX-License-Identifier: Apache-2.0
//
// usage: element_bench [--json FILE] [NAME...]
//
// How fast a token's attention reads each KV element, beside F16: layers of 8 KV heads of 128 with groups of
// 4 heads, as many of them as no cache of the machine holds, for 4,096 and 16,384 tokens, one thread.
// Elements are the same for keys and values; those that only old tokens can have leave the last tile in F16.
// All elements, or those that are named.
// An element and F16
// take turns, so that whatever else the machine does falls on both; the median of fifteen ratios is given,
// and the half between quartiles, in processor time. Before,
// the answer is compared bit by bit with that of the specification.
#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica/block/detail/aged_view.hpp"
#include "mica/block/detail/attend.hpp"
#include "mica/exec/inline.hpp"
#include "mica/format/lists.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/aging.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/elements.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t kv_heads = 8, heads = 32, head_dim = 128, turns = 15;
constexpr std::size_t min_bytes = std::size_t{256} << 20;  // more than caches hold

/// Layers of noise in one element, and a token that attends to them.
template <KvOldElement E>
class Cache {
 public:
  static constexpr bool old = KvTileElement<E>;
  using Elements = std::conditional_t<old, kv::Aging<format::F16, E>, kv::ElementsOf<E>>;
  explicit Cache(std::size_t tokens)
      : tokens_(tokens),
        layers_(std::max<std::size_t>(1, min_bytes / (tokens / 16 * kv_heads * tile_bytes()))),
        storage_({}, shapes(layers_), tokens) {
    if (!storage_.reserve(tokens)) std::abort();
    CounterRng rng(1);
    std::vector<std::byte> tile(tile_bytes());
    std::vector<float> noise(16 * head_dim);
    for (std::size_t t = 0; t < 61; ++t) {
      for (float& v : noise) v = static_cast<float>(rng.uniform() - 0.5);
      kv::detail::store_tile<true, E>(tile.data(), head_dim, noise.data());
      for (float& v : noise) v = static_cast<float>(rng.uniform() - 0.5);
      kv::detail::store_tile<false, E>(tile.data() + E::key_tile_bytes(head_dim), head_dim, noise.data());
      for (std::size_t at = t; at < layers_ * kv_heads * (tokens / 16); at += 61) {
        const std::size_t in_layer = at % (kv_heads * (tokens / 16));
        std::memcpy(
            storage_.run(at / (kv_heads * (tokens / 16)), in_layer / (tokens / 16), in_layer % (tokens / 16))
                .data,
            tile.data(), tile.size());
      }
    }
    for (std::size_t at = 0; old && at < layers_ * kv_heads; ++at) {
      const kv::Run last = storage_.run(layers_ + at / kv_heads, at % kv_heads, tokens / 16 - 1);
      std::memset(last.data, 0, kv::tile_bytes(Elements(), head_dim));
    }
    for (float& v : q_) v = static_cast<float>(rng.uniform() - 0.5);
    layer_.heads = heads;
    layer_.kv_heads = kv_heads;
    layer_.head_dim = head_dim;
    layer_.rope = block::none;
    layer_.kv_source = 0;  // it only reads
  }

  template <Kernels K>
  std::vector<float> attend(std::size_t layer) {
    const std::vector<float> q = q_;
    using Plain = block::KvView<Elements, kv::Contiguous<>>;
    using View = std::conditional_t<old, block::AgedView<Plain>, Plain>;
    View view(elements_, storage_, old ? layers_ + layer : layer, tokens_ - 1);
    if constexpr (old) view.old_layer = layer;
    const block::AttentionContext<View> context{.layer = layer_,
                                                .kv = view,
                                                .q = {q_.data(), 1, heads * head_dim},
                                                .out = {out_.data(), 1, heads * head_dim}};
    block::attend<K>(executor_, context, [&](std::size_t) { return scratch_.data(); });
    q_ = q;
    return out_;
  }
  /// Seconds of a layer.
  double turn() {
    const double begin = bench::now();
    for (std::size_t l = 0; l < layers_; ++l) attend<kernel::Highway>(l);
    return (bench::now() - begin) / static_cast<double>(layers_);
  }
  static std::size_t tile_bytes() {
    return round_up<std::size_t>(E::key_tile_bytes(head_dim) + E::value_tile_bytes(head_dim), 64);
  }

 private:
  /// Layers of E, and as many of which the last tile is read in F16.
  static std::vector<kv::LayerShape> shapes(std::size_t layers) {
    std::vector<kv::LayerShape> out(layers, {kv_heads, tile_bytes(), 0, 1});
    const kv::LayerShape recent{kv_heads, kv::tile_bytes(Elements(), head_dim), kv::recent_window(1), 1};
    if (old) out.insert(out.end(), layers, recent);
    return out;
  }
  static Elements elements() {
    if constexpr (old) {
      return Elements(1);
    } else {
      return {};
    }
  }

  std::size_t tokens_;
  std::size_t layers_;
  kv::Contiguous<> storage_;
  block::AttentionConfig layer_;
  Elements elements_ = elements();
  exec::Inline executor_;
  std::vector<float> q_ = std::vector<float>(heads * head_dim);
  std::vector<float> out_ = std::vector<float>(heads * head_dim);
  std::vector<float> scratch_ =
      std::vector<float>(block::AttentionScratch::floats(heads / kv_heads, head_dim));
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <KvOldElement E>
void measure(std::size_t tokens, Cache<format::F16>& f16, std::FILE* json) {
  Cache<E> cache(tokens);
  if (cache.template attend<kernel::Highway>(0) != cache.template attend<kernel::Scalar>(0)) {
    std::fprintf(stderr, "%s: other bits than the specification's\n", std::string(E::name).c_str());
    std::exit(1);
  }
  std::vector<double> own, plain, ratios;
  for (std::size_t i = 0; i < turns; ++i) {
    own.push_back(cache.turn());
    plain.push_back(f16.turn());
    ratios.push_back(plain.back() / own.back());
  }
  std::sort(ratios.begin(), ratios.end());
  const double bytes = static_cast<double>(tokens / 16 * kv_heads * Cache<E>::tile_bytes());
  const double ratio = ratios[turns / 2];
  std::printf("%-12s %6zu | %8.1f | %6.2f GB/s | %5.2f (%.2f to %.2f)\n", std::string(E::name).c_str(),
              tokens, median(own) * 1e6, bytes / median(own) / 1e9, ratio, ratios[turns / 4],
              ratios[turns - 1 - turns / 4]);
  std::fflush(stdout);
  if (json == nullptr) return;
  std::fprintf(json,
               "{\"element\": \"%s\", \"tokens\": %zu, \"us_a_layer\": %.1f, \"f16_us_a_layer\": %.1f, "
               "\"speed_beside_f16\": %.3f, \"from\": %.3f, \"to\": %.3f}\n",
               std::string(E::name).c_str(), tokens, median(own) * 1e6, median(plain) * 1e6, ratio,
               ratios[turns / 4], ratios[turns - 1 - turns / 4]);
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* json = nullptr;
  std::vector<std::string_view> names(argv + 1, argv + argc);
  if (!names.empty() && names[0] == "--json") {
    json = names.size() > 1 ? std::fopen(names[1].data(), "w") : nullptr;
    if (json == nullptr) {
      std::fprintf(stderr, "usage: element_bench [--json FILE] [NAME...], a file that can be written\n");
      return 2;
    }
    names.erase(names.begin(), names.begin() + 2);
  }
  std::printf("element      tokens | us/layer |     read    | speed beside F16\n");
  for (const std::size_t tokens : {std::size_t{4096}, std::size_t{16384}}) {
    Cache<format::F16> f16(tokens);
    Concat<format::AllKv, format::TileKv>::for_each([&](auto type) {
      using E = typename decltype(type)::type;
      if (names.empty() || std::find(names.begin(), names.end(), E::name) != names.end())
        measure<E>(tokens, f16, json);
    });
  }
  if (json != nullptr) std::fclose(json);
}
