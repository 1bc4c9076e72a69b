// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as blocks of every weight format: a block decodes to the same bits each time, next to its
// neighbours and alone, and its codes and scales, unpacked, give the decoded values.

#include "fuzz/input.hpp"
#include "mica/format/lists.hpp"
#include "mica/tensor/matrix.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace mica::fuzz::blocks_fuzz {
namespace {

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

template <class F>
void check_unpacked(const typename F::Block& block, const float* values) {
  format::Codes<F::block_size, F::group> codes;
  F::unpack(block, codes);
  for (std::size_t i = 0; i < F::block_size; ++i) {
    const float scaled =
        codes.d * static_cast<float>(codes.scale[i / F::group]) * static_cast<float>(codes.code[i]);
    const float value =
        F::has_mins ? scaled - codes.dmin * static_cast<float>(codes.min[i / F::group]) : scaled;
    require(same(values[i], value), join(F::name, ": value ", i, " is that of its code"));
    require(codes.code[i] + F::code_offset >= 0 && codes.code[i] + F::code_offset <= F::code_max,
            join(F::name, ": code ", i, " is in its range"));
  }
}

template <class F>
void check(std::string_view bytes) {
  using Block = typename F::Block;
  const std::size_t n = bytes.size() / sizeof(Block);
  const std::vector<Block> blocks = [&] {
    std::vector<Block> out(n);
    if (n > 0) std::memcpy(static_cast<void*>(out.data()), bytes.data(), n * sizeof(Block));
    return out;
  }();
  std::vector<float> all(n * F::block_size), one(F::block_size);
  for (std::size_t b = 0; b < n; ++b) F::decode(blocks[b], all.data() + b * F::block_size);
  for (std::size_t b = 0; b < n; ++b) {
    const Block copy = blocks[b];
    F::decode(copy, one.data());
    for (std::size_t i = 0; i < F::block_size; ++i)
      require(same(one[i], all[b * F::block_size + i]),
              join(F::name, ": a block decodes to the same values"));
    if constexpr (IntegerFormat<F>) check_unpacked<F>(copy, one.data());
  }
}

}  // namespace

MICA_FUZZ_TARGET(blocks) {
  Input input(data, size);
  std::size_t chosen = input.below(64), i = 0;
  format::All::for_each([&](auto type) {
    using Format = typename decltype(type)::type;
    if (chosen >= format::All::size || i++ == chosen) check<Format>(input.rest());
  });
  return 0;
}

}  // namespace mica::fuzz::blocks_fuzz
