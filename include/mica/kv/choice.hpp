// SPDX-License-Identifier: Apache-2.0
//
// The storages that a program chooses at run time, by name: an enumerator for each type of kv::Storages
// (kv/any_storage.hpp), in the order of that list.
#pragma once

#include <cstdint>

namespace mica::kv {

enum class Choice : std::uint8_t { segmented, contiguous, reserved, paged, spilled, spilled_paged };

}  // namespace mica::kv
