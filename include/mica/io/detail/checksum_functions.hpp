// SPDX-License-Identifier: Apache-2.0
//
// The functions and the state of a Checksum. They are the same with and without xxHash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mica::io::detail {

/// Memory for a state of XXH3 (xxhash.hpp checks that it fits).
struct ChecksumState {
  alignas(64) std::byte bytes[576];
};

struct ChecksumFunctions {
  void (*clear)(ChecksumState& state) noexcept;
  void (*add)(ChecksumState& state, std::span<const std::byte> bytes) noexcept;
  std::uint64_t (*value)(const ChecksumState& state) noexcept;
};

}  // namespace mica::io::detail
