// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a model that are neither in a file of this machine nor in memory: on a server, or nowhere, where
// only a header is known. Only the header is read, which is enough to plan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mica::gguf {

/// Reads bytes by their offset. Not thread-safe.
class RangeReader {
 public:
  RangeReader() = default;
  RangeReader(const RangeReader&) = delete;
  RangeReader& operator=(const RangeReader&) = delete;
  virtual ~RangeReader() = default;

  /// Fills `to` with the bytes from `offset` on. Raises ErrorCode::file for bytes that are missing or have
  /// changed, and failed for bytes that cannot be read now.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> to) const = 0;

  /// The size of the next request, when `had` bytes were read from the front and more are needed: small,
  /// where bytes are expensive.
  [[nodiscard]] virtual std::uint64_t next_bytes(std::uint64_t had) const noexcept {
    return next_of_file(had);
  }

  /// For cheap bytes: a size that grows fourfold, so that little is copied.
  [[nodiscard]] static std::uint64_t next_of_file(std::uint64_t had) noexcept {
    return std::max(3 * had, std::uint64_t{256} << 10);
  }
};

}  // namespace mica::gguf
