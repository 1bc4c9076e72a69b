// SPDX-License-Identifier: Apache-2.0
//
// A block that the library does not have. It keeps a moving average of what the residual stream was, and adds
// a part of it:
//
//   average   = decay * average + (1 - decay) * RMSNorm(residual)
//   residual += strength * average
//
// The average is what a sequence keeps for this block: it is saved, shared and rewound like that of any other
// block.
#pragma once

#include "mica/block/concept.hpp"

#include <cstddef>
#include <string_view>

struct MovingAverage {
  // Required by Block
  static constexpr std::string_view name = "moving average";
  struct Config {
    std::size_t width = 0;
    float decay = 0.9f;
    float strength = 0;
  };
  struct Tensors {
    mica::block::TensorRef norm;  // (width)
  };
  struct Buffers {
    mica::MatrixView<float> averages;  // (n, width)
  };
  /// Found in the file and checked, when a model is made. This one is shared with the attention of the layer.
  static Tensors bind(mica::block::TensorBinder& files, const Config&) {
    return {files.norm("attn_norm.weight")};
  }
  /// Counted when a model is made or planned, and cut from the memory of a step when it runs.
  static Buffers buffers(mica::block::Scratch& scratch, const Config& c) { return {scratch.rows(c.width)}; }
  static void plan(mica::block::StatePlan& state, const Config& c) { state.keep_floats(c.width); }

  template <class Step>
  static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    const auto averages = b.averages;                // (n, width)
    const auto x = step.norm(t.norm, false).values;  // (n, width)
    for (std::size_t part = 0; part < step.parts().size(); ++part) {
      float* const average = step.floats(part);
      const auto rows = step.rows_of(part);
      for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
        for (std::size_t i = 0; i < c.width; ++i) {
          averages[row][i] = average[i] = c.decay * average[i] + (1 - c.decay) * x[row][i];
        }
      }
    }
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      Step::Kernels::add(mica::kernel::AddArgs{averages, step.residual(), c.strength, row, row + 1});
    });
    return true;
  }
};
static_assert(mica::Block<MovingAverage>);
