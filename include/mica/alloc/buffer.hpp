// SPDX-License-Identifier: Apache-2.0
//
// The one container of the library that owns bytes: an array of fixed size, filled by its owner.
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"

#include <bit>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace mica::alloc {

/// An uninitialised array of T from an allocator; move-only, freed by its destructor.
/// With a dry allocator it has a size and an address, but no elements: span() is empty.
template <class T, Allocator A>
class Buffer {
  static_assert(
      std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
      "mica::alloc::Buffer<T, A>: T must be trivially copyable, since elements are never constructed");

 public:
  static constexpr std::size_t default_alignment = alignof(T) > alloc::default_alignment
                                                       ? alignof(T)
                                                       : alloc::default_alignment;  // bytes

  /// `n` elements; empty when the allocator refuses or n * sizeof(T) overflows. n = 0 allocates nothing.
  /// alignment: a power of two, no less than alignof(T).
  [[nodiscard]] static std::optional<Buffer> make(A allocator, std::size_t n,
                                                  std::size_t alignment = default_alignment) noexcept {
    MICA_ASSERT(std::has_single_bit(alignment) && alignment >= alignof(T));
    if (n == 0) return Buffer(allocator);
    const auto bytes = checked_mul(n, sizeof(T));
    // No object may be larger than the maximum of a pointer difference.
    constexpr auto max_value = static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max());
    if (!bytes || *bytes > max_value) return std::nullopt;
    std::byte* const block = allocator.allocate(static_cast<std::size_t>(*bytes), alignment);
    if (block == nullptr) return std::nullopt;
    return Buffer(allocator, static_cast<T*>(static_cast<void*>(block)), n);
  }

  /// An empty buffer.
  explicit Buffer(A allocator) noexcept : allocator_(allocator) {}
  Buffer() noexcept requires std::is_nothrow_default_constructible_v<A> : allocator_() {}

  /// The elements stay where they are; `other` is empty afterwards.
  Buffer(Buffer&& other) noexcept
      : allocator_(other.allocator_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      give_back();
      allocator_ = other.allocator_;
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  ~Buffer() { give_back(); }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }  // also if dry

  /// The elements that may be touched.
  [[nodiscard]] std::span<T> span() noexcept { return {data_, touchable<A>(size_)}; }
  [[nodiscard]] std::span<const T> span() const noexcept { return {data_, touchable<A>(size_)}; }

  /// Requires i < span().size(), which debug builds assert.
  [[nodiscard]] T& operator[](std::size_t i) noexcept {
    MICA_ASSERT(i < span().size());
    return data_[i];
  }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept {
    MICA_ASSERT(i < span().size());
    return data_[i];
  }

  [[nodiscard]] A allocator() const noexcept { return allocator_; }  // that frees the elements

 private:
  Buffer(A allocator, T* data, std::size_t size) noexcept : allocator_(allocator), data_(data), size_(size) {}

  void give_back() noexcept {
    if (data_ == nullptr) return;
    allocator_.deallocate(static_cast<std::byte*>(static_cast<void*>(data_)), size_bytes());
  }

  A allocator_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace mica::alloc
