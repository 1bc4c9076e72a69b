// SPDX-License-Identifier: Apache-2.0
//
// The types of GGUF metadata values, and how the scalars among them become C++ numbers: only when nothing is
// lost, so a count written as i32 can be read as u32, and a negative one cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

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

[[nodiscard]] constexpr std::string_view name(ValueType type) noexcept {
  constexpr std::string_view names[value_types] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                   "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<std::size_t>(type)];
}

/// Bytes of a scalar; 0 for strings and arrays, whose size is in the file.
[[nodiscard]] constexpr std::size_t scalar_bytes(ValueType type) noexcept {
  constexpr std::size_t bytes[value_types] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return bytes[static_cast<std::size_t>(type)];
}

namespace detail {

template <class T>
[[nodiscard]] T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// Calls f with the scalar that lies at `at`, in its own C++ type.
template <class F>
constexpr auto visit_scalar(ValueType type, const std::byte* at, F&& f) {
  switch (type) {
    case ValueType::u8:
      return f(load<std::uint8_t>(at));
    case ValueType::i8:
      return f(load<std::int8_t>(at));
    case ValueType::u16:
      return f(load<std::uint16_t>(at));
    case ValueType::i16:
      return f(load<std::int16_t>(at));
    case ValueType::u32:
      return f(load<std::uint32_t>(at));
    case ValueType::i32:
      return f(load<std::int32_t>(at));
    case ValueType::u64:
      return f(load<std::uint64_t>(at));
    case ValueType::i64:
      return f(load<std::int64_t>(at));
    case ValueType::f32:
      return f(load<float>(at));
    case ValueType::f64:
      return f(load<double>(at));
    default:
      return f(load<std::uint8_t>(at) != 0);  // boolean; strings and arrays never come here
  }
}

/// The number in type T; empty when it is of another kind (whole, fractional, bool) or out of T's range.
template <class T, class Stored>
[[nodiscard]] constexpr std::optional<T> convert(Stored stored) noexcept {
  if constexpr (std::is_same_v<T, Stored>) {
    return stored;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<Stored, bool>) {
    return std::nullopt;
  } else if constexpr (std::is_integral_v<T> && std::is_integral_v<Stored>) {
    if (!std::in_range<T>(stored)) return std::nullopt;
    return static_cast<T>(stored);
  } else if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<Stored>) {
    const Stored size = stored < 0 ? -stored : stored;  // of finite numbers only; NaN compares false
    if (size > std::numeric_limits<T>::max() && size <= std::numeric_limits<Stored>::max())
      return std::nullopt;
    return static_cast<T>(stored);
  } else {
    return std::nullopt;
  }
}

[[nodiscard]] inline std::string_view text_at(const std::byte* at) noexcept {
  return {reinterpret_cast<const char*>(at + 8), static_cast<std::size_t>(load<std::uint64_t>(at))};
}

}  // namespace detail

/// A type that numbers of a file convert to.
template <class T>
concept Number = std::is_arithmetic_v<T>;

}  // namespace mica::gguf
