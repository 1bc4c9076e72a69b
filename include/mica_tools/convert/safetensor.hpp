// SPDX-License-Identifier: Apache-2.0
//
// The header entry of one tensor in a safetensors file, without its numbers; the element types of such files,
// and how each becomes a float.
#pragma once

#include "mica/base/error.hpp"
#include "mica/base/half.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

/// The types of elements, as files name them.
enum class Dtype : std::uint8_t { F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, I16, I8, U8, BOOL };

namespace detail {

/// An eight-bit float: sign, `ExponentBits`, the rest fraction. E4M3 has no infinities and one NaN.
template <int ExponentBits, int Bias>
[[nodiscard]] inline float small_float(std::uint8_t bits) noexcept {
  constexpr int fraction_bits = 7 - ExponentBits;
  const int exponent = (bits & 0x7F) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const float sign = bits & 0x80 ? -1.0F : 1.0F;
  if constexpr (ExponentBits == 4) {
    if ((bits & 0x7F) == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == (1 << ExponentBits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - Bias - fraction_bits);
  return sign *
         std::ldexp(static_cast<float>(fraction + (1 << fraction_bits)), exponent - Bias - fraction_bits);
}

template <class T, auto Convert = [](T stored) { return static_cast<float>(stored); }>
void convert_each(const std::byte* from, std::size_t count, std::size_t stride, float* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    T stored;
    std::memcpy(&stored, from + i * stride * sizeof(T), sizeof(T));
    to[i] = Convert(stored);
  }
}

[[nodiscard]] inline float half_to_float(Half stored) noexcept { return to_float(stored); }
[[nodiscard]] inline float bfloat_to_float(Bfloat stored) noexcept { return to_float(stored); }

}  // namespace detail

/// The properties of a type.
struct DtypeInfo {
  Dtype dtype;  // its place in the list
  std::string_view name;
  std::uint8_t bytes;  // of an element
  /// The function below for this type.
  void (*to_floats)(const std::byte* from, std::size_t count, std::size_t stride, float* to) noexcept;
};

/// By Dtype.
inline constexpr std::array<DtypeInfo, 12> dtypes = {{
    {Dtype::F64, "F64", 8, detail::convert_each<double>},
    {Dtype::F32, "F32", 4, detail::convert_each<float>},
    {Dtype::F16, "F16", 2, detail::convert_each<Half, detail::half_to_float>},
    {Dtype::BF16, "BF16", 2, detail::convert_each<Bfloat, detail::bfloat_to_float>},
    {Dtype::F8_E4M3, "F8_E4M3", 1, detail::convert_each<std::uint8_t, detail::small_float<4, 7>>},
    {Dtype::F8_E5M2, "F8_E5M2", 1, detail::convert_each<std::uint8_t, detail::small_float<5, 15>>},
    {Dtype::I64, "I64", 8, detail::convert_each<std::int64_t>},
    {Dtype::I32, "I32", 4, detail::convert_each<std::int32_t>},
    {Dtype::I16, "I16", 2, detail::convert_each<std::int16_t>},
    {Dtype::I8, "I8", 1, detail::convert_each<std::int8_t>},
    {Dtype::U8, "U8", 1, detail::convert_each<std::uint8_t>},
    {Dtype::BOOL, "BOOL", 1, detail::convert_each<std::uint8_t>},
}};

/// The entry of a type.
[[nodiscard]] constexpr const DtypeInfo& info(Dtype dtype) noexcept {
  return dtypes[static_cast<std::size_t>(dtype)];
}

/// The type of that name; empty when there is none.
[[nodiscard]] constexpr std::optional<DtypeInfo> find_dtype(std::string_view name) noexcept {
  for (const DtypeInfo& i : dtypes) {
    if (i.name == name) return i;
  }
  return std::nullopt;
}

/// Reads `count` elements, `stride` elements apart, as floats; `from` needs no alignment. F16, BF16, F32 and
/// the eight-bit types are exact, the others round to nearest.
inline void to_floats(Dtype dtype, const std::byte* from, std::size_t count, std::size_t stride,
                      float* to) noexcept {
  info(dtype).to_floats(from, count, stride, to);
}

/// A tensor of a Hugging Face checkpoint.
struct Safetensor {
  static constexpr std::size_t max_dims = 8;  // of a tensor; more are refused

  std::string name;
  Dtype dtype = Dtype::F32;          // of its elements
  std::vector<std::uint64_t> shape;  // the last varies fastest; empty: one number
  std::uint64_t offset = 0;          // of the first byte, from the beginning of the file
  std::uint64_t bytes = 0;

  /// "[4096, 1024]", as Python shows it.
  [[nodiscard]] std::string shape_text() const {
    std::string text = "[";
    for (const std::uint64_t dim : shape) text += join(text.size() > 1 ? ", " : "", dim);
    return text + "]";
  }
};

}  // namespace mica::convert
