// SPDX-License-Identifier: Apache-2.0
//
// Several residual streams, as Gemma 3n has them (block/altup.hpp).
#pragma once

#include "mica/model/forward.hpp"

namespace mica::model {

/// What a layer's own embedding is gated by: the residual stream, scaled where there are several.
template <class M>
MatrixView<float> Forward<M>::per_layer_input(std::size_t i) noexcept {
  const float* const factors = vector(weights_.layer(i).altup.scale);
  if (factors == nullptr) return residual_;
  const View scaled = a_.normed(n_, config_.width);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    const auto x = residual_[row];
    std::transform(x.begin(), x.end(), factors, scaled[row].begin(), std::multiplies<>());
  });
  return scaled;
}

/// The other streams begin as projections of the first, as long as it is.
template <class M>
void Forward<M>::split_streams() noexcept {
  const std::size_t width = config_.width;
  const View all = streams();
  project(residual_, weights_.streams_in(), all.cols(width, all.cols() - width), false);
  for (std::size_t s = 1; s < config_.streams; ++s) {
    block::match_magnitude(executor_, residual_, all.cols(s * width, width));
  }
}

/// `of` times m, which the router makes of the residual stream.
template <class M>
MatrixView<float> Forward<M>::stream_coefficients(const AltUpTensors& t, const TensorRef& of) noexcept {
  const View m = a_.modalities(n_, config_.streams), out = a_.coefficients(n_, of.rows);
  const Matrix router = matrix(t.router);
  const auto x = norm(residual_, vector(t.router_norm), block::needs_codes(router));
  observe(t.router, x.values);
  block::project<Kernels>(executor_, x, std::array{Product{router, m}});
  block::modalities(executor_, m, config_.width);
  project(m, of, out, false);
  return out;
}

/// residual = (residual + y + RMSNorm(up(down(y)))) / sqrt(2), where y went into the attention before, and is still there.
template <class M>
void Forward<M>::laurel(const LaurelTensors& t) noexcept {
  const View y = a_.normed(n_, config_.width), low = a_.gate(n_, t.down.rows);
  project(y, t.down, low, false);
  const block::Branch b = branch(t.norm);
  project(low, t.up, b.target(), b.direct());
  block::join_branch<Kernels>(executor_, b);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    Kernels::add(kernel::AddArgs{y, residual_, 1, row, row + 1});
  });
  scale(residual_, 1.0f / std::sqrt(2.0f));
}

/// residual = the mean of the streams, the others projected and as long as the first.
template <class M>
void Forward<M>::merge_streams() noexcept {
  const std::size_t width = config_.width;
  const View first = streams().cols(0, width), out = a_.branch(n_, width);
  for (std::size_t s = 1; s < config_.streams; ++s) {
    TensorRef w = weights_.streams_out();
    w.rows = width;
    w.first_row = (s - 1) * width;
    project(streams().cols(s * width, width), w, out, false);
    block::match_magnitude(executor_, first, out);
    executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
      Kernels::add(kernel::AddArgs{out, residual_, 1, row, row + 1});
    });
  }
  scale(residual_, 1.0f / static_cast<float>(config_.streams));
}

}  // namespace mica::model
