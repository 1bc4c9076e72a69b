// SPDX-License-Identifier: Apache-2.0
//
// Rows of weights, written by type, and read or written by a format's number at run time. How a format
// searches for a block stands with its Encoder, here or in mica/format/encode/. Threads, tensors and files
// are the caller's: rows do not depend on each other.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/format/encode/blocks.hpp"
#include "mica/format/encode/encoder.hpp"
#include "mica/format/lists.hpp"
#include "mica/tensor/packing.hpp"
#include "mica_tools/encode/codebooks.hpp"
#include "mica_tools/encode/few_bits.hpp"
#include "mica_tools/encode/iq1.hpp"
#include "mica_tools/encode/iq2.hpp"
#include "mica_tools/encode/iq3.hpp"
#include "mica_tools/encode/k.hpp"
#include "mica_tools/encode/rounded.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace mica::format {

/// Positive, finite weights for the errors of a row's values: the numbers of an importance matrix, made safe
/// for division.
///
/// Importance is a sample of few texts: alone it would ignore columns that these texts did not use. So a
/// typical weight is added to every weight: the squared mean of roots, which a few huge columns do not
/// change.
class RowWeights {
 public:
  /// `importance` has one number per column, or none: then all values count alike.
  explicit RowWeights(std::span<const float> importance) noexcept : importance_(importance) {
    double roots = 0;
    for (const float x : importance) roots += std::sqrt(sane(x));
    if (roots > 0) {
      const double mean = roots / static_cast<double>(importance.size());
      inverse_ = 1 / (mean * mean);
    } else {
      importance_ = {};
    }
  }

  /// The weights of columns first to first + n.
  void fill(std::size_t first, std::size_t n, float* weights) const noexcept {
    if (importance_.empty()) {
      std::fill_n(weights, n, 1.0f);
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double relative = sane(importance_[first + i]) * inverse_;
      weights[i] = static_cast<float>(std::min(relative, max) + share);
    }
  }

 private:
  /// The factor of the typical weight. On gaussian rows 0.7 costs half a percent of weighted error against
  /// 0.3 and gains two percent of the unweighted one.
  static constexpr double share = 0.7;
  static constexpr double max = 1e5;

  /// Negative numbers and NaN count as 0.
  static double sane(float x) noexcept { return x > 0 && std::isfinite(x) ? static_cast<double>(x) : 0; }

  std::span<const float> importance_;
  double inverse_ = 0;
};

/// Writes rows of `width` values in format F, one after the other, to any address. Rows are whole blocks.
/// `importance` is empty or has a number per column, larger where an error hurts more (an importance matrix:
/// mean squares of the activations).
/// Every block decodes to finite numbers when the rows are finite.
template <class F>
void encode_rows(std::span<const float> values, std::size_t width, std::span<const float> importance,
                 std::byte* out) noexcept {
  const RowWeights all(importance);
  float weights[F::block_size];
  for (std::size_t at = 0; at < values.size(); at += F::block_size, out += sizeof(typename F::Block)) {
    typename F::Block block;
    all.fill(at % width, F::block_size, weights);
    Encoder<F>::encode(values.data() + at, weights, block);
    std::memcpy(out, &block, sizeof block);
  }
}

/// Whether blocks of F can be written: F has an Encoder.
template <class F>
    struct HasEncoder : std::bool_constant < requires(const float* values, typename F::Block& block) {
  Encoder<F>::encode(values, values, block);
} > {};

/// Every weight format of mica's own that can be written.
using Encodable = Filter<All, HasEncoder>;

/// How rows of one format are read and written.
struct RowCodec {
  /// Decodes a row of whole blocks, at any address.
  void (*decode)(std::span<const std::byte> row, std::span<float> values) noexcept = nullptr;
  /// Encodes rows of `width` values, one after the other, to any address. Null: the format cannot be written.
  void (*encode)(std::span<const float> values, std::size_t width, std::span<const float> importance,
                 std::byte* out) noexcept = nullptr;
};

/// The formats in which rows can be read and perhaps written: a view of constants. row_codecs<List>() makes
/// one.
class RowCodecs {
 public:
  /// codecs: one for each format of the table, in its order. Both lists outlive this.
  constexpr RowCodecs(Table formats, std::span<const RowCodec> codecs,
                      tensor::FindPacking find_packing) noexcept
      : formats_(formats), codecs_(codecs), packing_(find_packing) {}

  /// The formats that can be read.
  [[nodiscard]] constexpr Table formats() const noexcept { return formats_; }
  /// Of rows that lie packed.
  [[nodiscard]] constexpr tensor::FindPacking packing() const noexcept { return packing_; }
  /// Of the format with that number; an empty one when there is none.
  [[nodiscard]] constexpr RowCodec find(Id id) const noexcept {
    const Info* const info = formats_.find(id);
    return info == nullptr ? RowCodec{} : codecs_[static_cast<std::size_t>(info - &*formats_.begin())];
  }
  /// Whether rows of the format can be written.
  [[nodiscard]] constexpr bool writes(Id id) const noexcept { return find(id).encode != nullptr; }
  /// The names of those that can be written, for messages.
  [[nodiscard]] std::string written() const {
    std::string out;
    for (const Info& info : formats_)
      if (writes(info.id)) out.append(out.empty() ? "" : " ").append(info.name);
    return out;
  }

 private:
  Table formats_;
  std::span<const RowCodec> codecs_;  // in the order of the table
  tensor::FindPacking packing_;
};

namespace detail {

template <class F>
void decode_row(std::span<const std::byte> row, std::span<float> values) noexcept {
  typename F::Block block;
  MICA_ASSERT(row.size() == values.size() / F::block_size * sizeof block);
  for (std::size_t at = 0; at < values.size(); at += F::block_size) {
    std::memcpy(&block, row.data() + at / F::block_size * sizeof block, sizeof block);
    F::decode(block, values.data() + at);
  }
}

template <class F>
[[nodiscard]] constexpr RowCodec row_codec() noexcept {
  RowCodec codec{decode_row<F>};
  if constexpr (HasEncoder<F>::value) codec.encode = encode_rows<F>;
  return codec;
}

template <class List>
inline constexpr std::array<RowCodec, 0> codecs_of = {};
template <class... F>
inline constexpr std::array<RowCodec, sizeof...(F)> codecs_of<TypeList<F...>> = {row_codec<F>()...};

}  // namespace detail

/// The codecs of a list of formats. Encoders of its own stand before this is used for the first time.
template <class List>
[[nodiscard]] constexpr RowCodecs row_codecs() noexcept {
  return {table<List>(), detail::codecs_of<List>, tensor::packing_in<List>};
}

/// Those of mica's own formats.
inline constexpr RowCodecs known_codecs = row_codecs<All>();

/// The same in the format with this number.
/// Raises unsupported for a format that cannot be written, and usage for sizes that do not fit each other.
inline void encode_rows(Id id, std::span<const float> values, std::size_t width,
                        std::span<const float> importance, std::span<std::byte> out,
                        RowCodecs codecs = known_codecs) {
  const RowCodec codec = codecs.find(id);
  MICA_CHECK(codec.encode != nullptr, unsupported, "cannot write ", codecs.formats().name(id),
             "; formats that can be written: ", codecs.written());
  const Info info = *codecs.formats().find(id);
  MICA_CHECK(width != 0 && width % info.block_size == 0, usage, "a row of ", width,
             " values is not whole blocks of ", info.name, ", which have ", info.block_size);
  MICA_CHECK(values.size() % width == 0, usage, values.size(), " values are not whole rows of ", width);
  MICA_CHECK(importance.empty() || importance.size() == width, usage, "importance has ", importance.size(),
             " numbers for rows of ", width);
  const std::size_t bytes = values.size() / width * info.row_bytes(width);
  MICA_CHECK(out.size() == bytes, usage, "capacity for ", out.size(), " bytes, but the rows take ", bytes);
  codec.encode(values, width, importance, out.data());
}

}  // namespace mica::format
