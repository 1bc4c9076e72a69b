// SPDX-License-Identifier: Apache-2.0

#include "mica/block/attention.hpp"

#include "mica/alloc/aligned.hpp"
#include "mica/base/rng.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/segmented.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace mica::test {
namespace {

using Floats = kv::Fixed<format::F32>;

/// Queries, keys and values of a sequence, unrotated.
struct Sequence {
  block::LayerConfig layer;
  std::size_t tokens;
  std::vector<float> q, k, v;  // (tokens, heads * head_dim), (tokens, kv_heads * head_dim) twice

  Sequence(block::LayerConfig l, std::size_t n)
      : layer(l),
        tokens(n),
        q(random(n * l.q_width(), 1)),
        k(random(n * l.kv_width(), 2)),
        v(random(n * l.kv_width(), 3)) {}

  static std::vector<float> random(std::size_t n, std::uint64_t seed) {
    CounterRng rng(seed);
    std::vector<float> out(n);
    for (float& x : out) x = static_cast<float>(rng.uniform() * 4 - 2);
    return out;
  }

  /// What attention is, in doubles.
  [[nodiscard]] std::vector<double> exact() const {
    const std::size_t d = layer.head_dim;
    std::vector<double> out(q.size());
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t h = 0; h < layer.heads; ++h) {
        const std::size_t kv_head = h / layer.group();
        const float* const query = &q[t * layer.q_width() + h * d];
        std::vector<double> p(t + 1);
        double sum = 0;
        for (std::size_t j = 0; j <= t; ++j) {
          double dot = 0;
          for (std::size_t i = 0; i < d; ++i)
            dot += static_cast<double>(query[i]) * k[j * layer.kv_width() + kv_head * d + i];
          sum += p[j] = std::exp(dot / std::sqrt(static_cast<double>(d)));
        }
        for (std::size_t j = 0; j <= t; ++j) {
          for (std::size_t i = 0; i < d; ++i) {
            out[t * layer.q_width() + h * d + i] += p[j] / sum * v[j * layer.kv_width() + kv_head * d + i];
          }
        }
      }
    }
    return out;
  }

  /// The same by blocks, `step` tokens at a time.
  template <class Storage, class E>
  [[nodiscard]] std::vector<float> attend(E& executor, std::size_t step) const {
    const Floats elements;
    const kv::LayerShape shape{layer.kv_heads, kv::tile_bytes(elements, layer.head_dim)};
    Storage cache(alloc::Aligned{}, std::span(&shape, 1), tokens);
    REQUIRE(cache.reserve(tokens));
    std::vector<float> queries = q, keys = k, out(q.size());
    const std::vector<float> ones(step, 1.0f), zeros(step, 0.0f);  // angles of nothing
    const std::size_t floats = block::AttentionScratch::floats(layer.group(), layer.head_dim);
    std::vector<float> scratch(executor.workers() * floats);
    for (std::size_t pos = 0; pos < tokens; pos += step) {
      const std::size_t n = std::min(step, tokens - pos);
      const auto rows = [&](auto& all, std::size_t width) {
        return MatrixView(all.data() + pos * width, n, width);
      };
      std::vector<float> values = v;
      const block::AttentionContext<Floats, Storage> context{.layer = layer,
                                                             .pos = pos,
                                                             .q = rows(queries, layer.q_width()),
                                                             .k = rows(keys, layer.kv_width()),
                                                             .v = rows(values, layer.kv_width()),
                                                             .out = rows(out, layer.q_width()),
                                                             .cos = {ones.data(), n, 1},
                                                             .sin = {zeros.data(), n, 1},
                                                             .elements = elements,
                                                             .cache = cache};
      block::attend<kernel::Scalar>(executor, context,
                                    [&](std::size_t worker) { return scratch.data() + worker * floats; });
    }
    return out;
  }
};

}  // namespace

TEST_CASE("attention by tiles and chunks is attention") {
  exec::Inline executor;
  for (const block::LayerConfig& layer : {block::LayerConfig{3, 3, 8, 0}, {6, 2, 5, 0}, {4, 1, 16, 0}}) {
    CAPTURE(layer.heads);
    const Sequence sequence(layer, 530);
    const auto exact = sequence.exact();
    const auto out = sequence.attend<kv::Contiguous<alloc::Aligned>>(executor, 530);
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) worst = std::max(worst, std::fabs(out[i] - exact[i]));
    CHECK(worst < 2e-6);
  }
}

TEST_CASE(
    "attention gives the same bits for any step, storage and team, and for more heads than a unit of work "
    "has rows") {
  exec::Inline executor;
  exec::Team team(3);
  for (const block::LayerConfig& layer : {block::LayerConfig{6, 2, 6, 0}, {70, 1, 6, 0}}) {
    CAPTURE(layer.heads);
    const Sequence sequence(layer, 300);
    using Contiguous = kv::Contiguous<alloc::Aligned>;
    using Segmented = kv::Segmented<alloc::Aligned>;
    const auto expected = sequence.attend<Contiguous>(executor, 300);
    CHECK(sequence.attend<Contiguous>(executor, 1) == expected);
    CHECK(sequence.attend<Contiguous>(executor, 37) == expected);
    CHECK(sequence.attend<Segmented>(executor, 300) == expected);
    CHECK(sequence.attend<Segmented>(team, 300) == expected);
    CHECK(sequence.attend<Segmented>(team, 5) == expected);
  }
}

TEST_CASE("the scratch of a worker holds its parts and no more") {
  for (const std::size_t group : {1u, 4u, 63u, 64u, 65u, 200u}) {
    for (const std::size_t head_dim : {1u, 10u, 64u, 257u, 512u}) {
      CAPTURE(group);
      CAPTURE(head_dim);
      std::vector<float> memory(block::AttentionScratch::floats(group, head_dim));
      const std::size_t rows = block::rows_for(group);
      const block::AttentionScratch scratch(memory.data(), rows, head_dim);
      const auto* const end = reinterpret_cast<const float*>(scratch.visible + rows);
      CHECK(end <= memory.data() + memory.size());
      CHECK(scratch.q.data() >= scratch.p.data() + rows * 256);
      CHECK(scratch.out.data() >= scratch.q.data() + rows * head_dim);
      CHECK(scratch.state.data() >= scratch.out.data() + rows * head_dim);
      CHECK(scratch.max >= scratch.state.data() + rows * head_dim);
    }
  }
}

}  // namespace mica::test
