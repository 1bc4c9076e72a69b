// SPDX-License-Identifier: Apache-2.0
//
// The types of GGUF metadata values, and how the scalars among them become C++ numbers: only when nothing is
// lost, so a count written as i32 can be read as u32, and a negative one cannot.
#pragma once

#include "mica/base/error.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace mica::gguf {

/// The numbers by which GGUF names the types of values.
enum class ValueType : std::uint8_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
inline constexpr std::uint32_t value_types = 13;

/// A type that numbers of a file convert to.
template <class T>
concept Number = std::is_arithmetic_v<T>;

namespace detail {

/// A number or bool of a file, in the widest type of its kind.
class Scalar {
 public:
  template <Number T>
  constexpr Scalar(T value) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      kind_ = Kind::real;
      bits_ = std::bit_cast<std::uint64_t>(static_cast<double>(value));
    } else {
      kind_ = std::is_same_v<T, bool> ? Kind::boolean : value < T{} ? Kind::negative : Kind::whole;
      bits_ = static_cast<std::uint64_t>(value);
    }
  }

  /// In type T; empty when it is of another kind (whole, fractional, bool) or out of T's range.
  template <Number T>
  [[nodiscard]] constexpr std::optional<T> as() const noexcept {
    using Limits = std::numeric_limits<T>;
    bool fits = false;
    if constexpr (std::is_same_v<T, bool>) {
      fits = kind_ == Kind::boolean;
    } else if constexpr (std::is_integral_v<T>) {
      fits = (kind_ == Kind::whole && bits_ <= static_cast<std::uint64_t>(Limits::max())) ||
             (kind_ == Kind::negative && std::is_signed_v<T> &&
              static_cast<std::int64_t>(bits_) >= static_cast<std::int64_t>(Limits::min()));
    } else {
      const double magnitude = real() < 0 ? -real() : real();  // NaN and infinities pass
      fits = kind_ == Kind::real &&
             !(magnitude > Limits::max() && magnitude <= std::numeric_limits<double>::max());
      return fits ? std::optional(static_cast<T>(real())) : std::nullopt;
    }
    return fits ? std::optional(static_cast<T>(bits_)) : std::nullopt;
  }

  /// For error texts and listings.
  [[nodiscard]] std::string text() const {
    if (kind_ == Kind::boolean) return join(bits_ != 0);
    if (kind_ == Kind::negative) return join(static_cast<std::int64_t>(bits_));
    if (kind_ == Kind::whole) return join(bits_);
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", real());
    return digits;
  }

 private:
  enum class Kind : std::uint8_t { boolean, negative, whole, real };

  [[nodiscard]] constexpr double real() const noexcept { return std::bit_cast<double>(bits_); }

  std::uint64_t bits_ = 0;
  Kind kind_;
};

template <class T>
[[nodiscard]] T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// What a ValueType means; strings and arrays, whose sizes are in the file, have no bytes and no load.
struct TypeInfo {
  std::string_view name;
  std::size_t bytes = 0;
  Scalar (*load)(const std::byte* at) noexcept = nullptr;
};

template <class T>
[[nodiscard]] constexpr TypeInfo scalar_type(std::string_view name) noexcept {
  return {name, sizeof(T), [](const std::byte* at) noexcept { return Scalar(load<T>(at)); }};
}

/// In the order of ValueType.
inline constexpr TypeInfo type_infos[value_types] = {
    scalar_type<std::uint8_t>("u8"),
    scalar_type<std::int8_t>("i8"),
    scalar_type<std::uint16_t>("u16"),
    scalar_type<std::int16_t>("i16"),
    scalar_type<std::uint32_t>("u32"),
    scalar_type<std::int32_t>("i32"),
    scalar_type<float>("f32"),
    {"bool", 1, [](const std::byte* at) noexcept { return Scalar(load<std::uint8_t>(at) != 0); }},
    {"string"},
    {"array"},
    scalar_type<std::uint64_t>("u64"),
    scalar_type<std::int64_t>("i64"),
    scalar_type<double>("f64"),
};

[[nodiscard]] constexpr const TypeInfo& info(ValueType type) noexcept {
  return type_infos[static_cast<std::size_t>(type)];
}

[[nodiscard]] inline std::string_view text_at(const std::byte* at) noexcept {
  return {reinterpret_cast<const char*>(at + 8), static_cast<std::size_t>(load<std::uint64_t>(at))};
}

}  // namespace detail

[[nodiscard]] constexpr std::string_view name(ValueType type) noexcept { return detail::info(type).name; }

/// Bytes of a scalar; 0 for strings and arrays, whose size is in the file.
[[nodiscard]] constexpr std::size_t scalar_bytes(ValueType type) noexcept { return detail::info(type).bytes; }

}  // namespace mica::gguf
