// SPDX-License-Identifier: Apache-2.0
//
// The rates of operations on rows (fit/row_work.hpp) with the kernels and the workers of later runs: of one
// token, whose rows one worker takes, and of 512 tokens, whose rows all workers share. The state of a delta
// net is divided among all workers in both cases; for one token it comes from memory.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"
#include "mica_tools/fit/speed.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace mica::fit {

template <Executor E, Kernels K>
class RowProbe {
 public:
  static constexpr std::size_t pieces = 2 * plan::row_operations;  // of measure()

  /// x, codes: (512, 4096); y: as much, and is overwritten. memory: floats that stay as they are.
  RowProbe(E& executor, MatrixView<const float> x, MatrixView<float> y, kernel::QuantizedRows codes,
           std::span<float> memory)
      : executor_(executor), x_(x), y_(y), codes_(codes), memory_(memory), softmax_(executor.workers()) {}

  /// time(work) answers the seconds of work().
  template <class Time>
  [[nodiscard]] plan::RowSpeed measure(Time&& time) {
    using Op = plan::RowOperation;
    plan::RowSpeed speed;
    const auto rows = [&](Op operation, auto&& work) {
      const auto run = [&](std::size_t times, std::size_t tokens) {
        const double seconds = time([&] {
          for (std::size_t i = 0; i < times; ++i) {
            executor_.run(tokens, [&](std::size_t row, std::size_t) noexcept { work(row); });
          }
        });
        return static_cast<double>(times * tokens * x_.cols()) / seconds;
      };
      speed.one[operation] = run(x_.rows(), 1);
      speed.many[operation] = run(1, x_.rows());
    };
    rows(Op::norm, [&](std::size_t r) {
      K::rms_norm(kernel::RmsNormArgs{x_, nullptr, 1e-6f, y_, r, r + 1});
    });
    rows(Op::quantize, [&](std::size_t r) { K::quantize(kernel::QuantizeArgs{x_, codes_, r, r + 1}); });
    rows(Op::gate, [&](std::size_t r) {
      K::gated(kernel::GatedArgs{kernel::Gate::silu, x_, x_, y_, r, r + 1});
    });
    rows(Op::add, [&](std::size_t r) { K::add(kernel::AddArgs{x_, y_, 0.001f, r, r + 1}); });
    rows(Op::rope, [&](std::size_t r) {
      const auto angles = x_.cols(0, head_dim / 2);
      K::rope(kernel::RopeArgs{y_, head_dim, head_dim, kernel::RopePairs::halves, angles, angles, r, r + 1});
    });
    const auto both = [&](Op operation, auto&& numbers_of_run) {
      for (const bool alone : {true, false}) {
        double numbers = 0;
        const double seconds = time([&] { numbers = numbers_of_run(alone); });
        (alone ? speed.one : speed.many)[operation] = numbers / seconds;
      }
    };
    both(Op::convolve, [&](bool alone) { return convolve(alone ? 1 : x_.rows(), alone ? x_.rows() : 1); });
    both(Op::delta_rule, [&](bool alone) {
      const std::size_t all = memory_.size() / (head_dim * head_dim);
      return alone ? delta_rule(1, all) : delta_rule(x_.rows(), std::min<std::size_t>(all, 16));
    });
    both(Op::softmax, [&](bool alone) { return softmax(alone ? 4 : 64); });
    return speed;
  }

 private:
  static constexpr std::size_t head_dim = 128, taps = 4, channels = 256, columns = 64;

  /// `times` convolutions of some tokens; the numbers that they make.
  double convolve(std::size_t tokens, std::size_t times) noexcept {
    const std::size_t width = x_.cols();
    for (std::size_t i = 0; i < times; ++i) {
      executor_.run(ceil_div(width, channels), [&](std::size_t task, std::size_t) noexcept {
        K::causal_conv(kernel::CausalConvArgs{x_.rows(0, tokens), weights_.data(), taps,
                                              MatrixView<float>(conv_.data(), taps - 1, width),
                                              y_.rows(0, tokens), task * channels, (task + 1) * channels});
      });
    }
    return static_cast<double>(times * tokens * width);
  }
  /// A step of `heads` heads, each with its state in the memory. With a beta of 0 no state changes.
  double delta_rule(std::size_t tokens, std::size_t heads) noexcept {
    const std::size_t strips = head_dim / columns, places = x_.cols() / head_dim;
    executor_.run(heads * strips, [&](std::size_t task, std::size_t) noexcept {
      const std::size_t head = task / strips, first = task % strips * columns;
      const auto of = x_.rows(0, tokens).cols(head % places * head_dim, head_dim);
      K::delta_rule(kernel::DeltaRuleArgs{
          of, of, of, ones_.data(), zeros_.data(), 1,
          MatrixView<float>(memory_.data() + head * head_dim * head_dim, head_dim, head_dim),
          y_.rows(0, tokens).cols(head % places * head_dim, head_dim), first, first + columns});
    });
    return static_cast<double>(tokens * heads * head_dim * head_dim);
  }
  /// Chunks of attention scores, some for each worker.
  double softmax(std::size_t rows) noexcept {
    const std::size_t chunks = 64 * executor_.workers();
    executor_.run(chunks, [&](std::size_t, std::size_t worker) noexcept {
      Scores& s = softmax_[worker];
      kernel::AttentionArgs args;
      args.visible = s.visible.data();
      args.p = {s.p.data(), rows, kernel::chunk_tokens};
      args.max = s.max.data();
      args.sum = s.sum.data();
      args.q = {s.q.data(), rows, 1};
      K::attention_softmax(args);
    });
    return static_cast<double>(chunks * rows * kernel::chunk_tokens);
  }

  /// The scores of one worker.
  struct Scores {
    std::vector<float> p = std::vector<float>(64 * kernel::chunk_tokens, 0.5f);
    std::vector<float> q = std::vector<float>(64), max = q, sum = q;
    std::vector<kernel::Visible> visible = std::vector<kernel::Visible>(64, {0, kernel::chunk_tokens});
  };

  E& executor_;
  MatrixView<const float> x_;
  MatrixView<float> y_;
  kernel::QuantizedRows codes_;
  std::span<float> memory_;
  std::vector<Scores> softmax_;
  std::vector<float> weights_ = std::vector<float>(x_.cols() * taps, 0.25f);
  std::vector<float> conv_ = std::vector<float>((taps - 1) * x_.cols());
  std::vector<float> ones_ = std::vector<float>(x_.rows(), 1.0f);
  std::vector<float> zeros_ = std::vector<float>(x_.rows());
};

}  // namespace mica::fit
