// SPDX-License-Identifier: Apache-2.0
//
// Arrays of the metadata as they lie in the header: views that convert an element when it is looked at.
// Nothing is copied, and a vocabulary of 128,000 pieces costs what its bytes cost.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/gguf/value_type.hpp"

#include <iterator>

namespace mica::gguf {

/// The elements of an array of numbers or bools, each converted to T when it is read. Valid as long as the
/// Metadata.
template <class T>
class Array {
  static_assert(Number<T>, "mica::gguf::Array<T>: T is a number, bool or std::string_view");

 public:
  class Iterator;

  Array() = default;
  /// Requires that every element converts to T.
  Array(ValueType stored, const std::byte* first, std::size_t size) noexcept
      : first_(first),
        size_(size),
        stride_(static_cast<std::uint8_t>(scalar_bytes(stored))),
        stored_(stored) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Requires i < size().
  [[nodiscard]] T operator[](std::size_t i) const noexcept {
    MICA_ASSERT(i < size_);
    return detail::visit_scalar(stored_, first_ + i * stride_,
                                [](auto stored) { return detail::convert<T>(stored).value_or(T{}); });
  }
  [[nodiscard]] Iterator begin() const noexcept { return {*this, 0}; }
  [[nodiscard]] Iterator end() const noexcept { return {*this, size_}; }

 private:
  const std::byte* first_ = nullptr;
  std::size_t size_ = 0;
  std::uint8_t stride_ = 0;
  ValueType stored_ = ValueType::u8;
};

/// Goes through the numbers in order.
template <class T>
class Array<T>::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = const T*;
  using reference = T;

  Iterator() = default;
  Iterator(Array array, std::size_t index) noexcept : array_(array), index_(index) {}

  T operator*() const noexcept { return array_[index_]; }
  Iterator& operator++() noexcept {
    ++index_;
    return *this;
  }
  Iterator operator++(int) noexcept { return {array_, index_++}; }
  friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.index_ == b.index_; }

 private:
  Array array_;
  std::size_t index_ = 0;
};

/// The strings of an array, in order; no index, because the file has none. Valid as long as the Metadata.
template <>
class Array<std::string_view> {
 public:
  class Iterator;

  Array() = default;
  Array(const std::byte* first, std::size_t size) noexcept : first_(first), size_(size) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] Iterator begin() const noexcept;
  [[nodiscard]] Iterator end() const noexcept;

 private:
  const std::byte* first_ = nullptr;
  std::size_t size_ = 0;
};

/// Goes through the strings in order.
class Array<std::string_view>::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = std::string_view;
  using difference_type = std::ptrdiff_t;
  using pointer = const std::string_view*;
  using reference = std::string_view;

  Iterator() = default;
  Iterator(const std::byte* at, std::size_t left) noexcept : at_(at), left_(left) {}

  std::string_view operator*() const noexcept { return detail::text_at(at_); }
  Iterator& operator++() noexcept {
    at_ += 8 + detail::text_at(at_).size();
    --left_;
    return *this;
  }
  Iterator operator++(int) noexcept {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.left_ == b.left_; }

 private:
  const std::byte* at_ = nullptr;
  std::size_t left_ = 0;
};

inline auto Array<std::string_view>::begin() const noexcept -> Iterator { return {first_, size_}; }
inline auto Array<std::string_view>::end() const noexcept -> Iterator { return {nullptr, 0}; }

}  // namespace mica::gguf
