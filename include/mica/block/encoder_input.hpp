// SPDX-License-Identifier: Apache-2.0
//
// What text encoders add to token embeddings before their layers: a learned row for the position, and one for
// the type of the token, which is its text in a pair.
//
//   residual += positions[position] + types[separators before the token]
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/block/concept.hpp"
#include "mica/kernel/elementwise.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace mica::block {

/// Begins a step: stands in arch::Config::begin.
struct EncoderInput : Stateless, Unbuffered {
  // Required by Block
  static constexpr std::string_view name = "encoder input";
  struct Config {
    std::size_t positions = 0;         // rows of learned positions; 0: there are none
    std::size_t types = 0;             // rows of token types; 0: there are none
    TokenId separator = 0xFFFF'FFFFU;  // ends a text: the tokens behind it have the next type
  };
  struct Tensors {
    TensorRef positions;  // (positions, width)
    TensorRef types;      // (types, width)
  };
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    Tensors t;
    if (c.positions != 0) t.positions = files.rows("position_embd.weight", c.positions, files.width());
    if (c.types != 0) t.types = files.rows("token_types.weight", c.types, files.width());
    return t;
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers&) noexcept {
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      if (c.positions != 0) add_row(step, t.positions, step.position_of(row), row);
      if (c.types != 0)
        add_row(step, t.types, std::min(step.count_before(row, c.separator), c.types - 1), row);
    });
    return true;
  }

 private:
  /// Row `from` of a matrix is added to a row of the residual stream, by way of that row of step.input().
  template <class Step>
  static void add_row(Step& step, const TensorRef& matrix, std::size_t from, std::size_t row) noexcept {
    const auto x = step.input();  // (n, width)
    step.matrix(matrix).decode_row(from, x[row].data());
    Step::Kernels::add(kernel::AddArgs{x, step.residual(), 1, row, row + 1});
  }
};
static_assert(Block<EncoderInput>);

}  // namespace mica::block
