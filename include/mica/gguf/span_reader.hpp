// SPDX-License-Identifier: Apache-2.0
//
// Reads untrusted bytes from front to back. Every length is compared with the remaining bytes before anything
// is read or allocated, and every error names the position and the object.
#pragma once

#include "mica/base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mica::gguf {

/// Loads bytes on demand: called with a count, it returns at least that many bytes from the front of the
/// file. The count never exceeds the file's size. Earlier results may become invalid.
using Loader = std::function<std::span<const std::byte>(std::uint64_t count)>;

/// A position in a file and the part of it that is in memory. Not thread-safe.
class SpanReader {
 public:
  /// Reads memory. `name` stands for the file in error texts.
  SpanReader(std::string name, std::span<const std::byte> bytes)
      : name_(std::move(name)), bytes_(bytes), size_(bytes.size()) {}
  /// Reads a file of `size` bytes as the loader brings it.
  SpanReader(std::string name, std::uint64_t size, Loader loader)
      : name_(std::move(name)), size_(size), loader_(std::move(loader)) {}

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }             // bytes taken
  [[nodiscard]] std::uint64_t remaining() const noexcept { return size_ - offset_; }  // bytes, loaded or not

  /// Names what is being read from here on, for error texts: "key 'general.name'".
  void enter(std::string subject) { subject_ = std::move(subject); }

  /// The next n bytes. Raises ErrorCode::file when fewer remain; `what` describes them.
  /// With a loader the answer is valid until the next call.
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t n, std::string_view what) {
    if (n > remaining()) [[unlikely]]
      raise_truncated(n, what);
    if (n > bytes_.size() - offset_) [[unlikely]]
      load(offset_ + n);
    const auto taken = bytes_.subspan(static_cast<std::size_t>(offset_), static_cast<std::size_t>(n));
    offset_ += n;
    return taken;
  }

  /// The next number, little-endian.
  template <class T>
  requires std::is_arithmetic_v<T>
  [[nodiscard]] T read(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  /// The next string: 64 bits of length, then bytes of any value. Valid as the answer of take() is.
  [[nodiscard]] std::string_view text(std::string_view what) {
    const auto length = read<std::uint64_t>(what);
    const auto taken = take(length, what);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  /// The number of elements that follow, of `bytes` bytes each. Raises ErrorCode::file if fewer remain.
  [[nodiscard]] std::size_t count(std::size_t bytes, std::string_view what) {
    const auto n = read<std::uint64_t>(what);
    if (n > remaining() / bytes) refuse(ErrorCode::file, n, " ", what, " do not fit into it");
    return static_cast<std::size_t>(n);
  }
  /// The next list of numbers, as append_list() writes it. Raises as count().
  template <class T>
  [[nodiscard]] std::vector<T> list(std::string_view what) {
    std::vector<T> numbers(count(sizeof(T), what));
    for (T& number : numbers) number = read<T>(what);
    return numbers;
  }

  /// Raises an error with the file's name, the subject and the parts.
  template <class... Parts>
  [[noreturn]] void refuse(ErrorCode code, const Parts&... parts) const {
    raise(code, name_, ": ", subject_, subject_.empty() ? "" : ": ", parts...);
  }

 private:
  [[noreturn]] void raise_truncated(std::uint64_t n, std::string_view what) const {
    refuse(ErrorCode::file, "truncated or damaged: ", what, " at byte ", offset_, " takes ", n, " bytes, ",
           remaining(), " remain; it reaches past the end of the file");
  }
  void load(std::uint64_t count) {
    MICA_ASSERT(loader_ && count <= size_);
    bytes_ = loader_(count);
  }

  std::string name_;
  std::string subject_;
  std::span<const std::byte> bytes_;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
  Loader loader_;
};

}  // namespace mica::gguf
