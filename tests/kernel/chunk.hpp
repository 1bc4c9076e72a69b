// SPDX-License-Identifier: Apache-2.0
//
// Attention over one chunk, computed by the specification and by other kernels.

#pragma once

#include "kernel/guarded.hpp"
#include "kernel/targets.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"

#include <limits>
#include <memory>
#include <type_traits>

namespace mica::test {

/// Tiles that end at a guard page, queries, and everything the kernels write, in two copies.
template <class E>
struct Chunk {
  std::size_t head_dim;
  float softcap = 0;
  bool adds = false;   // values to outputs of 7
  bool fast8 = false;  // integers of one byte
  std::vector<kernel::Visible> visible;
  std::vector<std::unique_ptr<Guarded<std::byte>>> tiles;
  std::vector<const std::byte*> pointers;
  Guarded<float> q;

  struct Result {
    std::vector<float> p, max, sum, out, total_max, total_sum, total;
  };

  Chunk(std::size_t dim, std::vector<kernel::Visible> rows, CounterRng& rng)
      : head_dim(dim),
        visible(std::move(rows)),
        pointers(kernel::chunk_tiles, nullptr),
        q(visible.size() * dim) {
    fill_noise(q, rng, 2);
    for (std::size_t t = 0; t < kernel::chunk_tiles; ++t) {
      bool seen = false;
      for (const kernel::Visible& v : visible)
        seen = seen || (!v.empty() && v.first < 16 * (t + 1) && v.last > 16 * t);
      if (!seen) continue;  // a null tile
      tiles.push_back(
          std::make_unique<Guarded<std::byte>>(E::key_tile_bytes(dim) + E::value_tile_bytes(dim)));
      fill(*tiles.back(), t, rng);
      pointers[t] = tiles.back()->data();
    }
  }

  /// Slots that no row sees keep bytes of NaNs, unless the element stores whole tiles.
  void fill(Guarded<std::byte>& tile, std::size_t t, CounterRng& rng) {
    std::fill(tile.begin(), tile.end(), std::byte{0xFF});
    if constexpr (KvElement<E>) {
      fill_slots(tile, t, rng);
    } else {
      std::vector<float> heads(16 * head_dim);
      fill_noise(heads, rng);
      E::store_keys(tile.data(), head_dim, heads.data());
      fill_noise(heads, rng);
      E::store_values(tile.data() + E::key_tile_bytes(head_dim), head_dim, heads.data());
    }
  }
  void fill_slots(Guarded<std::byte>& tile, std::size_t t, CounterRng& rng) {
    std::vector<float> head(head_dim);
    for (std::size_t slot = 0; slot < 16; ++slot) {
      bool seen = false;
      for (const kernel::Visible& v : visible)
        seen = seen || (v.first <= 16 * t + slot && 16 * t + slot < v.last);
      if (!seen) continue;
      fill_noise(head, rng);
      E::store_key(tile.data(), slot, head_dim, head.data());
      fill_noise(head, rng);
      E::store_value(tile.data() + E::key_tile_bytes(head_dim), slot, head_dim, head.data());
    }
  }

  /// All five kernels; the state starts empty or with a chunk in it.
  template <class K>
  Result run(bool empty_state) {
    const std::size_t n = visible.size();
    Result r;
    r.p.assign(n * kernel::chunk_tokens, 7.0f);
    for (auto* v : {&r.max, &r.sum, &r.total_max, &r.total_sum}) v->assign(n, 0.25f);
    if (empty_state) r.total_max.assign(n, -std::numeric_limits<float>::infinity());
    r.out.assign(n * head_dim, 7.0f);
    r.total.assign(n * head_dim, 0.5f);
    kernel::AttentionArgs a;
    a.tiles = pointers.data();
    a.value_offset = E::key_tile_bytes(head_dim);
    a.head_dim = head_dim;
    a.scale = 0.37f;
    a.q = {q.data(), n, head_dim};
    a.visible = visible.data();
    a.p = {r.p.data(), n, kernel::chunk_tokens};
    a.max = r.max.data();
    a.sum = r.sum.data();
    a.out = {r.out.data(), n, head_dim};
    a.softcap = softcap;
    a.adds = adds;
    a.fast8 = fast8;
    std::vector<const std::byte*> ahead(pointers.rbegin(), pointers.rend());  // a hint changes nothing
    a.ahead = ahead.data();
    const kernel::AttentionState state{r.total_max.data(), r.total_sum.data(), {r.total.data(), n, head_dim}};
    K::template attention_scores<E>(a);
    K::attention_softmax(a);
    K::template attention_values<E>(a);
    K::attention_merge(a, state);
    K::attention_finish(state);
    return r;
  }

  /// K gives the bits of the specification.
  template <class K>
  void check_kernels() {
    for (const bool empty_state : {true, false}) {
      INFO(E::name << ", head_dim " << head_dim << ", rows " << visible.size() << ", sees "
                   << visible[0].first << " to " << visible[0].last << ", fast8 " << fast8);
      const Result expected = run<kernel::Scalar>(empty_state), actual = run<K>(empty_state);
      const auto equal = [](const std::vector<float>& a, const std::vector<float>& b) {
        return differences(a.data(), b.data(), a.size()) == 0;
      };
      CHECK(equal(expected.p, actual.p));
      CHECK(equal(expected.max, actual.max));
      CHECK(equal(expected.sum, actual.sum));
      CHECK(equal(expected.out, actual.out));
      CHECK(equal(expected.total, actual.total));
      CHECK(equal(expected.total_sum, actual.total_sum));
    }
  }
  void check() {
    for_each_target([&] { check_kernels<kernel::Highway>(); });
    if (!std::is_same_v<E, format::Q8_0>) return;
    fast8 = true;
    for_each_target([&] { check_kernels<kernel::Highway>(); });
    fast8 = false;
  }
};

}  // namespace mica::test
