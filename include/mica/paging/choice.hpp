// SPDX-License-Identifier: Apache-2.0
//
// The pagers that a program chooses at run time, by name: an enumerator for each type of paging::Pagers
// (paging/any_pager.hpp), in the order of that list.
#pragma once

#include <cstdint>

namespace mica::paging {

enum class Choice : std::uint8_t {
  mapped,             ///< pages of the file, read at the first access
  mapped_sequential,  ///< the same with much read-ahead
  mapped_populated,   ///< the same, all of them read when the model is opened
  mapped_locked,      ///< the same, and locked; without the permission, as mapped_populated with a warning
  resident,           ///< read once into memory of the process, and packed
  streamed,           ///< a part resident, the rest read in each step
};

}  // namespace mica::paging
