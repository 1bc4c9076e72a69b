// SPDX-License-Identifier: Apache-2.0
//
// Contract: y = x W^T for a slice of the rows of W. The order of float operations per output is part of the
// contract, so every kernel (one token or many, any layout, any instruction set with FMA) gives the same
// bits. fma() rounds once, + and * round each; nothing else may be fused.
//
// Integer formats. Let a block be unpacked into code, scale, min, d, dmin (format/concept.hpp), and let x be
// int8 codes with a scale xd and sums per 32 (kernel/quantize.hpp). For one output:
//
//   y = 0
//   for each block of the row, in order:
//     acc = 0, mac = 0
//     for each 32 values s of the block, in order:
//       isum = sum over the groups g in s of scale[g] * (sum of code * x code)
//       acc  = fma(xd[s], float(isum), acc)                         isum is exact in a float, or rounds once
//       if the format has mins, for each group g in s, in order:
//         mac = fma(float(min[g]), xd[s] * float(sum of x codes in g), mac)
//     y = fma(d, acc, y)
//     if the format has mins: y = fma(-dmin, mac, y)
//
// Real formats. Weights decode to floats w; sixteen chains take k in turn and meet in a fixed tree:
//
//   c[i] = 0 for i in 0..15
//   c[k % 16] = fma(w[k], x[k], c[k % 16]) for k in order
//   y = tree16(c): c[i] += c[i + 8], then c[i] += c[i + 4], c[i] += c[i + 2], c[0] + c[1]
#pragma once

#include "mica/base/matrix_view.hpp"
#include "mica/kernel/quantize.hpp"
#include "mica/tensor/packed12.hpp"

namespace mica::kernel {

/// Chains of a float reduction.
inline constexpr std::size_t chains = 16;

/// The activations of a product; a format reads the form that its arithmetic needs.
struct Input {
  MatrixView<const float> values;  // (n, k), for real formats
  QuantizedRows codes;             // (n, k), for integer formats
};

/// Rows [first, first + n).
[[nodiscard]] constexpr Input rows_of(const Input& x, std::size_t first, std::size_t n) noexcept {
  return {x.values.rows() == 0 ? x.values : x.values.rows(first, n), rows_of(x.codes, first, n)};
}

/// y[t][r] = (add ? y[t][r] : 0) + product for rows r in [first, last) and every token t.
/// The sum with `add` is one plain addition after the product.
template <WeightFormat F>
struct MatmulArgs {
  tensor::Matrix<F> w;  // (rows, k)
  Input x;              // (n, k)
  MatrixView<float> y;  // (n, rows)
  std::size_t first = 0;
  std::size_t last = 0;
  bool add = false;  // y += the product, rather than =
};

}  // namespace mica::kernel
