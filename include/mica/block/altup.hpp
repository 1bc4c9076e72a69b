// SPDX-License-Identifier: Apache-2.0
//
// The block of several residual streams (block/detail/streams.hpp). A model uses it in four places: it splits
// the stream when a step begins, predicts before the other blocks of a layer, corrects after them, and merges
// at the end.
#pragma once

#include "mica/block/concept.hpp"
#include "mica/block/detail/streams.hpp"
#include "mica/block/linear.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace mica::block {

struct AltUp : Stateless {
  /// Where a model uses it: when a step begins, before and after the other blocks of a layer, at its end.
  enum class Part : std::uint8_t { split, predict, correct, merge };

  // Required by Block
  static constexpr std::string_view name = "altup";
  struct Config {
    Part part = Part::predict;
    std::size_t streams = 2;  // of a token, the first among them
  };
  struct Tensors {
    TensorRef proj;                 // ((streams - 1) * width, width): of split and merge
    TensorRef router, router_norm;  // (streams, width), (width): of predict and correct
    TensorRef coefficients;         // (streams * streams, streams) or (streams, streams)
  };
  struct Buffers {
    MatrixView<float> streams;       // (n, streams * width)
    MatrixView<float> merged;        // (n, width)
    MatrixView<float> modalities;    // (n, streams)
    MatrixView<float> coefficients;  // (n, streams * streams) or (n, streams)
  };
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    const std::size_t width = files.width(), rest = (c.streams - 1) * width, n = c.streams;
    Tensors t;
    if (c.part == Part::split) t.proj = files.matrix("altup_proj.weight", rest, width);
    if (c.part == Part::merge) t.proj = files.matrix("altup_unembd_proj.weight", rest, width);
    if (t.proj.present()) return t;
    const bool predicts = c.part == Part::predict;
    t.router = files.matrix("altup_router.weight", n, width);
    t.router_norm = files.norm("altup_router_norm.weight");
    t.coefficients = predicts ? files.matrix("altup_predict_coef.weight", n * n, n)
                              : files.matrix("altup_correct_coef.weight", n, n);
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) {
    const std::size_t width = scratch.sizes().width;
    Buffers b;
    b.streams = scratch.kept(&streams_key, c.streams * width);
    if (c.part == Part::merge) b.merged = scratch.rows(width);
    if (c.part == Part::split || c.part == Part::merge) return b;
    b.modalities = scratch.rows(c.streams);
    b.coefficients = scratch.rows(c.part == Part::predict ? c.streams * c.streams : c.streams);
    return b;
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    if (c.part == Part::split) split(step, t, b.streams);
    if (c.part == Part::predict) {
      predict_streams(step.executor(), step.residual(), b.streams, coefficients(step, t, b));
    }
    if (c.part == Part::correct) {
      correct_streams(step.executor(), step.residual(), b.streams, coefficients(step, t, b));
    }
    if (c.part == Part::merge) merge(step, t, b);
    return true;
  }

 private:
  /// The other streams begin as projections of the first, as long as it is.
  template <class Step>
  static void split(Step& step, const Tensors& t, MatrixView<float> streams) noexcept {
    const std::size_t width = step.width();
    step.project(step.residual(), t.proj, streams.cols(width, streams.cols() - width), false);
    for (std::size_t first = width; first < streams.cols(); first += width) {
      match_magnitude(step.executor(), step.residual(), streams.cols(first, width));
    }
  }
  /// The tensor of coefficients times m, which the router makes of the residual stream.
  template <class Step>
  [[nodiscard]] static MatrixView<float> coefficients(Step& step, const Tensors& t,
                                                      const Buffers& b) noexcept {
    using Product = typename Step::Product;
    const auto router = step.matrix(t.router);
    const auto x = step.norm(t.router_norm, needs_codes(router));
    step.observe(t.router, x.values);
    project<typename Step::Kernels>(step.executor(), x, std::array{Product{router, b.modalities}});
    modalities(step.executor(), b.modalities, step.width());
    step.project(b.modalities, t.coefficients, b.coefficients, false);
    return b.coefficients;
  }
  /// residual = the mean of the streams, the others projected and as long as the first.
  template <class Step>
  static void merge(Step& step, const Tensors& t, const Buffers& b) noexcept {
    using Kernels = typename Step::Kernels;
    const std::size_t width = step.width(), streams = b.streams.cols() / width;
    for (std::size_t s = 1; s < streams; ++s) {
      step.project(b.streams.cols(s * width, width), t.proj.slice((s - 1) * width, width), b.merged, false);
      match_magnitude(step.executor(), b.streams.cols(0, width), b.merged);
      step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
        Kernels::add(kernel::AddArgs{b.merged, step.residual(), 1, row, row + 1});
      });
    }
    step.scale(step.residual(), 1.0f / static_cast<float>(streams));
  }
};
static_assert(Block<AltUp>);

}  // namespace mica::block
