// SPDX-License-Identifier: Apache-2.0
//
// Operations of a step beside its products and its attention: those that go over rows of activations number
// by number. The counts follow the blocks (block/lists.hpp) operation by operation, for one token.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/block/lists.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::plan {

/// The operations. softmax: of attention scores. delta_rule: over the state of a delta net. add: also copies.
enum class RowOperation : std::uint8_t { norm, quantize, gate, add, rope, convolve, delta_rule, softmax };
inline constexpr std::size_t row_operations = 8;
/// Their names, in this order.
inline constexpr std::array<std::string_view, row_operations> row_operation_names = {
    "norm", "quantize", "gate", "add", "rope", "convolve", "delta_rule", "softmax"};

[[nodiscard]] constexpr std::string_view name(RowOperation operation) noexcept {
  return row_operation_names[static_cast<std::size_t>(operation)];
}

/// A number for each operation.
class PerOperation {
 public:
  [[nodiscard]] constexpr double& operator[](RowOperation operation) noexcept {
    return values_[static_cast<std::size_t>(operation)];
  }
  [[nodiscard]] constexpr double operator[](RowOperation operation) const noexcept {
    return values_[static_cast<std::size_t>(operation)];
  }
  /// f(operation, its number)
  template <class F>
  constexpr void for_each(F&& f) const {
    for (std::size_t i = 0; i < row_operations; ++i) f(static_cast<RowOperation>(i), values_[i]);
  }

 private:
  std::array<double, row_operations> values_{};
};

/// Of a token in all layers.
struct RowWork {
  PerOperation numbers;       // that an operation goes over
  double stored_numbers = 0;  // of keys and values
  double runs = 0;            // parallel runs of a step
};

namespace detail {

/// Calls f(config) for each block of a model, in the order in which they run.
template <class F>
void for_each_block(const arch::Config& config, F&& f) {
  const auto visit = [&](const arch::Layer& layer) {
    for (const auto& entry : layer.blocks()) {
      block::All::for_each([&](auto type) {
        using Block = typename decltype(type)::type;
        if (const auto* const of_block = entry.template config<Block>()) f(*of_block);
      });
    }
  };
  visit(config.begin);
  for (const arch::Layer& layer : config.layers) visit(layer);
  visit(config.end);
}

/// Counts the blocks of a model of some width.
class RowCount {
 public:
  /// quantized: products read int8 codes.
  RowCount(double width, bool quantized) : width_(width), quantized_(quantized) {}

  [[nodiscard]] const RowWork& work() const noexcept { return work_; }

  template <class Config>
  void operator()(const Config& block) {
    count(block);
  }

 private:
  using Op = RowOperation;

  void over(Op operation, double numbers) { work_.numbers[operation] += numbers; }
  /// The input of a product.
  void input(double numbers) {
    if (quantized_) over(Op::quantize, numbers);
  }
  void norm_input() {
    over(Op::norm, width_);
    input(width_);
  }
  /// What a block adds to the residual stream, if it is normed first.
  void branch(bool post_norm) {
    if (!post_norm) return;
    over(Op::norm, width_);
    over(Op::add, width_);
  }
  void gated(double width) {
    over(Op::gate, width);
    input(width);
    work_.runs += 2;
  }

  void count(const block::AttentionConfig& c) {
    const auto q = static_cast<double>(c.q_width());
    const double kv = c.stores_kv() ? static_cast<double>(c.kv_width()) : 0;
    norm_input();
    if (c.head_norm != block::HeadNorm::none) over(Op::norm, q + kv);
    if (c.v_norm) over(Op::norm, kv);
    if (c.rotates()) over(Op::rope, q + kv);
    over(Op::add, 2 * q);  // queries are copied together, and outputs apart
    if (c.q_gate) over(Op::gate, q);
    work_.stored_numbers += 2 * kv;
    input(q);
    branch(c.post_norm);
    work_.runs += 3;
  }
  void count(const block::DeltaNetConfig& c) {
    const auto k = static_cast<double>(c.k_width()), v = static_cast<double>(c.v_width());
    norm_input();
    over(Op::convolve, static_cast<double>(c.channels()));
    over(Op::norm, 2 * k + v);
    over(Op::delta_rule, static_cast<double>(c.k_dim) * v);
    over(Op::gate, v);
    input(v);
    branch(c.post_norm);
    work_.runs += 4;
  }
  void count(const block::DenseFeedForward::Config& c) {
    norm_input();
    gated(static_cast<double>(c.ff_width));
    branch(c.post_norm);
  }
  void count(const block::ExpertsConfig& c) {
    norm_input();
    experts(c);
    branch(c.post_norm);
  }
  /// Rows are gathered and their outputs added, for each expert of a token.
  void experts(const block::ExpertsConfig& c) {
    const auto used = static_cast<double>(c.used);
    over(Op::add, 2 * used * width_);
    over(Op::gate, used * static_cast<double>(c.ff_width));
    input(used * static_cast<double>(c.ff_width));
    work_.runs += 5;
    if (c.shared_ff_width == 0) return;
    gated(static_cast<double>(c.shared_ff_width));
    if (c.shared_gate) over(Op::add, width_);
  }
  void count(const block::ExpertsBesideDense::Config& c) {
    norm_input();
    gated(static_cast<double>(c.dense.ff_width));
    norm_input();               // of the router
    norm_input();               // of the experts
    over(Op::add, 3 * width_);  // the router's scale, zeros, the sum
    experts(c.experts);
    over(Op::norm, 2 * width_);
    branch(true);
  }
  void count(const block::LayerInputs::Config& c) {
    const auto all = static_cast<double>(c.layers * c.width);
    input(width_);
    over(Op::norm, all);
    over(Op::add, 3 * all);
    work_.runs += 1;
  }
  void count(const block::PerLayerEmbedding::Config& c) {
    const auto width = static_cast<double>(c.inputs.width);
    input(width_ + width);
    over(Op::gate, width);
    branch(true);
    work_.runs += 2;
  }
  void count(const block::OutputScale::Config&) { over(Op::add, width_); }
  void count(const block::MtpInput::Config&) {
    over(Op::norm, 2 * width_);
    input(2 * width_);
    work_.runs += 2;
  }
  void count(const block::ResidualNorm::Config&) {
    over(Op::norm, width_);
    work_.runs += 1;
  }
  void count(const block::EncoderInput::Config&) {
    over(Op::add, 2 * width_);
    work_.runs += 1;
  }
  // Limit: the streams of Gemma 3n are not counted.
  void count(const block::AltUp::Config&) {}
  void count(const block::Laurel::Config&) {}

  double width_;
  bool quantized_;
  RowWork work_;
};

}  // namespace detail

/// The operations of a token of a model. quantized: products read int8 codes, as those of quantised weights
/// do.
[[nodiscard]] inline RowWork row_work_of(const arch::Config& config, bool quantized) {
  detail::RowCount count(static_cast<double>(config.width), quantized);
  detail::for_each_block(config, count);
  return count.work();
}

}  // namespace mica::plan
