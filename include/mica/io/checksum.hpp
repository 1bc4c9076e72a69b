// SPDX-License-Identifier: Apache-2.0
//
// A number that detects damaged bytes: XXH3 with 64 bits (xxhash.com). It does not detect forgeries. It needs
// one unit of the program that is built with the part mica::checksum; in a program without one a Checksum is
// refused.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/detail/linked.hpp"
#include "mica/io/detail/checksum_functions.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#if defined(MICA_HAS_CHECKSUM)
#include "mica/io/detail/xxhash.hpp"
#endif

namespace mica::io {

/// The checksum of bytes that come in pieces, however they are cut. Cost: about that of copying them.
class Checksum {
 public:
  /// Whether the program has the part.
  [[nodiscard]] static bool available() noexcept { return functions() != nullptr; }

  /// Raises ErrorCode::unsupported where it does not.
  Checksum() : functions_(functions()) {
    MICA_CHECK(functions_ != nullptr, unsupported,
               "this program was built without xxHash, which files with checksums need; link mica::checksum "
               "(libxxhash-dev has what it needs)");
    clear();
  }
  void add(std::span<const std::byte> bytes) noexcept { functions_->add(state_, bytes); }   // more bytes
  [[nodiscard]] std::uint64_t value() const noexcept { return functions_->value(state_); }  // of those so far
  void clear() noexcept { functions_->clear(state_); }  // forgets all bytes

 private:
  [[nodiscard]] static const detail::ChecksumFunctions* functions() noexcept {
    return Linked<detail::ChecksumFunctions>::functions();
  }

  const detail::ChecksumFunctions* functions_;
  detail::ChecksumState state_;
};

/// The checksum of bytes that lie together.
[[nodiscard]] inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

}  // namespace mica::io
