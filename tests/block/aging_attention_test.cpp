// SPDX-License-Identifier: Apache-2.0
//
// Attention over keys and values that change with age, beside a softmax in doubles over what each query
// should see.

#include "mica/alloc/aligned.hpp"
#include "mica/base/rng.hpp"
#include "mica/block/detail/aged_view.hpp"
#include "mica/block/detail/attend.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/contiguous.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace mica::test::aging_attention_test {
namespace {

using Storage = kv::Contiguous<alloc::Aligned>;

std::vector<float> random(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 4 - 2);
  return out;
}

/// Two KV heads of 20, four query heads, no rotation.
struct Sequence {
  std::size_t tokens, recent, window;
  block::AttentionConfig layer = {};
  std::vector<float> q, k, v;

  Sequence(std::size_t n, std::size_t keeps, std::size_t sees) : tokens(n), recent(keeps), window(sees) {
    layer.heads = 4;
    layer.kv_heads = 2;
    layer.head_dim = 20;
    layer.rope = block::none;
    if (window != 0) {
      layer.reach = block::Reach::window;
      layer.reach_tokens = window;
    }
    q = random(n * layer.heads * layer.head_dim, 1);
    k = random(n * layer.kv_width(), 2);
    v = random(n * layer.kv_width(), 3);
  }

  /// Heads of one KV head in F16, and the same after they went through the old element a tile at a time.
  template <class Old, bool keys>
  void forms(std::size_t kv_head, std::vector<float>& now, std::vector<float>& old) const {
    const std::size_t d = layer.head_dim;
    now.clear();
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t i = 0; i < d; ++i)
        now.push_back(to_float(to_half((keys ? k : v)[t * layer.kv_width() + kv_head * d + i])));
    }
    old = now;
    std::vector<std::byte> tile(std::max(Old::key_tile_bytes(d), Old::value_tile_bytes(d)));
    for (std::size_t first = 0; first + 16 <= tokens; first += 16) {
      kv::detail::store_tile<keys, Old>(tile.data(), d, now.data() + first * d);
      for (std::size_t slot = 0; slot < 16; ++slot) {
        float* const head = old.data() + (first + slot) * d;
        keys ? Old::load_key(tile.data(), slot, d, head) : Old::load_value(tile.data(), slot, d, head);
      }
    }
  }

  template <class Old>
  [[nodiscard]] std::vector<double> exact() const {
    const std::size_t d = layer.head_dim;
    std::vector<double> out(tokens * layer.q_width());
    std::vector<float> keys, old_keys, values, old_values;
    for (std::size_t h = 0; h < layer.heads; ++h) {
      forms<Old, true>(h / layer.group(), keys, old_keys);
      forms<Old, false>(h / layer.group(), values, old_values);
      for (std::size_t t = 0; t < tokens; ++t) {
        double sum = 0;
        double* const row = &out[t * layer.q_width() + h * d];
        for (std::size_t j = window != 0 && t >= window ? t + 1 - window : 0; j <= t; ++j) {
          // A tile is old when it ends at least `recent` tokens before the end of what the query sees.
          const bool is_old = (j / 16 + 1) * 16 + recent <= t + 1;
          double dot = 0;
          for (std::size_t i = 0; i < d; ++i) {
            dot += static_cast<double>(q[t * layer.q_width() + h * d + i]) *
                   static_cast<double>((is_old ? old_keys : keys)[j * d + i]);
          }
          const double p = std::exp(dot / std::sqrt(static_cast<double>(d)));
          sum += p;
          for (std::size_t i = 0; i < d; ++i)
            row[i] += p * static_cast<double>((is_old ? old_values : values)[j * d + i]);
        }
        for (std::size_t i = 0; i < d; ++i) row[i] /= sum;
      }
    }
    return out;
  }

  template <class K, class Old>
  [[nodiscard]] std::vector<float> attend(std::size_t step, std::size_t threads) const {
    using Elements = kv::Aging<format::F16, Old>;
    const Elements elements(recent);
    const std::size_t d = layer.head_dim, group = layer.group();
    const kv::LayerShape shapes[] = {
        {layer.kv_heads, kv::tile_bytes(elements, d), kv::recent_window(recent), step},
        {layer.kv_heads, kv::tile_bytes(elements.old(), d), window, step}};
    Storage cache(alloc::Aligned{}, shapes, tokens);
    exec::Team team(threads);
    const std::size_t floats = block::AttentionScratch::floats(group, d);
    std::vector<float> scratch(threads * floats), out(tokens * layer.q_width(), NAN);
    std::vector<float> queries = q, keys = k, values = v;
    for (std::size_t pos = 0; pos < tokens; pos += step) {
      const std::size_t n = std::min(step, tokens - pos);
      REQUIRE(cache.reserve(pos + n));
      const auto rows = [&](std::vector<float>& all, std::size_t width) {
        return MatrixView<float>(all.data() + pos * width, n, width);
      };
      block::AgedView<block::KvView<Elements, Storage>> view(elements, cache, 0, pos);
      view.old_layer = 1;
      const block::AttentionContext<decltype(view)> context{.layer = layer,
                                                            .kv = view,
                                                            .q = rows(queries, layer.q_width()),
                                                            .k = rows(keys, layer.kv_width()),
                                                            .v = rows(values, layer.kv_width()),
                                                            .out = rows(out, layer.q_width())};
      block::attend<K>(team, context, [&](std::size_t worker) { return scratch.data() + worker * floats; });
    }
    return out;
  }

  template <class Old>
  void check() const {
    CAPTURE(Old::name);
    CAPTURE(recent);
    CAPTURE(window);
    const auto expected = exact<Old>();
    const auto first = attend<kernel::Scalar, Old>(1, 1);
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::fabs(static_cast<double>(first[i]) - expected[i]));
    CHECK(worst < 3e-4);  // queries of block elements have 15 bits
    for (const std::size_t step : {1u, 7u, 64u, 600u}) {
      for (const std::size_t threads : {1u, 3u}) {
        CAPTURE(step);
        CAPTURE(threads);
        CHECK(attend<kernel::Highway, Old>(step, threads) == first);
      }
    }
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a query sees old tiles in their old form and the others as they came", Old, format::KIVI4,
                   format::KIVI2, format::KVARN4, format::KVARN3, format::KVARN2,
                   format::Rotated<format::Q4_0>, format::Rotated<format::Q4_S>, format::Q8_0, format::BF16) {
  Sequence(600, 20, 0).template check<Old>();
  Sequence(100, 1, 0).template check<Old>();
  Sequence(330, 300, 0).template check<Old>();
  Sequence(400, 64, 270).template check<Old>();
}

}  // namespace mica::test::aging_attention_test
