// SPDX-License-Identifier: Apache-2.0
//
// The pagers that a program chooses at run time, by name: an enumerator for each type of paging::Pagers
// (paging/any_pager.hpp), in the order of that list.
#pragma once

#include <cstdint>

namespace mica::paging {

enum class Choice : std::uint8_t {
  mapped,
  mapped_sequential,
  mapped_populated,
  mapped_locked,
  resident,
  streamed,
};

}  // namespace mica::paging
