// SPDX-License-Identifier: Apache-2.0
//
// Values as the bytes that they have in memory. As std::as_bytes, without a span of the values before it.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace mica {

/// The bytes of n values that lie one after another.
template <class T>
requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T* values, std::size_t n) noexcept {
  return {reinterpret_cast<const std::byte*>(values), n * sizeof(T)};
}

/// The same, for values to be read.
template <class T>
requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::span<std::byte> writable_bytes_of(T* values, std::size_t n) noexcept {
  return {reinterpret_cast<std::byte*>(values), n * sizeof(T)};
}

}  // namespace mica
