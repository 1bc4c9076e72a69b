// SPDX-License-Identifier: Apache-2.0
//
// A metadata value as it lies in a GGUF file: a view of the header's bytes, already checked to be whole.
//
//   number   1..8 bytes                    array   element type u32, count u64, elements
//   bool     one byte, 0 or 1              string  length u64, bytes (any, NUL included)
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/gguf/detail/value_type.hpp"

#include <concepts>
#include <iterator>
#include <span>
#include <string>

namespace mica::gguf {

/// The elements of an array of numbers, bools or strings as they lie in the header, each converted to T when
/// it is read: a vocabulary of 128,000 pieces costs what its bytes cost. Valid as long as the Metadata.
template <class T>
class Array {
  static constexpr bool of_texts = std::is_same_v<T, std::string_view>;
  static_assert(Number<T> || of_texts, "mica::gguf::Array<T>: T is a number, bool or std::string_view");

 public:
  /// Goes through the elements in order.
  class Iterator {
   public:
    // Required by std::input_iterator
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = T;

    Iterator() = default;
    Iterator(ValueType stored, const std::byte* at, std::size_t left) noexcept
        : at_(at), left_(left), stored_(stored) {}  // left: elements from `at` on

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
  [[nodiscard]] Iterator begin() const noexcept { return {stored_, first_, size_}; }
  [[nodiscard]] Iterator end() const noexcept { return {}; }
  /// Requires i < size(). Strings have no index, because the file has none.
  [[nodiscard]] T operator[](std::size_t i) const noexcept requires Number<T> {
    MICA_ASSERT(i < size_);
    return element(stored_, first_ + i * scalar_bytes(stored_));
  }

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

/// One value of the metadata. A view: copies are free, valid as long as its Metadata.
class Value {
 public:
  /// Requires that `bytes` hold exactly one whole value of the type.
  Value(ValueType type, std::span<const std::byte> bytes) noexcept : bytes_(bytes), type_(type) {}

  /// As stored; as() converts.
  [[nodiscard]] ValueType type() const noexcept { return type_; }
  [[nodiscard]] bool is_array() const noexcept { return type_ == ValueType::array; }
  /// Requires is_array().
  [[nodiscard]] ValueType element_type() const noexcept {
    MICA_ASSERT(is_array());
    return static_cast<ValueType>(detail::load<std::uint32_t>(bytes_.data()));
  }
  /// Elements of an array; 1 for everything else.
  [[nodiscard]] std::size_t size() const noexcept {
    return is_array() ? static_cast<std::size_t>(detail::load<std::uint64_t>(bytes_.data() + 4)) : 1;
  }
  /// As the file has it.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// The value as T: a number, bool, std::string_view, std::string, or Array of number, bool or
  /// std::string_view. Empty when the file holds another kind of value, or a number that T cannot hold.
  template <class T>
  [[nodiscard]] std::optional<T> as() const;

  /// A description, for error texts and listings: "-3 (i32)", "'llama' (string)", "array of 32000 f32".
  [[nodiscard]] std::string description() const {
    if (is_array()) return join("array of ", size(), " ", name(element_type()));
    if (type_ == ValueType::string) return join("'", escaped(detail::text_at(bytes_.data())), "' (string)");
    return join(detail::info(type_).load(bytes_.data()).text(), " (", name(type_), ")");
  }

 private:
  std::span<const std::byte> bytes_;
  ValueType type_;
};

namespace detail {

template <class T>
struct Reads;  // whether a Value fits into T, the conversion of one that does, and the name of T

template <Number T>
struct Reads<T> {
  static std::optional<T> number(const Value& v) {
    return info(v.type()).load(v.bytes().data()).template as<T>();
  }
  static bool fits(const Value& v) { return scalar_bytes(v.type()) != 0 && number(v); }
  static T of(const Value& v) { return *number(v); }
  static std::string needed() {
    if constexpr (std::is_same_v<T, bool>) {
      return "a bool";
    } else if constexpr (std::is_floating_point_v<T>) {
      return "a number (f32)";
    } else {
      return join("a whole number from ", std::numeric_limits<T>::min(), " to ",
                  std::numeric_limits<T>::max());
    }
  }
};

template <class T>
requires std::same_as<T, std::string_view> || std::same_as<T, std::string>
struct Reads<T> {
  static bool fits(const Value& v) { return v.type() == ValueType::string; }
  static T of(const Value& v) { return T(text_at(v.bytes().data())); }
  static std::string needed() { return "a string"; }
};

template <class T>
struct Reads<Array<T>> {
  static constexpr bool of_texts = std::same_as<T, std::string_view>;

  static const std::byte* first(const Value& v) { return v.bytes().data() + 12; }
  static bool fits(const Value& v) {
    if (!v.is_array()) return false;
    const ValueType type = v.element_type();
    if (of_texts ? type != ValueType::string : scalar_bytes(type) == 0) return false;
    if constexpr (!of_texts) {
      for (std::size_t i = 0; i < v.size(); ++i) {
        if (!info(type).load(first(v) + i * scalar_bytes(type)).template as<T>()) return false;
      }
    }
    return true;
  }
  static Array<T> of(const Value& v) { return {v.element_type(), first(v), v.size()}; }
  static std::string needed() {
    if constexpr (of_texts) return "an array of strings";
    return join("an array, each element ", Reads<T>::needed());
  }
};

}  // namespace detail

template <class T>
std::optional<T> Value::as() const {
  if (!detail::Reads<T>::fits(*this)) return std::nullopt;
  return detail::Reads<T>::of(*this);
}

}  // namespace mica::gguf
