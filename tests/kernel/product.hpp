// SPDX-License-Identifier: Apache-2.0
//
// One matrix product, computed by the specification and by the vector kernels on every target.

#pragma once

#include "kernel/guarded.hpp"
#include "kernel/targets.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/highway/reading.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/tensor/packing.hpp"

namespace mica::test {

/// Weights and activations that end where memory ends.
template <class F>
struct Product {
  Guarded<typename F::Block> blocks;
  Activations x;
  std::size_t rows;
  std::size_t cols;

  Product(std::size_t n_rows, std::size_t n_blocks, std::size_t tokens, CounterRng& rng)
      : blocks(n_rows * n_blocks),
        x(tokens, n_blocks * F::block_size),
        rows(n_rows),
        cols(n_blocks * F::block_size) {
    for (auto& block : blocks) fill_random<F>(block, rng);
    fill_noise(x.values, rng);
    prepare();
  }
  void prepare() {
    if (F::arithmetic == format::Arithmetic::integer || x.fast8_from != 0) x.quantize();
  }
  void use_fast8(std::size_t from = kernel::fast8_tokens) {
    x.fast8_from = from;
    prepare();
  }

  template <class K>
  std::vector<float> run(std::size_t first, std::size_t last, bool add) {
    return run_with<K, F>({blocks.data(), rows, cols}, first, last, add);
  }
  /// The same with packed rows.
  template <class K>
  std::vector<float> run_packed(std::size_t first, std::size_t last, bool add) {
    Guarded<typename F::Block> packed(blocks.size());
    tensor::pack(tensor::Matrix<F>(blocks.data(), rows, cols), reinterpret_cast<std::byte*>(packed.data()));
    return run_with<K, tensor::Packed<F>>({packed.data(), rows, cols}, first, last, add);
  }
  /// The same with rows packed in twelve bits; empty where they cannot be.
  template <class K>
  std::vector<float> run_packed12(std::size_t first, std::size_t last, bool add) {
    Guarded<std::byte> packed(tensor::packed12_bytes(rows, cols));
    if (!tensor::pack12(tensor::Matrix<F>(blocks.data(), rows, cols), packed.data())) return {};
    const auto* const data = reinterpret_cast<const typename F::Block*>(packed.data());
    return run_with<K, tensor::Packed12<F>>({data, rows, cols}, first, last, add);
  }
  template <class K, class G>
  std::vector<float> run_with(tensor::Matrix<G> w, std::size_t first, std::size_t last, bool add) {
    std::vector<float> y(x.n * rows, 0.5f);
    kernel::MatmulArgs<G> args;
    args.w = w;
    args.x = {x.view(), x.quantized()};
    args.y = {y.data(), x.n, rows};
    args.first = first;
    args.last = last;
    args.add = add;
    K::template matmul<G>(args);
    return y;
  }

  /// K gives the bits of the specification. Rows outside [first, last) must stay, so everything is compared.
  template <class K>
  void check_kernels(std::size_t first, std::size_t last, bool add) {
    INFO(F::name << ' ' << rows << " x " << cols << ", tokens " << x.n << ", rows " << first << " to "
                 << last);
    const std::vector<float> expected = run<kernel::Scalar>(first, last, add),
                             actual = run<K>(first, last, add);
    CHECK(differences(expected.data(), actual.data(), expected.size()) == 0);
    if constexpr (PackableFormat<F>) {
      using kernel::highway::Reading;
      for (const Reading reading : {Reading::in_order, Reading::apart}) {
        if (x.n > 1 && reading == Reading::in_order) continue;  // of one token alone
        kernel::highway::reading_choice<F>().set(reading);
        const std::vector<float> packed = run_packed<K>(first, last, add);
        CHECK(differences(expected.data(), packed.data(), expected.size()) == 0);
      }
      kernel::highway::reading_choice<F>().set({});
    }
  }
  void check(std::size_t first, std::size_t last, bool add = false) {
    for_each_target([&] { check_kernels<kernel::Highway>(first, last, add); });
  }
  void check() { check(0, rows); }
};

}  // namespace mica::test
