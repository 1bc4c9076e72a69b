// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a GGUF file: in a file, in memory (a model that is part of the program), or behind a
// RangeReader.
#pragma once

#include "mica/io/file.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace mica::gguf {

/// Bytes of a model that are neither in a file of this machine nor in memory: on a server, or nowhere, where
/// only a header is known. Only the header is read, which is enough to plan. Not thread-safe.
class RangeReader {
 public:
  RangeReader() = default;
  RangeReader(const RangeReader&) = delete;
  RangeReader& operator=(const RangeReader&) = delete;
  virtual ~RangeReader() = default;

  /// Fills `to` with the bytes from `offset` on. Raises ErrorCode::file for bytes that are missing or have
  /// changed, and failed for bytes that cannot be read now.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> to) const = 0;

  /// The size of the next request after `had` bytes from the front: small, where bytes are expensive.
  [[nodiscard]] virtual std::uint64_t next_bytes(std::uint64_t had) const noexcept {
    return next_of_file(had);
  }

  /// For cheap bytes: a size that grows with them, so that little is copied, and little is read in vain.
  [[nodiscard]] static std::uint64_t next_of_file(std::uint64_t had) noexcept {
    return std::max(had / 4, std::clamp(3 * had, first_of_file, most_in_vain));
  }

  /// The first recommendation of next_of_file(), and the largest one while headers are small.
  static constexpr std::uint64_t first_of_file = std::uint64_t{256} << 10;
  static constexpr std::uint64_t most_in_vain = std::uint64_t{4} << 20;
};

/// One file of a model. Thread-safe unless a RangeReader reads it; move-only.
class Source {
 public:
  /// The whole file.
  explicit Source(io::File file) : name_(file.path()), size_(file.size()), file_(std::move(file)) {}
  /// Requires that the memory outlives the Source.
  Source(std::string name, std::span<const std::byte> memory)
      : name_(std::move(name)), size_(memory.size()), memory_(memory) {}
  /// `size` bytes that are elsewhere.
  Source(std::string name, std::uint64_t size, std::unique_ptr<const RangeReader> ranges)
      : name_(std::move(name)), size_(size), ranges_(std::move(ranges)) {}

  /// The path, or the name that was given.
  [[nodiscard]] const std::string& path() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }  // bytes
  /// Whether memory() has the bytes.
  [[nodiscard]] bool in_memory() const noexcept { return !file_ && !elsewhere(); }
  /// Whether only a RangeReader has the bytes, which gives headers and no weights.
  [[nodiscard]] bool elsewhere() const noexcept { return ranges_ != nullptr; }
  /// The open file; null when there is none.
  [[nodiscard]] const io::File* file() const noexcept { return file_ ? &*file_ : nullptr; }
  /// The bytes in memory; empty for a file. Raises ErrorCode::unsupported when they are elsewhere.
  [[nodiscard]] std::span<const std::byte> memory() const {
    require_weights();
    return memory_;
  }
  /// Raises ErrorCode::unsupported when the bytes are elsewhere.
  void require_weights() const {
    MICA_CHECK(
        !elsewhere(), unsupported, name_,
        ": its weights are not on this machine; it can be planned, and run when it has been downloaded");
  }

  /// The recommended number of bytes to read next, after `had` bytes from the front.
  [[nodiscard]] std::uint64_t next_bytes(std::uint64_t had) const noexcept {
    return ranges_ ? ranges_->next_bytes(had) : RangeReader::next_of_file(had);
  }

  /// Fills `to` with the bytes from `offset` on, wherever they are. Raises as io::File::read_at.
  void read_at(std::uint64_t offset, std::span<std::byte> to) const {
    if (file_) return file_->read_at(offset, to);
    if (ranges_) return ranges_->read_at(offset, to);
    MICA_CHECK(offset <= size_ && to.size() <= size_ - offset, file, name_, ": truncated: ", size_,
               " bytes, ", to.size(), " wanted from byte ", offset);
    if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
  }

 private:
  std::string name_;
  std::uint64_t size_ = 0;
  std::optional<io::File> file_;
  std::span<const std::byte> memory_;
  std::unique_ptr<const RangeReader> ranges_;
};

}  // namespace mica::gguf
