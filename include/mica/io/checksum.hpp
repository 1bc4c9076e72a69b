// SPDX-License-Identifier: Apache-2.0
//
// A number that tells bytes from bytes that were damaged: XXH3 with 64 bits (xxhash.com). It finds accidents; whoever
// wants to forge bytes can. The only header that includes xxHash; without it (MICA_HAS_CHECKSUM undefined) a Checksum is refused.
#pragma once

#include "mica/base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#if defined(MICA_HAS_CHECKSUM)
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>
#endif

namespace mica::io {

/// The checksum of bytes that come in pieces, however they are cut. Cost: about that of copying them.
class Checksum {
 public:
#if defined(MICA_HAS_CHECKSUM)
  static constexpr bool available = true;

  Checksum() noexcept { clear(); }
  void add(std::span<const std::byte> bytes) noexcept {
    static_cast<void>(XXH3_64bits_update(&state_, bytes.data(), bytes.size()));
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return XXH3_64bits_digest(&state_); }
  void clear() noexcept { static_cast<void>(XXH3_64bits_reset(&state_)); }

 private:
  XXH3_state_t state_;
#else
  static constexpr bool available = false;

  /// Raises ErrorCode::unsupported.
  Checksum() {
    raise(ErrorCode::unsupported,
          "this program was built without xxHash, which files with checksums need; install libxxhash-dev and "
          "build it again");
  }
  void add(std::span<const std::byte>) noexcept {}
  [[nodiscard]] std::uint64_t value() const noexcept { return 0; }
  void clear() noexcept {}
#endif
};

/// The checksum of bytes that lie together.
[[nodiscard]] inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

}  // namespace mica::io
