// SPDX-License-Identifier: Apache-2.0
//
// Alternating updates (arXiv 2301.13310) as Gemma 3n has them. A token has several residual streams; the
// blocks of a layer work on the first, x. Before these blocks a layer predicts all streams; after them it
// corrects all streams by the change of x:
//
//   predict:  s_i += sum of p[i, j] s_j over j         p = P m, from x before the blocks; x = s_0
//   correct:  s_i += (1 + c[i]) (x - s_0)              c = C m, from x after them; x = s_0
//             m = tanh(router . RMSNorm(x) / width)
//
// The streams of a token lie one after the other, [s_0 | s_1 | ...]; x is equal to s_0, except between
// prediction and correction.
#pragma once

#include "mica/block/norm.hpp"
#include "mica/kernel/activation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace mica::block {

inline constexpr std::size_t max_streams = 8;
/// Of the buffer that streams are kept in while a step runs.
inline constexpr char streams_key = 0;

/// m = tanh(m / width), in place.
template <Executor E>
void modalities(E& executor, MatrixView<float> m, std::size_t width) noexcept {  // (n, streams)
  const float scale = 1.0f / static_cast<float>(width);
  executor.run(m.rows(), [&](std::size_t row, std::size_t) noexcept {
    for (float& v : m[row]) v = kernel::tanh(v * scale);
  });
}

/// Predicts every stream, (n, count * width), from all of them by p, (n, count * count); the first one is
/// taken from x, and given to it. At most max_streams of them.
template <Executor E>
void predict_streams(E& executor, MatrixView<float> x, MatrixView<float> streams,
                     MatrixView<const float> p) noexcept {
  const std::size_t width = x.cols(), count = streams.cols() / width;
  executor.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
    float* const s = streams[row].data();
    std::copy_n(x[row].data(), width, s);
    std::array<float, max_streams> old;
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t j = 0; j < count; ++j) old[j] = s[j * width + k];
      for (std::size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (std::size_t j = 0; j < count; ++j) sum += p[row][i * count + j] * old[j];
        s[i * width + k] += sum;
      }
    }
    std::copy_n(s, width, x[row].data());
  });
}

/// Corrects every stream by x - s_0 and c, (n, count), and gives the first one to x.
template <Executor E>
void correct_streams(E& executor, MatrixView<float> x, MatrixView<float> streams,
                     MatrixView<const float> c) noexcept {
  const std::size_t width = x.cols(), count = streams.cols() / width;
  executor.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
    float* const s = streams[row].data();
    for (std::size_t k = 0; k < width; ++k) x[row][k] -= s[k];
    for (std::size_t i = 0; i < count; ++i) {
      const float weight = 1 + c[row][i];
      for (std::size_t k = 0; k < width; ++k) s[i * width + k] += weight * x[row][k];
    }
    std::copy_n(s, width, x[row].data());
  });
}

/// Every stream but the first += RMSNorm(scratch) * norm.
template <Kernels K, Executor E>
void join_streams(E& executor, const Branch& b, MatrixView<float> streams) noexcept {
  const std::size_t width = b.scratch.cols();
  executor.run(b.scratch.rows(), [&](std::size_t row, std::size_t) noexcept {
    K::rms_norm(kernel::RmsNormArgs{b.scratch, b.norm, b.epsilon, b.scratch, row, row + 1});
    for (std::size_t first = width; first < streams.cols(); first += width) {
      K::add(kernel::AddArgs{b.scratch, streams.cols(first, width), 1, row, row + 1});
    }
  });
}

namespace detail {

/// The mean of squares of a row.
[[nodiscard]] inline double mean_square(std::span<const float> x) noexcept {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum / static_cast<double>(x.size());
}

}  // namespace detail

/// Gives every row of x the length of the row of `like`; a shorter one than sqrt(1e-5 width) counts as that
/// long.
template <Executor E>
void match_magnitude(E& executor, MatrixView<const float> like, MatrixView<float> x) noexcept {  // (n, width)
  executor.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
    const double wanted = detail::mean_square(like[row]), found = detail::mean_square(x[row]);
    const auto factor = static_cast<float>(std::sqrt(wanted / (found < 1e-5 ? 1e-5 : found)));
    for (float& v : x[row]) v *= factor;
  });
}

}  // namespace mica::block
