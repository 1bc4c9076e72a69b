// SPDX-License-Identifier: Apache-2.0
//
// A product of many tokens with random weights of one format, for benchmarks of kernels.

#pragma once

#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/tensor/packed.hpp"

#include <string>

namespace bench {

using namespace mica;  // NOLINT: of programs

/// Width of rows, and the maximum of tokens.
constexpr std::size_t cols = 4096;
constexpr std::size_t tokens = 512;

/// A block of random codes with small scales.
template <class F>
void fill(typename F::Block& block, CounterRng& rng) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&block);
  for (std::size_t i = 0; i < sizeof(block); ++i) bytes[i] = static_cast<std::uint8_t>(rng.next());
  if constexpr (requires { block.d.bits; }) block.d = to_half(0.01f);
  if constexpr (requires { block.dmin; }) block.dmin = to_half(0.02f);
  if constexpr (requires { block.m; }) block.m = to_half(-0.1f);
  if constexpr (requires { F::set_scale(block, Half()); }) F::set_scale(block, to_half(0.01f));
  if constexpr (requires { block.exponent; }) block.exponent = 120;
  if constexpr (F::block_size == 1 && EncodableFormat<F>) {
    const auto value = static_cast<float>(rng.uniform() - 0.5);
    F::encode(&value, block);
  }
}

/// Activations in both forms.
struct Inputs {
  Pages<float> values{tokens * cols};
  Pages<std::int8_t> codes{tokens * cols};
  Pages<float> scales{tokens * cols / 32};
  Pages<std::int16_t> sums{tokens * cols / 16};

  Inputs() {
    CounterRng rng(1);
    for (float& v : values) v = static_cast<float>(rng.uniform() - 0.5);
    kernel::Scalar::quantize({{values.data(), tokens, cols}, quantized(tokens), 0, tokens});
  }
  [[nodiscard]] kernel::QuantizedRows quantized(std::size_t n) {
    return {codes.data(), scales.data(), sums.data(), n, cols};
  }
};

/// The format in files.
template <class G>
struct FileForm {
  using type = G;
};
template <class F>
struct FileForm<tensor::Packed<F>> {
  using type = F;
};

/// Weights of `bytes` bytes and outputs. G: a format, or its packed form.
template <class G>
struct Product {
  using F = typename FileForm<G>::type;
  std::size_t rows;
  Pages<typename F::Block> blocks;
  Pages<float> y;
  Inputs& inputs;

  Product(std::size_t bytes, Inputs& in)
      : rows(bytes / (cols / F::block_size * sizeof(typename F::Block)) / 32 * 32),
        blocks(rows * (cols / F::block_size)),
        y(tokens * rows),
        inputs(in) {
    CounterRng rng(2);
    const std::size_t distinct = std::min<std::size_t>(blocks.size(), 4096 * 256 / F::block_size);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i < distinct)
        fill<F>(blocks[i], rng);
      else
        blocks[i] = blocks[i - distinct];
    }
    if constexpr (tensor::is_packed<G>) pack_in_place();
  }
  void pack_in_place() {
    const std::size_t panel = tensor::Rows16::rows * cols / F::block_size;  // blocks
    std::vector<typename F::Block> copy(panel);
    for (std::size_t i = 0; i < blocks.size(); i += panel) {
      std::copy_n(blocks.data() + i, panel, copy.data());
      tensor::pack(tensor::Matrix<F>(copy.data(), tensor::Rows16::rows, cols),
                   reinterpret_cast<std::byte*>(blocks.data() + i));
    }
  }
  /// Rows [0, last) times n tokens by kernels K.
  template <class K>
  void run(std::size_t n, std::size_t last) {
    kernel::MatmulArgs<G> a;
    a.w = {blocks.data(), rows, cols};
    a.x = {{inputs.values.data(), n, cols}, inputs.quantized(n)};
    a.y = {y.data(), n, rows};
    a.last = last;
    K::template matmul<G>(a);
  }
  /// Ends the program where K differs from the specification.
  template <class K>
  void check() {
    for (const std::size_t n : std::initializer_list<std::size_t>{1, 3, 11}) {
      run<kernel::Scalar>(n, 24);
      const std::vector<float> expected(y.begin(), y.begin() + static_cast<long>(n * rows));
      run<K>(n, 24);
      if (!std::equal(expected.begin(), expected.end(), y.begin())) {
        std::fprintf(stderr, "%s: not what the specification says\n", std::string(F::name).c_str());
        std::exit(1);
      }
    }
  }
  [[nodiscard]] double gb() const {
    return static_cast<double>(blocks.size() * sizeof(typename F::Block)) / 1e9;
  }
  [[nodiscard]] double gmac(std::size_t n) const { return static_cast<double>(rows * cols * n) / 1e9; }
};

}  // namespace bench
