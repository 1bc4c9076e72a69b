// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts: every token goes through the few feed-forward blocks that the router chose for it.
// Rows are gathered by expert, so that an expert's weights are read once for all its tokens; one parallel run
// computes as many experts as the scratch has rows for.
#pragma once

#include "mica/block/detail/feed_forward.hpp"
#include "mica/block/detail/routing.hpp"

#include <algorithm>
#include <cstddef>

namespace mica::block {

/// Scratch of a mixture for `capacity` rows at a time; capacity >= the tokens of a step and >= used.
struct ExpertScratch {
  std::size_t capacity = 0;
  ExpertRows rows;
  MatrixView<float> values;            // (capacity, width): gathered inputs, then outputs
  MatrixView<float> gate_out;          // (capacity, ff_width)
  MatrixView<float> up_out;            // (capacity, ff_width)
  MatrixView<float> hidden;            // (capacity, ff_width of all ranks), or empty: gate_out has them
  kernel::QuantizedRows input_codes;   // (capacity, width)
  kernel::QuantizedRows hidden_codes;  // (capacity, ff_width of all); may lie where input_codes lie
};

/// One mixture for the tokens of a step. Source: expert(e) answers its GatedWeights; acquire(e) and
/// release(e) stand around its use, and acquire says no when it could not be read; prefetch(e) comes before,
/// for all that are acquired together. inputs(e, rows) and hidden(e, rows) see what goes into its products.
/// Source::divides: rows are of this rank, and gather_hidden(n, quantized) and gather_outputs(n) bring the
/// others' for the first n rows of the scratch; false: a rank is gone.
template <class Source>
struct ExpertsContext {
  const ExpertsConfig& config;
  kernel::Input x;                // (n, width); with codes when quantized_input
  bool quantized_input = false;   // gates or ups read codes
  bool quantized_hidden = false;  // downs do
  bool observed = false;          // inputs() and hidden() want to be called
  ExpertScratch scratch;          // its rows are sorted
  Source& source;
  MatrixView<float> y;  // (n, width)
};

namespace detail {

/// A row of codes becomes row `to_row` of the gathered ones, its scales multiplied by `factor`.
inline void copy_codes(const kernel::QuantizedRows& from, std::size_t row, const kernel::QuantizedRows& to,
                       std::size_t to_row, float factor) noexcept {
  const std::size_t cols = from.cols;
  std::copy_n(from.row_codes(row), cols, to.codes + to_row * cols);
  std::copy_n(from.row_sums(row), cols / 16, to.sums + to_row * (cols / 16));
  std::transform(from.row_scales(row), from.row_scales(row) + cols / 32, to.scales + to_row * (cols / 32),
                 [factor](float scale) { return scale * factor; });
}

/// Rows [first, first + count) of those that were made. Their own number decides whether products round.
[[nodiscard]] inline kernel::QuantizedRows codes_from(const kernel::QuantizedRows& all, std::size_t first,
                                                      std::size_t count) noexcept {
  kernel::QuantizedRows some = kernel::rows_of(all, first, count);
  some.fast8_from = all.fast8_from;
  return some;
}

/// Some of the experts that have rows, whose rows fit the scratch together.
template <Kernels K, class List, Executor E, class Source>
class ExpertBatch {
 public:
  using Context = ExpertsContext<Source>;

  /// The batch that begins with place `first` of ExpertRows::expert.
  ExpertBatch(E& executor, const Context& context, std::size_t first) noexcept
      : executor_(executor), c_(context), s_(context.scratch), first_(first), last_(first) {
    const auto begin = s_.rows.begin;
    first_row_ = begin[first];
    while (first_row_ + rows_ < s_.rows.choices.size() && begin[last_ + 1] - first_row_ <= s_.capacity)
      rows_ = begin[++last_] - first_row_;
  }

  /// The place behind it.
  [[nodiscard]] std::size_t last() const noexcept { return last_; }

  /// False when an expert could not be read; then none is held.
  [[nodiscard]] bool run() noexcept {
    if (!acquire()) return false;
    gather();
    if (c_.observed)
      each([this](std::size_t e, auto at, auto n) { c_.source.inputs(e, s_.values.rows(at, n)); });
    project(2 * ceil_div(c_.config.ff_width, slice_rows), [this](auto... a) { project_in(a...); });
    activate();
    if (c_.observed)
      each([this](std::size_t e, auto at, auto n) { c_.source.hidden(e, s_.gate_out.rows(at, n)); });
    bool here = true;
    if constexpr (Source::divides) here = !divided() || c_.source.gather_hidden(rows_, c_.quantized_hidden);
    if (here) project(ceil_div(c_.y.cols(), slice_rows), [this](auto... a) { project_out(a...); });
    if constexpr (Source::divides) here = here && (!divided() || c_.source.gather_outputs(rows_));
    if (here) add();
    release(last_);
    return here;
  }

 private:
  [[nodiscard]] bool divided() const noexcept { return Source::divides && s_.hidden.cols() != 0; }
  /// f(expert, first row in the scratch, rows) for the expert at a place.
  template <class F>
  void at(std::size_t place, F&& f) noexcept {
    const auto begin = s_.rows.begin;
    f(std::size_t{s_.rows.expert[place]}, begin[place] - first_row_,
      std::size_t{begin[place + 1] - begin[place]});
  }
  template <class F>
  void each(F&& f) noexcept {
    for (std::size_t place = first_; place < last_; ++place) at(place, f);
  }
  [[nodiscard]] bool acquire() noexcept {
    for (std::size_t i = first_; i < last_; ++i) c_.source.prefetch(s_.rows.expert[i]);
    for (std::size_t i = first_; i < last_; ++i) {
      if (c_.source.acquire(s_.rows.expert[i])) continue;
      release(i);
      return false;
    }
    return true;
  }
  void release(std::size_t end) noexcept {
    for (std::size_t i = first_; i < end; ++i) c_.source.release(s_.rows.expert[i]);
  }

  void gather() noexcept {
    executor_.run(rows_, [this](std::size_t i, std::size_t) noexcept {
      const std::size_t token = s_.rows.token[first_row_ + i];
      const float factor = c_.config.weighted_input ? s_.rows.weight[first_row_ + i] : 1.0f;
      const auto x = c_.x.values[token];
      std::transform(x.begin(), x.end(), s_.values[i].begin(), [factor](float v) { return v * factor; });
      if (c_.quantized_input) copy_codes(c_.x.codes, token, s_.input_codes, i, factor);
    });
  }

  /// f(weights, first row in the scratch, rows, slice) for every slice of every expert.
  template <class F>
  void project(std::size_t slices, F&& f) noexcept {
    executor_.run((last_ - first_) * slices, [&](std::size_t task, std::size_t) noexcept {
      at(first_ + task / slices, [&](std::size_t e, std::size_t row, std::size_t n) {
        f(c_.source.expert(e), row, n, task % slices);
      });
    });
  }
  /// Slices of the gate, then as many of what it gates: a worker reads a matrix from one end to the other.
  void project_in(const GatedWeights<List>& w, std::size_t first, std::size_t n, std::size_t slice) noexcept {
    const std::size_t slices = ceil_div(c_.config.ff_width, slice_rows);
    const bool up = slice >= slices;
    const Product<List> product{up ? w.up : w.gate, (up ? s_.up_out : s_.gate_out).rows(first, n), false,
                                up ? w.up_bias : w.gate_bias};
    const kernel::Input x{s_.values.rows(first, n),
                          codes_from(kernel::codes_if(c_.quantized_input, s_.input_codes), first, n)};
    const std::size_t row = slice % slices * slice_rows;
    project_slice<K>(x, product, row, std::min(row + slice_rows, c_.config.ff_width));
  }
  void project_out(const GatedWeights<List>& w, std::size_t first, std::size_t n,
                   std::size_t slice) noexcept {
    const ranks::Part outputs = c_.source.outputs();
    const Product<List> product{w.down, s_.values.rows(first, n).cols(outputs.first, outputs.count), false,
                                w.down_bias};
    const kernel::Input x{(divided() ? s_.hidden : s_.gate_out).rows(first, n),
                          codes_from(kernel::codes_if(c_.quantized_hidden, s_.hidden_codes), first, n)};
    const std::size_t row = slice * slice_rows;
    if (row < outputs.count) project_slice<K>(x, product, row, std::min(row + slice_rows, outputs.count));
  }

  void activate() noexcept {
    executor_.run(rows_, [this](std::size_t i, std::size_t) noexcept {
      K::gated(kernel::GatedArgs{c_.config.gate, s_.gate_out, s_.up_out, s_.gate_out, i, i + 1});
      if (c_.quantized_hidden && !divided())
        K::quantize(kernel::QuantizeArgs{s_.gate_out, s_.hidden_codes, i, i + 1});
    });
  }

  void add() noexcept {
    executor_.run(c_.y.rows(), [this](std::size_t token, std::size_t) noexcept {
      for (const Choice& choice : s_.rows.choices.subspan(token * c_.config.used, c_.config.used)) {
        if (choice.row < first_row_ || choice.row >= first_row_ + rows_) continue;
        const float weight = c_.config.weighted_input ? 1.0f : choice.weight;
        K::add(
            kernel::AddArgs{s_.values.rows(choice.row - first_row_, 1), c_.y.rows(token, 1), weight, 0, 1});
      }
    });
  }

  E& executor_;
  const Context& c_;
  const ExpertScratch& s_;
  std::size_t first_;  // places [first_, last_)
  std::size_t last_;
  std::size_t first_row_ = 0;
  std::size_t rows_ = 0;
};

}  // namespace detail

/// y += sum over a token's experts of weight * FFN(x). False when an expert could not be read.
template <Kernels K, class List, Executor E, class Source>
[[nodiscard]] bool run_experts(E& executor, const ExpertsContext<Source>& context) noexcept {
  const ExpertRows& rows = context.scratch.rows;
  for (std::size_t first = 0; rows.begin[first] < rows.choices.size();) {
    detail::ExpertBatch<K, List, E, Source> batch(executor, context, first);
    if (!batch.run()) return false;
    first = batch.last();
  }
  return true;
}

}  // namespace mica::block
