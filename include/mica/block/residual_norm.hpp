// SPDX-License-Identifier: Apache-2.0
//
// The block that norms the residual stream itself, where a family has its norms behind attention and
// feed-forward (post-norm, BERT):
//
//   residual = LayerNorm(residual) * weight + bias
#pragma once

#include "mica/block/concept.hpp"
#include "mica/block/norm.hpp"

#include <cstddef>
#include <string_view>

namespace mica::block {

struct ResidualNorm : Stateless, Unbuffered {
  // Required by Block
  static constexpr std::string_view name = "residual norm";
  struct Config {
    std::string_view norm = "attn_output_norm";  // name of its tensors
  };
  struct Tensors {
    TensorRef weight, bias;  // (width); the bias may be absent
  };
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    return {files.norm(join(c.norm, ".weight")), files.norm_if_there(join(c.norm, ".bias"))};
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config&, const Tensors& t, const Buffers&) noexcept {
    const auto x = step.residual();
    static_cast<void>(layer_norm<typename Step::Kernels>(step.executor(), x, step.vector(t.weight),
                                                         step.vector(t.bias), step.epsilon(), x, {}, false));
    return true;
  }
};
static_assert(Block<ResidualNorm>);

}  // namespace mica::block
