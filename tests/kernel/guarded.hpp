// SPDX-License-Identifier: Apache-2.0
//
// Numbers for kernels to trip over: arrays that end where readable memory ends, random blocks, exact
// comparison.

#pragma once

#include "mica/base/matrix_view.hpp"
#include "mica/base/rng.hpp"
#include "mica/format/concept.hpp"
#include "mica/kernel/quantize.hpp"
#include "mica/kernel/scalar/elementwise.hpp"
#include "mica/tensor/matrix.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <vector>
#include <sys/mman.h>
#include <unistd.h>

namespace mica::test {

/// n numbers, the last of them right before a page that may not be touched. Reading or writing past the end
/// crashes.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t n) : n_(n), page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    const std::size_t bytes = n * sizeof(T);
    size_ = (bytes + page_ - 1) / page_ * page_ + page_;
    void* const all = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all != MAP_FAILED);
    base_ = static_cast<std::byte*>(all);
    REQUIRE(mprotect(base_ + size_ - page_, page_, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(base_ + size_ - page_ - bytes);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, size_); }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return n_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + n_; }

 private:
  std::size_t n_;
  std::size_t page_;
  std::size_t size_ = 0;
  std::byte* base_ = nullptr;
  T* data_ = nullptr;
};

/// Equal bits, or two NaNs: which NaN comes out of an operation on two is the machine's choice.
inline bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b);
}

/// How many of n numbers differ.
inline std::size_t differences(const float* a, const float* b, std::size_t n) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += same(a[i], b[i]) ? 0 : 1;
  return count;
}

/// About normal: the sum of four uniform numbers, times `size`.
inline float noise(CounterRng& rng, float size = 1) {
  return size * static_cast<float>(rng.uniform() + rng.uniform() + rng.uniform() + rng.uniform() - 2.0);
}

template <class Numbers>
void fill_noise(Numbers& numbers, CounterRng& rng, float size = 1) {
  for (float& x : numbers) x = noise(rng, size);
}

/// Any bytes, with scales that keep values finite.
template <WeightFormat F>
void fill_random(typename F::Block& block, CounterRng& rng) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&block);
  for (std::size_t i = 0; i < sizeof(block); ++i) bytes[i] = static_cast<std::uint8_t>(rng.next());
  if constexpr (requires { F::encode(static_cast<const float*>(nullptr), block); } && F::block_size == 1) {
    const float value = noise(rng);
    F::encode(&value, block);
  }
  if constexpr (requires { block.d.bits; }) block.d = to_half(noise(rng, 0.01f));
  if constexpr (requires { block.dmin.bits; }) block.dmin = to_half(noise(rng, 0.01f));
  if constexpr (requires { block.m.bits; }) block.m = to_half(noise(rng, 0.01f));
  if constexpr (requires { F::set_scale(block, Half()); }) F::set_scale(block, to_half(noise(rng, 0.01f)));
  if constexpr (requires { block.exponent; })
    block.exponent = static_cast<std::uint8_t>(100 + rng.next() % 30);
}

/// One value for all bytes but those of scales.
template <WeightFormat F>
void fill_bytes(typename F::Block& block, int byte) {
  const auto before = block;
  std::memset(static_cast<void*>(&block), byte, sizeof(block));
  if constexpr (requires { block.d; }) block.d = before.d;
  if constexpr (requires { block.dmin; }) block.dmin = before.d;
  if constexpr (requires { block.m; }) block.m = before.d;
  if constexpr (requires { F::set_scale(block, Half()); }) F::set_scale(block, F::scale(before));
  if constexpr (requires { block.exponent; }) block.exponent = before.exponent;
}

/// Float activations of n tokens and their int8 form, all guarded.
struct Activations {
  Guarded<float> values;
  Guarded<std::int8_t> codes;
  Guarded<float> scales;
  Guarded<std::int16_t> sums;
  std::size_t n, k;
  std::size_t fast8_from = 0;

  Activations(std::size_t tokens, std::size_t width)
      : values(tokens * width),
        codes(tokens * width),
        scales(tokens * width / 32),
        sums(tokens * width / 16),
        n(tokens),
        k(width) {}

  [[nodiscard]] MatrixView<float> view() { return {values.data(), n, k}; }
  [[nodiscard]] kernel::QuantizedRows quantized() {
    return {codes.data(), scales.data(), sums.data(), n, k, fast8_from};
  }
  void quantize() { kernel::scalar::quantize({view(), quantized(), 0, n}); }
};

}  // namespace mica::test
