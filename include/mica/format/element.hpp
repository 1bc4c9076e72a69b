// SPDX-License-Identifier: Apache-2.0
//
// F64, I8, I16, I32 and I64: a block is one number. Files keep tables in them rather than weights, so they
// are rounded to float where they occur, and no vector kernel knows them.
#pragma once

#include "mica/format/concept.hpp"

#include <cstring>

namespace mica::format {

namespace detail {

/// What the element types share; T is the number in memory, where it may lie at any address.
template <class T>
struct ElementFormat {
  struct Block {
    std::uint8_t bytes[sizeof(T)];
  };
  static constexpr std::size_t block_size = 1;
  static constexpr Arithmetic arithmetic = Arithmetic::real;
  static constexpr bool vector_codec = false;

  /// Rounds to nearest even.
  static void decode(const Block& block, float* values) noexcept {
    T number;
    std::memcpy(&number, block.bytes, sizeof(T));
    *values = static_cast<float>(number);
  }
};

}  // namespace detail

/// Double precision of IEEE 754, for tables of a file.
struct F64 : detail::ElementFormat<double> {
  static constexpr Id id{28};
  static constexpr std::string_view name = "F64";
};

/// Integers of 8 bits, for tables of a file.
struct I8 : detail::ElementFormat<std::int8_t> {
  static constexpr Id id{24};
  static constexpr std::string_view name = "I8";
};

/// Integers of 16 bits, for tables of a file.
struct I16 : detail::ElementFormat<std::int16_t> {
  static constexpr Id id{25};
  static constexpr std::string_view name = "I16";
};

/// Integers of 32 bits, for tables of a file.
struct I32 : detail::ElementFormat<std::int32_t> {
  static constexpr Id id{26};
  static constexpr std::string_view name = "I32";
};

/// Integers of 64 bits, for tables of a file.
struct I64 : detail::ElementFormat<std::int64_t> {
  static constexpr Id id{27};
  static constexpr std::string_view name = "I64";
};

static_assert(WeightFormat<F64> && WeightFormat<I8> && WeightFormat<I16> && WeightFormat<I32> &&
              WeightFormat<I64>);

}  // namespace mica::format
