// SPDX-License-Identifier: Apache-2.0
//
// The input of a head for multi-token prediction: the token that was chosen last, and the trunk's hidden
// state of the token before it (DeepSeek-V3, arXiv:2412.19437, section 2.2):
//
//   residual = proj [ RMSNorm(embedding of token i + 1) | RMSNorm(hidden state of token i) ]
//
// The layer behind it is one of the trunk's kind (arch/mtp.hpp).
#pragma once

#include "mica/block/concept.hpp"
#include "mica/block/norm.hpp"

#include <string_view>

namespace mica::block {

/// The first block of the head. Step::mtp_input() has its rows.
struct MtpInput : Stateless {
  // Required by Block
  static constexpr std::string_view name = "mtp input";
  struct Config {};
  struct Tensors {
    TensorRef token_norm, hidden_norm;  // (width)
    TensorRef proj;                     // (width, 2 * width)
  };
  struct Buffers {
    MatrixView<float> normed;  // (n, 2 * width)
  };
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config&) {
    Tensors t;
    t.token_norm = files.norm("nextn.enorm.weight");
    t.hidden_norm = files.norm("nextn.hnorm.weight");
    t.proj = files.matrix("nextn.eh_proj.weight", files.width(), 2 * files.width());
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config&) {
    const std::size_t width = 2 * scratch.sizes().width;
    scratch.input(width);
    return {scratch.rows(width)};
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config&, const Tensors& t, const Buffers& b) noexcept {
    using Kernels = typename Step::Kernels;
    const std::size_t width = step.width();
    const MatrixView<float> rows = step.mtp_input();                                         // (n, 2 * width)
    const MatrixView<float> tokens = rows.cols(0, width), hidden = rows.cols(width, width);  // (n, width)
    const MatrixView<float> out = b.normed;
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      Kernels::rms_norm(kernel::RmsNormArgs{tokens, step.vector(t.token_norm), step.epsilon(),
                                            out.cols(0, width), row, row + 1});
      Kernels::rms_norm(kernel::RmsNormArgs{hidden, step.vector(t.hidden_norm), step.epsilon(),
                                            out.cols(width, width), row, row + 1});
    });
    step.project(out, t.proj, step.residual(), false);
    return true;
  }
};
static_assert(Block<MtpInput>);

}  // namespace mica::block
