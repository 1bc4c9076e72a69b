// SPDX-License-Identifier: Apache-2.0
//
// The block that multiplies the residual stream by a number from the file, at the end of a layer (Gemma 4).
#pragma once

#include "mica/block/concept.hpp"

namespace mica::block {

struct OutputScale : Stateless, Unbuffered {
  // Required by Block
  static constexpr std::string_view name = "output scale";
  struct Config {};
  struct Tensors {
    TensorRef factor;  // (1)
  };
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config&) {
    return {files.vector("layer_output_scale.weight", 1)};
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config&, const Tensors& t, const Buffers&) noexcept {
    step.scale(step.residual(), *step.vector(t.factor));
    return true;
  }
};
static_assert(Block<OutputScale>);

}  // namespace mica::block
