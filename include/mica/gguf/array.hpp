// SPDX-License-Identifier: Apache-2.0
//
// Arrays of the metadata as they lie in the header: views that convert an element when it is looked at.
// Nothing is copied, and a vocabulary of 128,000 pieces costs what its bytes cost.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/gguf/detail/value_type.hpp"

#include <iterator>

namespace mica::gguf {

/// The elements of an array of numbers, bools or strings, each converted to T when it is read. Valid as long
/// as the Metadata.
template <class T>
class Array {
  static constexpr bool of_texts = std::is_same_v<T, std::string_view>;
  static_assert(Number<T> || of_texts, "mica::gguf::Array<T>: T is a number, bool or std::string_view");

 public:
  /// Goes through the elements in order.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = T;

    Iterator() = default;
    Iterator(ValueType stored, const std::byte* at, std::size_t left) noexcept
        : at_(at), left_(left), stored_(stored) {}

    T operator*() const noexcept { return element(stored_, at_); }
    Iterator& operator++() noexcept {
      at_ += of_texts ? 8 + detail::text_at(at_).size() : scalar_bytes(stored_);
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
    ValueType stored_ = ValueType::u8;
  };

  Array() = default;
  /// Requires that every element converts to T.
  Array(ValueType stored, const std::byte* first, std::size_t size) noexcept
      : first_(first), size_(size), stored_(stored) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Requires i < size(). Strings have no index, because the file has none.
  [[nodiscard]] T operator[](std::size_t i) const noexcept requires Number<T> {
    MICA_ASSERT(i < size_);
    return element(stored_, first_ + i * scalar_bytes(stored_));
  }
  [[nodiscard]] Iterator begin() const noexcept { return {stored_, first_, size_}; }
  [[nodiscard]] Iterator end() const noexcept { return {}; }

 private:
  [[nodiscard]] static T element(ValueType stored, const std::byte* at) noexcept {
    if constexpr (of_texts) {
      return detail::text_at(at);
    } else {
      return detail::info(stored).load(at).template as<T>().value_or(T{});
    }
  }

  const std::byte* first_ = nullptr;
  std::size_t size_ = 0;
  ValueType stored_ = ValueType::u8;
};

}  // namespace mica::gguf
