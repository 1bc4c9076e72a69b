// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts: every token goes through the few feed-forward blocks that the router chose for it. Rows are
// gathered by expert, so that an expert's weights are read once for all its tokens; as many experts as the scratch has rows
// for go through one run together.
#pragma once

#include "mica/block/feed_forward.hpp"
#include "mica/block/routing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mica::block {

/// The weights of one expert.
template <class List>
struct Expert {
  tensor::AnyMatrix<List> gate;      // (ff_width, width)
  tensor::AnyMatrix<List> up;        // (ff_width, width)
  tensor::AnyMatrix<List> down;      // (width, ff_width)
  const float* gate_bias = nullptr;  // (ff_width), or null
  const float* up_bias = nullptr;    // (ff_width), or null
  const float* down_bias = nullptr;  // (width), or null
};

/// Scratch of a mixture for `capacity` rows at a time; capacity >= the tokens of a step and >= used.
struct ExpertScratch {
  std::size_t capacity = 0;
  ExpertRows rows;
  MatrixView<float> values;              // (capacity, width): gathered inputs, then outputs
  MatrixView<float> gate_out;            // (capacity, ff_width)
  MatrixView<float> up_out;              // (capacity, ff_width)
  kernel::QuantizedRows input_codes;     // (capacity, width)
  kernel::QuantizedRows hidden_codes;    // (capacity, ff_width); may lie where input_codes lie
};

namespace detail {

/// Consecutive experts whose rows [first_row, last_row) fit the scratch.
struct ExpertBatch {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t first_row = 0;
  std::size_t last_row = 0;

  [[nodiscard]] std::size_t rows() const noexcept { return last_row - first_row; }
};

/// The batch that begins with expert `first`.
[[nodiscard]] inline ExpertBatch next_batch(std::span<const std::uint32_t> begin, std::size_t first,
                                            std::size_t capacity) noexcept {
  const std::size_t count = begin.size() - 1;
  std::size_t last = first;
  while (last < count && begin[last + 1] - begin[first] <= capacity) ++last;
  return {first, last, begin[first], begin[last]};
}

/// A row of codes becomes row `to` of the gathered ones, its scales multiplied by `factor`.
inline void copy_codes(const kernel::QuantizedRows& from, std::size_t row, const kernel::QuantizedRows& to,
                       std::size_t to_row, float factor) noexcept {
  const std::size_t cols = from.cols;
  std::copy_n(from.row_codes(row), cols, to.codes + to_row * cols);
  std::copy_n(from.row_sums(row), cols / 16, to.sums + to_row * (cols / 16));
  std::transform(from.row_scales(row), from.row_scales(row) + cols / 32, to.scales + to_row * (cols / 32),
                 [factor](float scale) { return scale * factor; });
}

[[nodiscard]] inline kernel::QuantizedRows codes_from(const kernel::QuantizedRows& all, std::size_t first,
                                                      std::size_t count) noexcept {
  return {all.codes + first * all.cols, all.scales + first * (all.cols / 32),
          all.sums + first * (all.cols / 16), count, all.cols};
}

}  // namespace detail

/// y += sum over the chosen experts of weight * FFN(x). x (n, width) has codes when `quantized`.
/// expert(e): the Expert; acquire(e), release(e): around its use. False when an expert could not be read.
template <Kernels K, class List, Executor E, class Source>
bool run_experts(E& executor, const ExpertsConfig& config, kernel::Gate kind, const kernel::Input& x,
                 bool quantized, const ExpertScratch& s, Source& source, MatrixView<float> y) noexcept {
  const auto begin = s.rows.begin;
  for (detail::ExpertBatch b{}; b.last < config.count;) {
    b = detail::next_batch(begin, b.last, s.capacity);
    if (b.rows() == 0) continue;
    const auto used = [&](std::size_t e) { return begin[e] != begin[e + 1]; };
    for (std::size_t e = b.first; e < b.last; ++e) {
      if (!used(e) || source.acquire(e)) continue;
      while (e-- > b.first) {
        if (used(e)) source.release(e);
      }
      return false;
    }
    executor.run(b.rows(), [&](std::size_t i, std::size_t) noexcept {  // gather
      const std::size_t row = b.first_row + i, token = s.rows.token[row];
      const float factor = config.weighted_input ? s.rows.weight[row] : 1.0f;
      std::transform(x.values[token].begin(), x.values[token].end(), s.values[i].begin(),
                     [factor](float v) { return v * factor; });
      if (quantized) detail::copy_codes(x.codes, token, s.input_codes, i, factor);
    });
    const auto rows_of = [&](std::size_t e) { return std::size_t{begin[e + 1]} - begin[e]; };
    const auto at = [&](std::size_t e) { return std::size_t{begin[e]} - b.first_row; };
    const std::size_t ff_slices = ceil_div(config.ff_width, slice_rows);
    executor.run((b.last - b.first) * 2 * ff_slices, [&](std::size_t task, std::size_t) noexcept {
      const std::size_t e = b.first + task / (2 * ff_slices), slice = task % ff_slices;
      if (!used(e)) return;
      const Expert<List> weights = source.expert(e);
      const bool up = task / ff_slices % 2 == 1;
      const std::size_t first = at(e), n = rows_of(e);
      const Product<List> product{up ? weights.up : weights.gate,
                                  (up ? s.up_out : s.gate_out).rows(first, n), false,
                                  up ? weights.up_bias : weights.gate_bias};
      const kernel::Input input{s.values.rows(first, n), detail::codes_from(s.input_codes, first, n)};
      project_slice<K>(input, product, slice * slice_rows,
                       std::min((slice + 1) * slice_rows, config.ff_width));
    });
    executor.run(b.rows(), [&](std::size_t i, std::size_t) noexcept {
      K::gated(kernel::GatedArgs{kind, s.gate_out, s.up_out, s.gate_out, i, i + 1});
      if (quantized) K::quantize(kernel::QuantizeArgs{s.gate_out, s.hidden_codes, i, i + 1});
    });
    const std::size_t slices = ceil_div(y.cols(), slice_rows);
    executor.run((b.last - b.first) * slices, [&](std::size_t task, std::size_t) noexcept {
      const std::size_t e = b.first + task / slices, slice = task % slices;
      if (!used(e)) return;
      const Expert<List> weights = source.expert(e);
      const std::size_t first = at(e), n = rows_of(e);
      const Product<List> product{weights.down, s.values.rows(first, n), false, weights.down_bias};
      const kernel::Input input{s.gate_out.rows(first, n), detail::codes_from(s.hidden_codes, first, n)};
      project_slice<K>(input, product, slice * slice_rows, std::min((slice + 1) * slice_rows, y.cols()));
    });
    executor.run(y.rows(), [&](std::size_t token, std::size_t) noexcept {  // add
      for (const Choice& choice : s.rows.choices.subspan(token * config.used, config.used)) {
        if (choice.row < b.first_row || choice.row >= b.last_row) continue;
        const float weight = config.weighted_input ? 1.0f : choice.weight;
        K::add(kernel::AddArgs{s.values.rows(choice.row - b.first_row, 1), y.rows(token, 1), weight, 0, 1});
      }
    });
    for (std::size_t e = b.first; e < b.last; ++e) {
      if (used(e)) source.release(e);
    }
  }
  return true;
}

}  // namespace mica::block
