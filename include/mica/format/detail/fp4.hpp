// SPDX-License-Identifier: Apache-2.0
//
// The sixteen numbers of a four-bit float (a sign, two bits of exponent, one of fraction), doubled so that
// they are whole.
#pragma once

#include <cstdint>

namespace mica::format::detail {

inline constexpr std::int8_t doubled_fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace mica::format::detail
