// SPDX-License-Identifier: Apache-2.0
//
// Specification of kernel/attention.hpp, in plain loops.
#pragma once

#include "mica/format/detail/block_element.hpp"
#include "mica/format/kivi.hpp"
#include "mica/format/kvarn.hpp"
#include "mica/format/q8_0.hpp"
#include "mica/kernel/activation.hpp"
#include "mica/kernel/attention.hpp"
#include "mica/kernel/scalar/chains.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mica::kernel::scalar {

/// Numbers as integers: x = scale * code.
struct IntegerRow {
  std::int16_t code[max_head_dim];  // 0 where the scale is 0 or NaN
  float scale;                      // NaN: a number was not finite
};

/// The largest number becomes `top`.
inline void quantize_row(const float* x, std::size_t n, float top, IntegerRow& out) noexcept {
  float amax = 0;
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i) {
    amax = std::max(amax, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  const bool zero = !finite || amax < 1e-30f;
  const float inverse = zero ? 0.0f : top / amax;
  out.scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0f : amax / top;
  for (std::size_t i = 0; i < n; ++i) {
    out.code[i] = zero ? std::int16_t{0} : static_cast<std::int16_t>(std::nearbyint(x[i] * inverse));
  }
}

/// Keys that decode to floats; works for any element through load_key.
template <KvReadable E>
void attention_scores(const AttentionArgs& a) noexcept {
  float key[max_head_dim];
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
      E::load_key(a.tiles[j / format::tile_tokens], j % format::tile_tokens, a.head_dim, key);
      float c = 0;
      for (std::size_t i = 0; i < a.head_dim; ++i) c = std::fma(a.q[r][i], key[i], c);
      a.p[r][j] = c * a.scale;
    }
  }
}

/// Keys of eight bits: sums of integers.
template <>
inline void attention_scores<format::Q8_0>(const AttentionArgs& a) noexcept {
  using format::Q8_0;
  IntegerRow q;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    quantize_row(a.q[r].data(), a.head_dim, a.query_max(), q);
    const float scale = q.scale * a.scale;
    for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
      const std::byte* const tile = a.tiles[j / format::tile_tokens];
      const std::size_t slot = j % format::tile_tokens;
      const auto* const codes = reinterpret_cast<const std::int8_t*>(tile);
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < a.head_dim; ++i) sum += q.code[i] * codes[Q8_0::Keys::place(slot, i)];
      a.p[r][j] = (static_cast<float>(sum) * scale) * to_float(Q8_0::scales(tile, a.head_dim)[slot]);
    }
  }
}

/// Keys in blocks.
template <KvReadable E>
requires format::is_block_element<E>
void attention_scores(const AttentionArgs& a) noexcept {
  format::Codes<32, 32> key;
  float turned[max_head_dim];
  IntegerRow q;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    const float* head = a.q[r].data();
    if constexpr (E::rotated) {
      format::rotate(head, a.head_dim, turned);
      head = turned;
    }
    quantize_row(head, a.head_dim, query_top, q);
    const float scale = q.scale * a.scale;
    for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
      float c = 0;
      const auto add = [&](bool minima) {
        for (std::size_t b = 0; b < E::blocks(a.head_dim); ++b) {
          const std::size_t slot = j % format::tile_tokens, first = b * E::block_size;
          const std::byte* const tile = a.tiles[j / format::tile_tokens];
          E::Format::unpack(E::template block<typename E::Keys>(tile, slot, a.head_dim, b), key);
          std::int32_t sum = 0;
          for (std::size_t i = first; i < std::min(first + E::block_size, a.head_dim); ++i) {
            sum += q.code[i] * (minima ? 1 : key.code[i - first]);
          }
          c = std::fma(static_cast<float>(sum), minima ? -key.dmin : key.d, c);
        }
      };
      add(false);
      if constexpr (E::has_minima) add(true);
      a.p[r][j] = c * scale;
    }
  }
}

/// Keys with a scale for each channel: what a channel multiplies its codes by is taken into the query.
template <KvReadable E>
requires format::is_kivi<E>
void attention_scores(const AttentionArgs& a) noexcept {
  float folded[max_head_dim];
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
      const std::byte* const tile = a.tiles[j / format::tile_tokens];
      const format::KiviRange* const ranges = E::key_ranges(tile, a.head_dim);
      Chains minima;
      for (std::size_t i = 0; i < a.head_dim; ++i) {
        folded[i] = a.q[r][i] * (ranges[i].factor() * E::Group::step);
        minima.add(i, a.q[r][i] * ranges[i].minimum());
      }
      float c = 0;
      for (std::size_t i = 0; i < a.head_dim; ++i) {
        c = std::fma(folded[i], static_cast<float>(E::Keys::get(tile, j % format::tile_tokens, i)), c);
      }
      a.p[r][j] = (c + minima.tree()) * a.scale;
    }
  }
}

/// Keys with a scale for each channel and one for each token: the former is taken into the query.
template <KvReadable E>
requires format::is_kvarn<E>
void attention_scores(const AttentionArgs& a) noexcept {
  float folded[max_head_dim];
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
      const std::byte* const tile = a.tiles[j / format::tile_tokens];
      const std::size_t slot = j % format::tile_tokens;
      Chains means;
      float c = 0;
      for (std::size_t first = 0; first < a.head_dim; first += E::group_size) {
        const std::size_t g = first / E::group_size, last = std::min(first + E::group_size, a.head_dim);
        const format::KvarnChannels channels = E::channels(tile, a.head_dim, g);
        float sum = 0;
        for (std::size_t i = first; i < last; ++i) {
          folded[i] = a.q[r][i] * channels.scale(i - first);
          means.add(i, a.q[r][i] * channels.mean(i - first));
          sum = std::fma(folded[i], E::key_level(tile, slot, i), sum);
        }
        c = std::fma(sum, E::Scale::of(E::key_scales(tile, a.head_dim, g)[slot]), c);
      }
      a.p[r][j] = (c + means.tree()) * a.scale;
    }
  }
}

/// Rows that see nothing keep p, max and sum.
inline void attention_softmax(const AttentionArgs& a) noexcept {
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    const std::size_t first = a.visible[r].first, last = a.visible[r].last;
    if (a.softcap != 0) {
      const float inverse = 1.0f / a.softcap;
      for (std::size_t j = first; j < last; ++j) a.p[r][j] = a.softcap * tanh(a.p[r][j] * inverse);
    }
    float m = a.p[r][first];
    for (std::size_t j = first; j < last; ++j) m = a.p[r][j] > m ? a.p[r][j] : m;
    Chains sum;
    for (std::size_t j = first; j < last; ++j) {
      a.p[r][j] = a.fast8 ? quick_exp(a.p[r][j] - m) : exp(a.p[r][j] - m);
      sum.add(j, a.p[r][j]);
    }
    a.max[r] = m;
    a.sum[r] = sum.tree();
  }
}

/// What values are added to: zeros, or with `adds` what is there.
inline void begin_values(const AttentionArgs& a, std::size_t r, bool rotated) noexcept {
  float* const out = a.out[r].data();
  if (!a.adds) {
    std::fill_n(out, a.head_dim, 0.0f);
  } else if (rotated && !a.visible[r].empty()) {
    format::rotate(out, a.head_dim, out);
  }
}

/// Values that decode to floats; works for any element through load_value.
template <KvReadable E>
void attention_values(const AttentionArgs& a) noexcept {
  float value[max_head_dim];
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    begin_values(a, r, false);
    for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
      E::load_value(a.tiles[j / format::tile_tokens] + a.value_offset, j % format::tile_tokens, a.head_dim,
                    value);
      for (std::size_t i = 0; i < a.head_dim; ++i) a.out[r][i] = std::fma(a.p[r][j], value[i], a.out[r][i]);
    }
  }
}

/// Values of eight bits: sums of integers.
template <>
inline void attention_values<format::Q8_0>(const AttentionArgs& a) noexcept {
  using format::Q8_0;
  float weight[chunk_tokens];
  IntegerRow w;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    begin_values(a, r, false);
    if (a.visible[r].empty()) continue;
    const std::size_t first = a.visible[r].first, last = a.visible[r].last;
    const auto values = [&](std::size_t j) { return a.tiles[j / format::tile_tokens] + a.value_offset; };
    for (std::size_t j = first; j < last; ++j) {
      const Half* const scales = Q8_0::scales(values(j), a.head_dim);
      weight[j - first] = a.p[r][j] * to_float(scales[j % format::tile_tokens]);
    }
    quantize_row(weight, last - first, a.weight_max(), w);
    for (std::size_t i = 0; i < a.head_dim; ++i) {
      std::int32_t sum = 0;
      for (std::size_t j = first; j < last; ++j) {
        const auto* const codes = reinterpret_cast<const std::int8_t*>(values(j));
        sum += w.code[j - first] *
               codes[Q8_0::Values::place(j % format::tile_tokens, i, Q8_0::padded(a.head_dim))];
      }
      a.out[r][i] = std::fma(static_cast<float>(sum), w.scale, a.out[r][i]);
    }
  }
}

/// Values in blocks.
template <KvReadable E>
requires format::is_block_element<E>
void attention_values(const AttentionArgs& a) noexcept {
  format::Codes<32, 32> value;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    float* const out = a.out[r].data();
    begin_values(a, r, E::rotated);
    if (a.visible[r].empty()) continue;
    for (std::size_t b = 0; b < E::blocks(a.head_dim); ++b) {
      const std::size_t first = b * E::block_size, count = std::min(E::block_size, a.head_dim - first);
      Chains minima;
      for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
        const std::byte* const tile = a.tiles[j / format::tile_tokens] + a.value_offset;
        const std::size_t slot = j % format::tile_tokens;
        E::Format::unpack(E::template block<typename E::Values>(tile, slot, a.head_dim, b), value);
        const float weight = a.p[r][j] * value.d;
        for (std::size_t i = 0; i < count; ++i) {
          out[first + i] = std::fma(weight, static_cast<float>(value.code[i]), out[first + i]);
        }
        minima.add(j, a.p[r][j] * -value.dmin);
      }
      if constexpr (E::has_minima) {
        const float sum = minima.tree();
        for (std::size_t i = 0; i < count; ++i) out[first + i] += sum;
      }
    }
    if constexpr (E::rotated) format::rotate(out, a.head_dim, out);
  }
}

/// Values with a scale for 32 numbers of a token, and what code 0 stands for.
template <KvReadable E>
requires format::is_kivi<E>
void attention_values(const AttentionArgs& a) noexcept {
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    begin_values(a, r, false);
    if (a.visible[r].empty()) continue;
    float* const out = a.out[r].data();
    for (std::size_t first = 0; first < a.head_dim; first += E::group_size) {
      const std::size_t last = std::min(first + E::group_size, a.head_dim);
      Chains minima;
      for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
        const std::byte* const tile = a.tiles[j / format::tile_tokens] + a.value_offset;
        const std::size_t slot = j % format::tile_tokens;
        const format::KiviRange range = E::value_ranges(tile, a.head_dim, first / E::group_size)[slot];
        const float weight = a.p[r][j] * (range.factor() * E::Group::step);
        for (std::size_t i = first; i < last; ++i) {
          out[i] = std::fma(weight, static_cast<float>(E::Values::get(tile, slot, i)), out[i]);
        }
        minima.add(j, a.p[r][j] * range.minimum());
      }
      const float sum = minima.tree();
      for (std::size_t i = first; i < last; ++i) out[i] += sum;
    }
  }
}

/// Values of rotated heads with a scale for 64 numbers of a token.
template <KvReadable E>
requires format::is_kvarn<E>
void attention_values(const AttentionArgs& a) noexcept {
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    begin_values(a, r, true);
    if (a.visible[r].empty()) continue;
    float* const out = a.out[r].data();
    for (std::size_t first = 0; first < a.head_dim; first += E::group_size) {
      const std::size_t g = first / E::group_size, last = std::min(first + E::group_size, a.head_dim);
      for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
        const std::byte* const tile = a.tiles[j / format::tile_tokens] + a.value_offset;
        const std::size_t slot = j % format::tile_tokens;
        const float weight = a.p[r][j] * E::Scale::of(E::value_scales(tile, a.head_dim, g)[slot]);
        for (std::size_t i = first; i < last; ++i)
          out[i] = std::fma(weight, E::value_level(tile, slot, i), out[i]);
      }
    }
    format::rotate(out, a.head_dim, out);
  }
}

/// Takes a chunk into the state of its rows, and turns the state of all chunks into results.
inline void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept {
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    float& max = state.max[r];
    float& sum = state.sum[r];
    if (max == -std::numeric_limits<float>::infinity()) {
      max = a.max[r];
      sum = a.sum[r];
      std::copy_n(a.out[r].data(), a.head_dim, state.out[r].data());
      continue;
    }
    const float top = a.max[r] > max ? a.max[r] : max;
    const float before = exp(max - top), now = exp(a.max[r] - top);
    max = top;
    sum = std::fma(sum, before, a.sum[r] * now);
    for (std::size_t i = 0; i < a.head_dim; ++i) {
      state.out[r][i] = std::fma(state.out[r][i], before, a.out[r][i] * now);
    }
  }
}
inline void attention_finish(const AttentionState& state) noexcept {
  for (std::size_t r = 0; r < state.out.rows(); ++r) {
    const float inverse = 1.0f / state.sum[r];
    for (float& o : state.out[r]) o *= inverse;
  }
}

/// Stores tokens of a tile by E's own functions.
template <KvElement E>
void store(const StoreArgs& a) noexcept {
  for (std::size_t i = 0; i < a.x.rows(); ++i) {
    if (a.values) {
      E::store_value(a.tile, a.slot + i, a.x.cols(), a.x[i].data());
    } else {
      E::store_key(a.tile, a.slot + i, a.x.cols(), a.x[i].data());
    }
  }
}

}  // namespace mica::kernel::scalar
