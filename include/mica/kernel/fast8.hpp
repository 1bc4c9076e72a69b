// SPDX-License-Identifier: Apache-2.0
//
// Contract: products of many tokens that round weights once more, to eight bits. They read prompts faster.
// The price: the bits of a token depend on the number of tokens in its step, because a product of few tokens
// stays exact, unless products of one token follow it too (fast8_from is 1), as those of text encoders do.
//
// A product follows this contract instead of kernel/matmul.hpp when its activations have one scale for 256
// values (kernel/quantize.hpp: rows are a multiple of 64 values, and at least fast8_from of them) and its
// format is an integer format or a float of 16 bits. Every 256 values of a row become one block of EightBits;
// the last block of a row may have fewer, of which groups and codes below are those that there are.
//
// Floats of 16 bits are rounded as 256 activations are: d is the scale and code the codes of
// kernel/quantize.hpp.
//
// Integer formats: let u = code + code_offset, s = d * scale of a group and m = dmin * min (0 in formats
// without mins); in floats:
//
//   base  = fma(s, code_offset, m)              so that a value of the group is s * u - base
//   low   = |base|, high = |fma(s, code_max, -base)|
//   reach = the largest low or high of all groups, sum = the sum of low + high over groups in order
//   usual = reach >= 1e-30 and sum is finite
//   a     = round(s * (126 * 256 / reach)), b = 128 * 256 + 128 - round(base * (126 * 256 / reach))       0 and
//           128 * 256 + 128 when not usual; round is to the nearest integer, halves to even
//
//   code  = floor(((a * u + b) mod 2^16) / 256) - 128           in integers; in [-126, 127]
//   d     = reach * (1 / 126) when usual, else sum * 0          NaN when anything was not finite
//
// For one output, with one scale xd for the 256 activations of a block:
//
//   y = 0
//   for each block of the row, in order:
//     y = fma(d, xd * float(sum of code * x code), y)            the sum is exact in a float
#pragma once

#include "mica/base/bits.hpp"
#include "mica/format/detail/unpacked.hpp"
#include "mica/kernel/matmul.hpp"
#include "mica/kernel/scalar/elementwise.hpp"
#include "mica/tensor/packing.hpp"
#include "mica/tensor/rounded.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

namespace mica::kernel {

/// Whether products with the format can follow this contract. Those with F32 cannot: what a converter leaves
/// in F32 (routers, gates) is small and should not be rounded.
template <WeightFormat F>
inline constexpr bool can_be_fast8 = F::arithmetic == format::Arithmetic::integer ||
                                     (F::block_size == 1 && sizeof(typename F::Block) == 2);

/// Whether a product follows this contract.
template <WeightFormat F>
[[nodiscard]] constexpr bool is_fast8(const MatmulArgs<F>& a) noexcept {
  return can_be_fast8<F> && scale_group(a.x.codes) == fast8_group;
}

/// 256 weights of a row as eight-bit integers with one scale. Never in a file.
struct EightBits : format::detail::IntegerBlocks<EightBits, 256, 32> {
  static constexpr format::Id id{0xFFFFFFFF};  // of no file
  static constexpr std::string_view name = "eight bits";

  using Block = tensor::RoundedBlock;

  // Required by IntegerFormat
  static constexpr int code_offset = 128;
  static constexpr int code_max = 255;
  static void unpack(const Block& block, format::Codes<256, 32>& out) noexcept {
    std::copy_n(block.code, block_size, out.code);
    format::detail::set_scale(out, block.d);
  }
};
static_assert(IntegerFormat<EightBits>);

/// How far new codes reach, and how finely they are computed.
inline constexpr float fast8_reach = 126;
inline constexpr std::int32_t fast8_unit = 256;

/// The values from number 256 * chunk of a row on: 256, or those that the row still has. Codes behind them
/// are 0.
template <IntegerFormat F, class M>
requires(!tensor::is_rounded<F>) [[nodiscard]] EightBits::Block
    requantise(const M& w, std::size_t row, std::size_t chunk) noexcept {
  static_assert(256 % F::block_size == 0);
  constexpr std::size_t max_blocks = 256 / F::block_size, groups = F::block_size / F::group;
  const std::size_t blocks = std::min(max_blocks, w.blocks_per_row() - chunk * max_blocks);
  format::Codes<F::block_size, F::group> part[max_blocks];
  float step[max_blocks][groups], base[max_blocks][groups];
  float reach = 0, sum = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    F::unpack(w.block(row, chunk * max_blocks + b), part[b]);
    for (std::size_t g = 0; g < groups; ++g) {
      step[b][g] = part[b].d * static_cast<float>(part[b].scale[g]);
      const float min = F::has_mins ? part[b].dmin * static_cast<float>(part[b].min[g]) : 0.0f;
      base[b][g] = F::code_offset == 0 ? min : std::fma(step[b][g], static_cast<float>(F::code_offset), min);
      const float low = std::fabs(base[b][g]);
      const float high = std::fabs(std::fma(step[b][g], static_cast<float>(F::code_max), -base[b][g]));
      reach = std::max({reach, low, high});
      sum += low + high;
    }
  }
  EightBits::Block out{};
  const bool usual = reach >= activation_floor && sum < std::numeric_limits<float>::infinity();
  out.d = usual ? reach * (1 / fast8_reach) : sum * 0.0f;
  const float inverse = fast8_reach * fast8_unit / reach;
  const auto scaled = [&](float x) {
    return usual ? static_cast<std::int32_t>(std::nearbyint(x * inverse)) : 0;
  };
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t g = 0; g < groups; ++g) {
      const auto factor = static_cast<std::uint16_t>(scaled(step[b][g]));
      const auto start = static_cast<std::uint16_t>(128 * fast8_unit + fast8_unit / 2 - scaled(base[b][g]));
      const std::int8_t* const from = part[b].code + g * F::group;
      std::int8_t* const to = out.code + b * F::block_size + g * F::group;
      for (std::size_t i = 0; i < F::group; ++i) {
        const auto u = static_cast<std::uint16_t>(from[i] + F::code_offset);
        const auto code = static_cast<std::uint16_t>(std::uint32_t{factor} * u + start);  // modulo 2^16
        to[i] = static_cast<std::int8_t>(code / fast8_unit - 128);
      }
    }
  }
  return out;
}

/// The same of floats of 16 bits.
template <WeightFormat F, class M>
requires(F::arithmetic == format::Arithmetic::real) [[nodiscard]] EightBits::Block
    requantise(const M& w, std::size_t row, std::size_t chunk) noexcept {
  float values[fast8_group], scales[fast8_group / activation_group];
  std::int16_t sums[fast8_group / 16];
  const std::size_t n = std::min(fast8_group, w.cols() - fast8_group * chunk);
  for (std::size_t i = 0; i < n; ++i) F::decode(w.block(row, fast8_group * chunk + i), values + i);
  EightBits::Block out{};
  scalar::quantize_group(values, n, out.code, scales, sums);
  out.d = scales[0];
  return out;
}

/// The same of rows that were rounded before.
template <WeightFormat F, class M>
requires(tensor::is_rounded<F>) [[nodiscard]] EightBits::Block
    requantise(const M& w, std::size_t row, std::size_t chunk) noexcept {
  if (row < w.packed_rows()) return w.rounded(row, chunk);
  return requantise<typename F::File>(w.tail(), row - w.packed_rows(), chunk);
}

/// y plus the contribution of one block; x and xd are those of its n <= 256 activations.
[[nodiscard]] inline float fold_eight_bits(const EightBits::Block& w, const std::int8_t* x, std::size_t n,
                                           float xd, float y) noexcept {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += w.code[i] * x[i];
  return std::fma(w.d, xd * static_cast<float>(sum), y);
}

/// Whether kernels multiply rows that are rounded already (tensor/rounded.hpp): those that say so of
/// themselves, as kernels that derive from others may have other products.
template <class K>
inline constexpr bool reads_rounded = requires {
  requires std::is_same_v<typename K::RoundedReader, K>;
};

/// The kernels K, with products of many tokens by this contract.
template <class K>
struct Fast8 : K {
  using RoundedReader = std::conditional_t<reads_rounded<K>, Fast8, void>;
  static constexpr std::string_view name = "fast8";
  static constexpr bool rounds_weights = true;  // rounds_weights<K> below looks for it

  // Required by Kernels
  template <WeightFormat F>
  static void matmul(MatmulArgs<F> a) noexcept {
    if (a.x.codes.fast8_from == 0)
      a.x.codes.fast8_from = fast8_tokens;  // of activations without codes it says nothing
    K::template matmul<F>(a);
  }
  static void quantize(QuantizeArgs a) noexcept {
    if (a.out.fast8_from == 0) a.out.fast8_from = fast8_tokens;
    K::quantize(a);
  }
};

/// Packs rows as tensor::Packing::pack does, but rounds them first, as products by this contract would.
template <tensor::RoundableFormat F>
void round_rows(std::span<const std::byte> rows, std::size_t cols, std::byte* to) noexcept {
  static_assert(tensor::rounded_values == fast8_group);
  using tensor::Rows16;
  const auto from = tensor::detail::rows_of<F>(rows, cols);
  const std::size_t panels = from.rows() / Rows16::rows, packed = panels * Rows16::panel_bytes<F>(cols);
  for (std::size_t r = 0; r < panels * Rows16::rows; ++r) {
    std::byte* const panel = to + r / Rows16::rows * Rows16::panel_bytes<F>(cols);
    for (std::size_t chunk = 0; chunk < ceil_div(cols, fast8_group); ++chunk)
      tensor::store_rounded<F>(requantise<F>(from, r, chunk), cols, r % Rows16::rows, chunk, panel);
  }
  std::memcpy(to + packed, rows.data() + packed, rows.size() - packed);
}

/// The format of rows of `cols` columns that are packed with rounding: Rounded<F>, or `id` where they stay
/// exact.
template <class List>
[[nodiscard]] format::Id rounded_id(format::Id id, std::size_t cols) noexcept {
  format::Id out = id;
  visit_id<List>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (tensor::RoundableFormat<F>)
      if (cols % fast8_step == 0) out = tensor::Rounded<F>::id;
  });
  return out;
}

/// tensor::packing_in, rounding rows whose width allows it.
template <class List>
[[nodiscard]] tensor::Packing rounding_in(format::Id id) noexcept {
  tensor::Packing packing = tensor::packing_in<List>(id);
  visit_id<List>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (tensor::RoundableFormat<F>) {
      packing.pack = [](std::span<const std::byte> rows, std::size_t cols, std::byte* to) noexcept {
        if (cols % fast8_step == 0) return round_rows<F>(rows, cols, to);
        tensor::pack(tensor::detail::rows_of<F>(rows, cols), to);
      };
      packing.unpack = nullptr;
    }
  });
  return packing;
}

/// Whether kernels are Fast8<K>.
template <class K>
inline constexpr bool rounds_weights = requires {
  requires K::rounds_weights;
};

}  // namespace mica::kernel
