// SPDX-License-Identifier: Apache-2.0
//
// Addresses without memory: a range is reserved at once, and its pages are committed and decommitted.
//
//   | memory | nothing ... | memory | nothing ...        what is nothing faults when it is touched
#pragma once

#include "mica/base/bits.hpp"

#include <cstddef>
#include <optional>
#include <utility>
#include <sys/mman.h>
#include <unistd.h>

namespace mica::alloc {

/// A range of addresses. Keeps no books: memory is booked before it is committed. Move-only.
class AddressSpace {
 public:
  /// Offsets and lengths below are multiples of this.
  [[nodiscard]] static std::size_t page() noexcept {
    static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return size;
  }
  /// A range of at least `bytes`; empty when there are no such addresses. 0 bytes make no system call.
  [[nodiscard]] static std::optional<AddressSpace> make(std::size_t bytes) noexcept {
    if (bytes == 0) return AddressSpace();
    if (bytes > static_cast<std::size_t>(-1) / 4) return std::nullopt;
    const std::size_t length = round_up(bytes, page());
#ifdef MAP_NORESERVE
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#else
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#endif
    void* const data = ::mmap(nullptr, length, PROT_NONE, flags, -1, 0);
    if (data == MAP_FAILED) return std::nullopt;
#ifdef MADV_HUGEPAGE
    ::madvise(data, length, MADV_HUGEPAGE);  // of what is committed; a refusal leaves plain pages
#endif
    return AddressSpace(static_cast<std::byte*>(data), length);
  }

  AddressSpace() = default;
  AddressSpace(AddressSpace&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  AddressSpace& operator=(AddressSpace&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AddressSpace() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

  /// Makes a part readable and writable, zeros at first; false when the system has no more.
  [[nodiscard]] bool commit(std::size_t offset, std::size_t bytes) noexcept {
    return bytes == 0 || ::mprotect(data() + offset, bytes, PROT_READ | PROT_WRITE) == 0;
  }
  /// Frees the memory of a part; its content is lost.
  void give_back(std::size_t offset, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    ::madvise(data() + offset, bytes, MADV_DONTNEED);
    ::mprotect(data() + offset, bytes, PROT_NONE);  // a refusal leaves pages of zeros, which hold no memory
  }

 private:
  AddressSpace(std::byte* data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace mica::alloc
