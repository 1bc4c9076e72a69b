// SPDX-License-Identifier: Apache-2.0
//
// The block of a learnt residual of low rank (LAuReL, Gemma 3n). It has the same input as the attention
// block, and runs after it:
//
//   residual = (residual + y + RMSNorm(up(down(y)))) / sqrt(2)
//   y: the normed input of the attention before it
#pragma once

#include "mica/block/concept.hpp"
#include "mica/block/norm.hpp"

#include <cmath>
#include <cstddef>

namespace mica::block {

struct Laurel : Stateless {
  // Required by Block
  static constexpr std::string_view name = "laurel";
  struct Config {
    std::size_t rank = 0;
  };
  struct Tensors {
    TensorRef down;  // (rank, width)
    TensorRef up;    // (width, rank)
    TensorRef norm;  // (width)
  };
  struct Buffers {
    MatrixView<float> low;  // (n, rank)
  };
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    Tensors t;
    t.down = files.matrix("laurel_l.weight", c.rank, files.width());
    t.up = files.matrix("laurel_r.weight", files.width(), c.rank);
    t.norm = files.norm("laurel_post_norm.weight");
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) noexcept {
    scratch.input(c.rank);
    scratch.branch(true);
    return {scratch.rows(c.rank)};
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config&, const Tensors& t, const Buffers& b) noexcept {
    using Kernels = typename Step::Kernels;
    const MatrixView<float> low = b.low, y = step.input();
    step.project(y, t.down, low, false);
    step.add_product(low, t.up, t.norm);
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      Kernels::add(kernel::AddArgs{y, step.residual(), 1, row, row + 1});
    });
    step.scale(step.residual(), 1.0f / std::sqrt(2.0f));
    return true;
  }
};
static_assert(Block<Laurel>);

}  // namespace mica::block
