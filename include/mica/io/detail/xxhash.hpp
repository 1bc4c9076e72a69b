// SPDX-License-Identifier: Apache-2.0
//
// The part mica::checksum: registers XXH3 as the functions of Checksum. The only header that includes xxHash.
// All of it is internal to the unit, as xxHash itself is here: units that are built for different instruction
// sets keep their own copies.
#pragma once

#include "mica/base/detail/linked.hpp"
#include "mica/io/detail/checksum_functions.hpp"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace mica::io::detail {
namespace {

static_assert(sizeof(XXH3_state_t) <= sizeof(ChecksumState) &&
                  alignof(XXH3_state_t) <= alignof(ChecksumState),
              "mica::io::detail::ChecksumState has no room for the state of this version of xxHash");

constexpr ChecksumFunctions xxhash = {
    [](ChecksumState& state) noexcept {
      static_cast<void>(XXH3_64bits_reset(reinterpret_cast<XXH3_state_t*>(state.bytes)));
    },
    [](ChecksumState& state, std::span<const std::byte> bytes) noexcept {
      static_cast<void>(
          XXH3_64bits_update(reinterpret_cast<XXH3_state_t*>(state.bytes), bytes.data(), bytes.size()));
    },
    [](const ChecksumState& state) noexcept -> std::uint64_t {
      return XXH3_64bits_digest(reinterpret_cast<const XXH3_state_t*>(state.bytes));
    }};

[[maybe_unused]] const Linked<ChecksumFunctions> linked_xxhash(xxhash);

}  // namespace
}  // namespace mica::io::detail
