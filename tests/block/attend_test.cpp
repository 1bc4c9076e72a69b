// SPDX-License-Identifier: Apache-2.0

#include "mica/block/detail/attend.hpp"

#include "mica/alloc/aligned.hpp"
#include "mica/base/rng.hpp"
#include "mica/block/rope.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/segmented.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace mica::test::attend_test {
namespace {

using block::AttentionConfig;
using block::HeadNorm;
using block::Reach;
using Floats = kv::Fixed<format::F32>;
using Contiguous = kv::Contiguous<alloc::Aligned>;
using Segmented = kv::Segmented<alloc::Aligned>;

constexpr float epsilon = 1e-5f;

std::vector<float> random(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 4 - 2);
  return out;
}

/// One head in doubles, and what is done to it before attention.
struct ExactHead {
  std::vector<double> x;  // (head_dim)

  ExactHead(const float* values, std::size_t n) : x(values, values + n) {}

  void norm(const float* weight) {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double factor =
        1 / std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(epsilon));
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] *= factor * (weight == nullptr ? 1.0 : static_cast<double>(weight[i]));
    }
  }
  void rotate(const block::RopeConfig& rope, std::size_t pos) {
    for (std::size_t i = 0; i < rope.dims / 2; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.dims);
      const double angle = static_cast<double>(pos) * std::pow(rope.base, exponent);
      const bool halves = rope.pairs == kernel::RopePairs::halves;
      double &a = x[halves ? i : 2 * i], &b = x[halves ? i + rope.dims / 2 : 2 * i + 1];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
};

/// Queries, keys and values of a sequence as projections leave them, and the vectors of the layer.
struct Sequence {
  AttentionConfig layer;
  std::size_t tokens;
  block::RopeConfig rope;
  std::vector<float> q, k, v;  // (tokens, heads * q_stride), (tokens, kv_heads * head_dim) twice
  std::vector<float> q_norm, k_norm, sinks;

  Sequence(AttentionConfig l, std::size_t n)
      : layer(l),
        tokens(n),
        q(random(n * l.heads * l.q_stride(), 1)),
        k(random(n * l.kv_width(), 2)),
        v(random(n * l.kv_width(), 3)),
        q_norm(random(l.head_dim, 4)),
        k_norm(random(l.head_dim, 5)),
        sinks(random(l.heads, 6)) {
    rope.pairs = kernel::RopePairs::halves;
    rope.dims = l.head_dim / 2 / 2 * 2;  // a part of the head
  }

  /// A head of queries or keys at a position, ready for its dot product.
  [[nodiscard]] std::vector<double> turned(const float* values, std::size_t pos, const float* weight) const {
    ExactHead head(values, layer.head_dim);
    if (layer.head_norm == HeadNorm::weighted) head.norm(weight);
    if (layer.rotates()) {
      head.rotate(rope, pos);
      if (layer.head_norm == HeadNorm::plain_after_rope) head.norm(nullptr);
    }
    return head.x;
  }
  [[nodiscard]] double score(const std::vector<double>& query, const std::vector<double>& key,
                             std::size_t pos) const {
    double dot = 0;
    for (std::size_t i = 0; i < query.size(); ++i) dot += query[i] * key[i];
    if (layer.position_scale != 0) {
      const double steps = std::floor(static_cast<double>(pos + layer.position_offset) /
                                      static_cast<double>(layer.position_step));
      dot *= 1 + static_cast<double>(layer.position_scale) * std::log(1 + steps);
    }
    dot *= layer.attention_scale != 0 ? static_cast<double>(layer.attention_scale)
                                      : 1 / std::sqrt(static_cast<double>(layer.head_dim));
    const auto cap = static_cast<double>(layer.attention_softcap);
    return cap == 0 ? dot : cap * std::tanh(dot / cap);
  }
  [[nodiscard]] bool sees(std::size_t pos, std::size_t other) const {
    if (other > pos) return false;
    if (layer.reach == Reach::window) return pos - other < layer.reach_tokens;
    if (layer.reach == Reach::chunk) return pos / layer.reach_tokens == other / layer.reach_tokens;
    return true;
  }

  /// What attention is, in doubles: (tokens, heads * head_dim).
  [[nodiscard]] std::vector<double> exact() const {
    std::vector<double> out(tokens * layer.q_width());
    for (std::size_t kv_head = 0; kv_head < layer.kv_heads; ++kv_head) {
      std::vector<std::vector<double>> keys, values;
      for (std::size_t t = 0; t < tokens; ++t) {
        const std::size_t at = t * layer.kv_width() + kv_head * layer.head_dim;
        keys.push_back(turned(&k[at], t, k_norm.data()));
        ExactHead value(&v[at], layer.head_dim);
        if (layer.v_norm) value.norm(nullptr);
        values.push_back(value.x);
      }
      for (std::size_t h = kv_head * layer.group(); h < (kv_head + 1) * layer.group(); ++h) {
        for (std::size_t t = 0; t < tokens; ++t) exact_row(h, t, keys, values, out);
      }
    }
    return out;
  }
  void exact_row(std::size_t h, std::size_t t, const std::vector<std::vector<double>>& keys,
                 const std::vector<std::vector<double>>& values, std::vector<double>& out) const {
    const std::size_t d = layer.head_dim;
    const float* const query = &q[(t * layer.heads + h) * layer.q_stride()];
    const auto ready = turned(query, t, q_norm.data());
    double sum = layer.sinks ? std::exp(static_cast<double>(sinks[h])) : 0;
    double* const row = &out[t * layer.q_width() + h * d];
    for (std::size_t j = 0; j <= t; ++j) {
      if (!sees(t, j)) continue;
      const double p = std::exp(score(ready, keys[j], t));
      sum += p;
      for (std::size_t i = 0; i < d; ++i) row[i] += p * values[j][i];
    }
    for (std::size_t i = 0; i < d; ++i) {
      row[i] /= sum;
      if (layer.q_gate) row[i] /= 1 + std::exp(-static_cast<double>(query[d + i]));
    }
  }

  /// The same by blocks, `step` tokens at a time. A layer that reads the keys of another one runs after one
  /// that stores them.
  template <class Storage, class E>
  [[nodiscard]] std::vector<float> attend(E& executor, std::size_t step) const {
    const kv::LayerShape shape{layer.kv_heads, kv::tile_bytes(Floats(), layer.head_dim)};
    Storage cache(alloc::Aligned{}, std::span(&shape, 1), tokens);
    REQUIRE(cache.reserve(tokens));
    AttentionConfig source = layer;
    source.kv_source = block::none;
    std::vector<float> queries = q, others = random(q.size(), 9), keys = k, values = v;
    std::vector<float> out(tokens * layer.q_width(), NAN), unused(out.size());
    for (std::size_t pos = 0; pos < tokens; pos += step) {
      const std::size_t n = std::min(step, tokens - pos);
      if (!layer.stores_kv()) run(executor, source, cache, pos, n, others, keys, values, unused);
      run(executor, layer, cache, pos, n, queries, keys, values, out);
    }
    return out;
  }
  template <class Storage, class E>
  void run(E& executor, const AttentionConfig& of, const Storage& cache, std::size_t pos, std::size_t n,
           std::vector<float>& queries, std::vector<float>& keys, std::vector<float>& values,
           std::vector<float>& out) const {
    const Floats elements;
    const block::RopeFrequencies frequencies(rope);
    std::vector<float> cos(n * rope.dims / 2), sin(cos.size());
    frequencies.fill(pos, {cos.data(), n, rope.dims / 2}, {sin.data(), n, rope.dims / 2});
    const auto rows = [&](auto& all, std::size_t width) {
      return MatrixView(all.data() + pos * width, n, width);
    };
    block::AttentionContext<block::KvView<Floats, Storage>> context{
        .layer = of,
        .kv = {elements, cache, 0, pos},
        .epsilon = epsilon,
        .q = rows(queries, of.heads * of.q_stride()),
        .k = {},
        .v = {},
        .out = rows(out, of.q_width()),
        .q_norm = q_norm.data(),
        .k_norm = k_norm.data(),
        .sinks = sinks.data(),
        .cos = {cos.data(), n, rope.dims / 2},
        .sin = {sin.data(), n, rope.dims / 2},
        .pairs = rope.pairs};
    if (of.stores_kv()) {
      context.k = rows(keys, of.kv_width());
      context.v = rows(values, of.kv_width());
    }
    const std::size_t floats = block::AttentionScratch::floats(of.group(), of.head_dim);
    std::vector<float> scratch(executor.workers() * floats, NAN);
    block::attend<kernel::Scalar>(executor, context,
                                  [&](std::size_t worker) { return scratch.data() + worker * floats; });
  }
};

/// Every kind of attention that a AttentionConfig can ask for, alone, and some together.
std::vector<std::pair<std::string, AttentionConfig>> kinds() {
  std::vector<std::pair<std::string, AttentionConfig>> out;
  const auto add = [&](std::string name, auto&& change, AttentionConfig layer = {4, 2, 6}) {
    change(layer);
    out.emplace_back(std::move(name), layer);
  };
  const auto window = [](std::size_t n) {
    return [n](AttentionConfig& l) { l.reach = Reach::window, l.reach_tokens = n; };
  };
  const auto chunk = [](std::size_t n) {
    return [n](AttentionConfig& l) { l.reach = Reach::chunk, l.reach_tokens = n; };
  };
  add("plain", [](AttentionConfig&) {});
  add("as many KV heads as heads", [](AttentionConfig&) {}, {3, 3, 8});
  add("one KV head", [](AttentionConfig&) {}, {4, 1, 16});
  add("no rotation", [](AttentionConfig& l) { l.rope = block::none; });
  for (const std::size_t n : {1u, 5u, 16u, 100u, 256u, 257u, 600u}) add(join("window of ", n), window(n));
  for (const std::size_t n : {1u, 7u, 64u, 255u, 256u, 300u}) add(join("chunks of ", n), chunk(n));
  add("gate", [](AttentionConfig& l) { l.q_gate = true; });
  add("sinks", [](AttentionConfig& l) { l.sinks = true; });
  add("sinks and a window", [&](AttentionConfig& l) { l.sinks = true, window(20)(l); });
  add("soft cap", [](AttentionConfig& l) { l.attention_softcap = 1.5f; });
  add("scale", [](AttentionConfig& l) { l.attention_scale = 0.17f; });
  add("weighted head norms", [](AttentionConfig& l) { l.head_norm = HeadNorm::weighted; });
  add("plain head norms", [](AttentionConfig& l) { l.head_norm = HeadNorm::plain_after_rope; });
  add("plain head norms where nothing rotates",
      [](AttentionConfig& l) { l.head_norm = HeadNorm::plain_after_rope, l.rope = block::none; });
  add("norm of values", [](AttentionConfig& l) { l.v_norm = true; });
  add("scale by position", [](AttentionConfig& l) { l.position_scale = 0.3f, l.position_step = 50; });
  add("keys of another layer", [](AttentionConfig& l) { l.kv_source = 0; });
  add("all at once", [&](AttentionConfig& l) {
    window(77)(l);
    l.q_gate = l.sinks = l.v_norm = true;
    l.attention_softcap = 4;
    l.head_norm = HeadNorm::weighted;
    l.position_scale = 0.1f;
    l.position_step = 30;
    l.position_offset = 1;
    l.kv_source = 0;
  });
  return out;
}

}  // namespace

TEST_CASE("attention by tiles and chunks is attention, of every kind") {
  exec::Inline executor;
  for (const auto& kind : kinds()) {
    const AttentionConfig& layer = kind.second;
    CAPTURE(kind.first);
    const Sequence sequence(layer, 530);
    const auto exact = sequence.exact();
    const auto out = sequence.attend<Contiguous>(executor, 530);
    REQUIRE(out.size() == exact.size());
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double error = std::fabs(static_cast<double>(out[i]) - exact[i]);
      worst = std::isnan(error) ? error : std::max(worst, error);
    }
    CHECK(worst < 4e-6);
  }
}

TEST_CASE("attention of every kind gives the same bits for any step, storage and team") {
  exec::Inline executor;
  exec::Team team(3);
  for (const auto& kind : kinds()) {
    const AttentionConfig& layer = kind.second;
    CAPTURE(kind.first);
    const Sequence sequence(layer, 530);
    const auto expected = sequence.attend<Contiguous>(executor, 530);
    for (const std::size_t step : {1u, 7u, 64u}) {
      CAPTURE(step);
      CHECK(sequence.attend<Contiguous>(executor, step) == expected);
    }
    CHECK(sequence.attend<Segmented>(executor, 530) == expected);
    CHECK(sequence.attend<Segmented>(team, 530) == expected);
    CHECK(sequence.attend<Segmented>(team, 7) == expected);
  }
}

TEST_CASE("a group may have more heads than a unit of work has rows") {
  exec::Inline executor;
  const Sequence sequence({70, 1, 6}, 270);
  const auto expected = sequence.attend<Contiguous>(executor, 270);
  CHECK(sequence.attend<Contiguous>(executor, 37) == expected);
  CHECK(sequence.attend<Segmented>(executor, 1) == expected);
}

/// The last `n` tokens of a sequence, whose others are stored and see nothing but themselves.
template <class E>
std::vector<float> last_tokens(E& executor, const Sequence& sequence, std::size_t n) {
  const AttentionConfig& layer = sequence.layer;
  const kv::LayerShape shape{layer.kv_heads, kv::tile_bytes(Floats(), layer.head_dim)};
  Segmented cache(alloc::Aligned{}, std::span(&shape, 1), sequence.tokens);
  REQUIRE(cache.reserve(sequence.tokens));
  std::vector<float> q = sequence.q, k = sequence.k, v = sequence.v;
  std::vector<float> out(sequence.tokens * layer.q_width(), NAN);
  AttentionConfig near = layer;
  near.reach = Reach::window;
  near.reach_tokens = 1;
  exec::Inline one;
  const std::size_t before = sequence.tokens - n;
  sequence.run(one, near, cache, 0, before, q, k, v, out);
  sequence.run(executor, layer, cache, before, n, q, k, v, out);
  return {out.begin() + static_cast<std::ptrdiff_t>(before * layer.q_width()), out.end()};
}

TEST_CASE("a long context that is split among workers gives the bits of one that is not") {
  exec::Inline one;
  exec::Team two(2), five(5);
  std::vector<std::pair<std::string, AttentionConfig>> layers = {
      {"one KV head", {4, 1, 6}}, {"heads that do not divide", {6, 3, 4}}, {"one head each", {3, 3, 5}}};
  layers.emplace_back("all at once", AttentionConfig{4, 1, 6});
  AttentionConfig& all = layers.back().second;
  all.reach = Reach::window;
  all.reach_tokens = 4400;
  all.q_gate = all.sinks = all.v_norm = true;
  all.attention_softcap = 4;
  all.head_norm = HeadNorm::weighted;
  for (const auto& [name, layer] : layers) {
    const auto& the_name = name;
    CAPTURE(the_name);
    const Sequence sequence(layer, 5000);
    for (const std::size_t n : {1u, 3u}) {
      CAPTURE(n);
      CHECK(block::ContextSplit::of(layer, n * layer.group(), 18, 5).chunks != 0);
      const auto expected = last_tokens(one, sequence, n);
      CHECK(last_tokens(two, sequence, n) == expected);
      CHECK(last_tokens(five, sequence, n) == expected);
    }
  }
}

TEST_CASE("a context longer than the scratch is split in rounds") {
  exec::Inline one;
  exec::Team two(2);
  const AttentionConfig layer{48, 1, 4};
  const std::size_t chunks = 64;
  const std::size_t each = block::ContextSplit::of(layer, 48, chunks, 2).chunks;
  REQUIRE(each > 0);
  REQUIRE(2 * each < chunks);
  const Sequence sequence(layer, chunks * 256 - 9);
  CHECK(last_tokens(two, sequence, 1) == last_tokens(one, sequence, 1));
}

TEST_CASE("heads are split where workers would wait, and only over a long context") {
  const auto chunks = [](std::size_t kv_heads, std::size_t context, std::size_t workers) {
    return block::ContextSplit::of(AttentionConfig{4 * kv_heads, kv_heads, 128}, 4, context, workers).chunks;
  };
  for (const std::size_t workers : {1u, 2u, 3u, 16u, 64u}) {
    CAPTURE(workers);
    for (const std::size_t kv_heads : {1u, 2u, 8u}) CHECK(chunks(kv_heads, 4, workers) == 0);
  }
  CHECK(chunks(8, 512, 1) == 0);
  CHECK(chunks(8, 512, 2) == 0);
  CHECK(chunks(8, 512, 8) == 0);
  CHECK(chunks(1, 16, 2) == 16);
  CHECK(chunks(8, 32, 16) == 32);
  CHECK(chunks(8, 32, 3) == 26);  // as many as fit, in two rounds
  CHECK(chunks(8, 12, 3) == 0);   // what is gained is lost again in the runs
  CHECK(chunks(2, 64, 3) == 64);
}

TEST_CASE("results of chunks lie behind the scratch of their rows and within that of a worker") {
  for (const std::size_t group : {1u, 3u, 8u, 48u, 63u, 64u, 70u}) {
    for (const std::size_t head_dim : {1u, 10u, 64u, 257u, 512u}) {
      const AttentionConfig layer{group, 1, head_dim};
      for (const std::size_t rows : {group, 2 * group}) {
        CAPTURE(rows);
        CAPTURE(head_dim);
        const std::size_t results = block::ContextSplit::results(layer, rows);
        const std::size_t each = block::ContextSplit::result_floats(rows, head_dim);
        CHECK(each >= rows * (head_dim + 2));
        const std::size_t end = block::AttentionScratch::floats_for(rows, head_dim) + results * each;
        CHECK((results == 0 || end <= block::AttentionScratch::floats(group, head_dim)));
      }
    }
  }
}

TEST_CASE("keys that are read from another layer give the bits of keys of one's own") {
  exec::Inline executor;
  AttentionConfig layer{6, 2, 6};
  const auto own = Sequence(layer, 300).attend<Contiguous>(executor, 64);
  layer.kv_source = 0;
  CHECK(Sequence(layer, 300).attend<Contiguous>(executor, 64) == own);
}

TEST_CASE("a token at the end of a window or a chunk sees what it should") {
  AttentionConfig layer{1, 1, 4};
  CHECK(layer.first_seen(1000) == 0);
  layer.reach = Reach::window;
  layer.reach_tokens = 8;
  CHECK(layer.first_seen(0) == 0);
  CHECK(layer.first_seen(7) == 0);
  CHECK(layer.first_seen(8) == 1);
  layer.reach = Reach::chunk;
  CHECK(layer.first_seen(7) == 0);
  CHECK(layer.first_seen(8) == 8);
  CHECK(layer.first_seen(23) == 16);
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

}  // namespace mica::test::attend_test
